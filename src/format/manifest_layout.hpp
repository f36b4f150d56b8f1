// SPDX-License-Identifier: Apache-2.0
// What writer and reader of manifests share: sizes, the ledger's order, and the rules.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "format/checksum.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace belay::format {

inline constexpr std::string_view kManifestMagic = "BELAYMAN";
inline constexpr std::string_view kManifestFooterMagic = "NAMYALEB";
inline constexpr std::size_t kManifestReservedBytes = 10;
inline constexpr std::size_t kManifestFooterBytes = 32;
inline constexpr std::size_t kManifestChecksumBytes = 16;
inline constexpr std::size_t kSegmentRefBytes = 32;
inline constexpr std::size_t kRegionFixedBytes = 16;
inline constexpr std::size_t kArrayAlignment = 16;
inline constexpr std::size_t kMaxDimensions = 255;
/// In the tables: a fingerprint and a holder.
inline constexpr std::size_t kManifestBlockBytes = sizeof(Fingerprint) + 1;

// Flags of the header.
inline constexpr std::uint8_t kManifestGlobal = 1;
inline constexpr std::uint8_t kManifestDump = 2;

/// The ledger's fields in the order of the file.
inline constexpr std::array kLedgerFields = {
    &Ledger::version,
    &Ledger::protected_bytes,
    &Ledger::untouched_bytes,
    &Ledger::unchanged_bytes,
    &Ledger::duplicate_here_bytes,
    &Ledger::duplicate_elsewhere_bytes,
    &Ledger::written_bytes,
    &Ledger::carried_bytes,
    &Ledger::encoded_bytes,
    &Ledger::file_bytes,
    &Ledger::settle_ns,
    &Ledger::detect_ns,
    &Ledger::stage_ns,
    &Ledger::wait_ns,
    &Ledger::blocking_ns,
    &Ledger::durable_ns,
};
static_assert(sizeof(Ledger) == 8 * kLedgerFields.size(), "a field of the ledger is not written");

/// `bytes` are the last of a file of which this is the checksum.
Result<void> check_footer(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                          const Checksum128::Value& checksum);

/// The lowest version of the format that can express it.
std::uint32_t format_of(const Manifest& manifest);

/// Everything that decode_manifest promises; `code` says whose fault a breach is.
Result<void> check_manifest(Code code, const Manifest& manifest);
/// The same where the block tables are elsewhere: as many fingerprints as these holders.
Result<void> check_manifest(Code code, const Manifest& head, std::span<const std::byte> holders);
/// Without the holders, which check_holders() looks at.
Result<void> check_manifest_head(Code code, const Manifest& head, std::uint64_t blocks);

}  // namespace belay::format
