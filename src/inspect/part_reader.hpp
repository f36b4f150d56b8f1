// SPDX-License-Identifier: Apache-2.0
// The content of regions of one rank and version, read in pieces and verified block by block.
#pragma once

#include <belay/result.hpp>

#include "fingerprint/hasher.hpp"
#include "inspect/store_view.hpp"
#include "os/memory.hpp"
#include "store/segment_file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace belay::inspect {

/// Move-only. One thread. Memory: the manifest, and once it reads, the indexes of the segments that
/// it has read from and one buffer.
class PartReader {
 public:
  /// Opens every segment that holds blocks of `region` (empty: of any region), then looks whether
  /// the version is still listed: if so, what was opened stays readable, whoever removes it.
  /// not_found if the version has gone meanwhile.
  static Result<PartReader> open(const StoreView& view, const VersionView& version,
                                 const PartView& part, const std::string& region);

  const Manifest& manifest() const { return manifest_; }

  /// Fills `to` with the region's bytes from `offset`. corruption if a block is not what its
  /// fingerprint names. REQUIRES: the range is in the region, one that was opened.
  Result<void> read(const RegionRecord& region, std::uint64_t offset, std::span<std::byte> to);

 private:
  struct BlockRun;
  Result<store::SegmentFile*> segment_of(std::uint8_t holder);
  Result<BlockRun> find_run(const RegionRecord& region, std::uint64_t first, std::uint64_t last);
  Result<void> copy_run(const RegionRecord& region, const BlockRun& run, std::uint64_t offset,
                        std::span<std::byte> to);

  Manifest manifest_;
  std::unique_ptr<fingerprint::Hasher> hasher_;
  std::map<std::uint8_t, store::SegmentFile> segments_;  ///< by holder
  os::AlignedMemory buffer_;
};

}  // namespace belay::inspect
