// SPDX-License-Identifier: Apache-2.0
// The bytes of manifests and run records. docs/format.md is the authority.
#pragma once

#include <belay/result.hpp>

#include "base/bytes.hpp"
#include "base/nouns.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace belay::format {

/// Streams the manifest; large arrays are appended as they lie in memory. The size is a multiple of
/// kFileAlignment and the checksum covers every byte before it. A manifest that decode_manifest
/// would refuse is `invalid_argument`, and nothing is appended.
Result<void> encode_manifest(const Manifest& manifest, ByteSink& sink);
/// The same in memory.
Result<std::vector<std::byte>> encode_manifest(const Manifest& manifest);
/// `file` is the whole file. Everything in the result is in bounds: holders name holding segments,
/// regions cover the block arrays exactly and in order, names are valid.
Result<Manifest> decode_manifest(std::span<const std::byte> file);
/// Is this the front of a manifest of `file_bytes`? corruption if not; the rest may be anything.
Result<void> check_manifest_front(std::span<const std::byte> front, std::uint64_t file_bytes);

/// REQUIRES: the application's name is valid, the host's is valid or empty (check_name).
std::vector<std::byte> encode_run_record(const RunRecord& record);
Result<RunRecord> decode_run_record(std::span<const std::byte> file);
/// corruption if no run record has so many bytes.
Result<void> check_run_record_front(std::span<const std::byte> front, std::uint64_t file_bytes);

}  // namespace belay::format
