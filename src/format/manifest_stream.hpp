// SPDX-License-Identifier: Apache-2.0
// Manifests for who must not hold their block tables: the front by itself, and all of it verified
// as it goes by.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "format/checksum.hpp"
#include "format/manifest.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace belay::format {

/// A manifest of which only the front was read: all that comes before its block tables.
struct ManifestHead {
  Manifest head;             ///< all of it but the block tables
  std::uint64_t blocks = 0;  ///< that they have
  std::uint64_t fingerprints_offset = 0;

  std::uint64_t fingerprint_offset(std::uint64_t block) const {
    return fingerprints_offset + block * sizeof(Fingerprint);
  }
  std::uint64_t holder_offset(std::uint64_t block) const {
    return fingerprint_offset(blocks) + block;
  }
};
/// How many bytes of the file are enough for decode_manifest_head(): `header` are at least its
/// first kManifestHeaderBytes.
Result<std::uint64_t> manifest_front_bytes(std::span<const std::byte> header,
                                           std::uint64_t file_bytes);
/// What decode_manifest() promises of the front. Whether the bytes are those that were written,
/// only ManifestCheck tells; and holders are looked at by nobody here.
Result<ManifestHead> decode_manifest_head(std::span<const std::byte> front,
                                          std::uint64_t file_bytes);
/// corruption unless these, which are some of its holders, name holding segments.
Result<void> check_holders(Code code, const Manifest& head, std::span<const std::byte> holders);

/// Verifies a manifest that comes in pieces, front to back.
class ManifestCheck {
 public:
  void take(std::span<const std::byte> bytes);
  /// All came. corruption if they are not what was written.
  Result<void> finish();

 private:
  Checksum128 checksum_;
  std::vector<std::byte> end_;  ///< the last that came: perhaps the footer
  std::uint64_t taken_bytes_ = 0;
};

}  // namespace belay::format
