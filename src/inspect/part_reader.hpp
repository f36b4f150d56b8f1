// SPDX-License-Identifier: Apache-2.0
// The content of regions of one rank and version, read in pieces and verified block by block.
#pragma once

#include <belay/result.hpp>

#include "fingerprint/hasher.hpp"
#include "inspect/block_sources.hpp"
#include "inspect/store_view.hpp"
#include "os/memory.hpp"
#include "store/segment_file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace belay::inspect {

/// Move-only. One thread. Memory: the manifest, and once it reads, the indexes of the files that it
/// has read from and one buffer. A block is taken from the segment that the manifest names, and if
/// it is not there, or not what its fingerprint names, from a copy.
class PartReader {
 public:
  /// Opens files that have all blocks of `region` (empty: of every region), then looks whether
  /// the version is still listed: if so, what was opened stays readable, whoever removes it.
  /// not_found if the version has gone meanwhile. Files that serve only where others are damaged
  /// are opened when it comes to that. The view must outlive the reader.
  static Result<PartReader> open(const StoreView& view, const VersionView& version,
                                 const PartView& part, const std::string& region);

  const Manifest& manifest() const { return manifest_; }

  /// Fills `to` with the region's bytes from `offset`. corruption if a block is in no file
  /// what its fingerprint names. REQUIRES: the range is in the region, one that was opened.
  Result<void> read(const RegionRecord& region, std::uint64_t offset, std::span<std::byte> to);

 private:
  struct BlockRun;
  struct Source {
    BlockSource where;
    std::optional<std::uint64_t> file_bytes;  ///< as in SegmentFile::load()
    std::optional<store::SegmentFile> file;   ///< unset: not needed so far
    std::optional<Error> lost;                ///< why nothing can be taken from it
  };

  explicit PartReader(const StoreView& view) : view_(&view) {}
  void hold(Source& source) const;
  void load(Source& source) const;
  Result<void> hold_own(const BlockSources& sources, const PartView& part, std::size_t holder);
  void hold_elsewhere(const BlockSources& sources, std::size_t holder);
  Result<BlockRun> find_run(Source& source, const RegionRecord& region, std::uint64_t first,
                            std::uint64_t last);
  Result<std::uint64_t> read_run(const RegionRecord& region, std::uint64_t first,
                                 std::uint64_t last, std::uint64_t offset, std::span<std::byte> to);
  Result<void> copy_run(const RegionRecord& region, const BlockRun& run, std::uint64_t offset,
                        std::span<std::byte> to);

  const StoreView* view_;
  Manifest manifest_;
  std::unique_ptr<fingerprint::Hasher> hasher_;
  std::map<std::size_t, std::vector<Source>> sources_;  ///< by holder, in the order of trying
  os::AlignedMemory buffer_;
};

}  // namespace belay::inspect
