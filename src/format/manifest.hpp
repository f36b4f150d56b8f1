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

inline constexpr std::size_t kManifestHeaderBytes = 256;

/// Streams the manifest; large arrays are appended as they lie in memory. The size is a multiple of
/// kFileAlignment and the checksum covers every byte before it. A manifest that decode_manifest
/// would refuse is `invalid_argument`, and nothing is appended.
Result<void> encode_manifest(const Manifest& manifest, ByteSink& sink);
/// The same in memory.
Result<std::vector<std::byte>> encode_manifest(const Manifest& manifest);
/// `file` is the whole file. Everything in the result is in bounds: holders name holding segments,
/// regions cover the block arrays exactly and in order, names are valid.
Result<Manifest> decode_manifest(std::span<const std::byte> file);

/// A manifest whose block tables stay where they are: for who has many, and goes over each once.
class ManifestView {
 public:
  /// `manifest` must outlive it.
  explicit ManifestView(const Manifest& manifest);

  const Manifest& head() const { return head_; }  ///< all of it but the block tables
  std::uint64_t blocks() const { return holders_.size(); }
  Fingerprint fingerprint(std::uint64_t block) const;
  std::uint8_t holder(std::uint64_t block) const {
    return static_cast<std::uint8_t>(holders_[block]);
  }

 private:
  friend Result<ManifestView> view_manifest(std::span<const std::byte> file);
  ManifestView() = default;

  Manifest head_;
  std::span<const std::byte> fingerprints_;
  std::span<const std::byte> holders_;
};
/// As decode_manifest, but the tables stay in `file`, which must outlive the result.
Result<ManifestView> view_manifest(std::span<const std::byte> file);

/// Is this the front of a manifest of `file_bytes`? corruption if not; the rest may be anything.
Result<void> check_manifest_front(std::span<const std::byte> front, std::uint64_t file_bytes);

/// REQUIRES: the application's name is valid, the host's is valid or empty (check_name).
std::vector<std::byte> encode_run_record(const RunRecord& record);
Result<RunRecord> decode_run_record(std::span<const std::byte> file);
/// corruption if no run record has so many bytes.
Result<void> check_run_record_front(std::span<const std::byte> front, std::uint64_t file_bytes);

}  // namespace belay::format
