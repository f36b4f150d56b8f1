// SPDX-License-Identifier: Apache-2.0
// A bundle opened for reading: which segments have blocks in it, which manifests it carries, and
// the blocks, decoded.
#pragma once

#include <belay/result.hpp>

#include "format/rider.hpp"
#include "format/segment.hpp"
#include "store/decoded_file.hpp"
#include "store/pages.hpp"
#include "store/tier.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace belay::store {

/// What must be read and decoded for an entry.
struct EntryPlace {
  std::uint32_t extent = 0;  ///< its number
  CodecId codec = CodecId::raw;
  std::uint64_t extent_bytes = 0;  ///< decoded
  std::uint32_t length = 0;        ///< of the entry
};

/// Thread-safe.
class Bundle {
 public:
  /// Reads header and rider's tables, which are enough for most questions.
  static Result<std::shared_ptr<Bundle>> open(Tier& tier, const SegmentId& id);

  const SegmentId& id() const { return id_; }
  const format::SegmentHeader& header() const { return header_; }
  const format::Rider& rider() const { return rider_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// Of the files that it stands for: manifests, and copies of segments.
  std::vector<std::string> names() const;

  /// Bytes of a manifest, from `offset` in it on.
  Result<std::size_t> read_manifest(std::size_t manifest, std::uint64_t offset,
                                    std::span<std::byte> bytes);
  Result<format::SegmentIndex> read_index();
  Result<std::vector<format::BundledBlock>> blocks_of(std::size_t segment);
  /// The same one after the other, for who must not hold them, nor what the index says: whether
  /// lengths are those of the index, nobody looks. After an error what was taken is worthless.
  Result<void> each_block_of(std::size_t segment,
                             const std::function<void(const format::BundledBlock&)>& take);
  /// Where an entry of the index is; corruption if there is no such entry, or no index.
  Result<EntryPlace> place_of(std::uint32_t entry);
  /// Decoded bytes of an entry of the index, from `offset` in it on. Zeros where it is damaged.
  Result<void> read_entry(std::uint32_t entry, std::uint64_t offset, std::span<std::byte> bytes);
  /// Nobody will want more of it soon.
  void release();

 private:
  Result<void> load();
  /// Bytes of the file, in `pages`, or of its front without reading again: riders of small bundles
  /// lie there.
  Result<std::span<const std::byte>> read_rider(std::uint64_t begin, std::uint64_t end,
                                                Pages& pages);
  /// Footer and index, once.
  Result<void> load_index();
  /// The same without keeping anything of it: how many entries there are.
  Result<std::uint64_t> check_index();
  /// Bytes of the index, and the footer that they belong to.
  Result<std::pair<Pages, format::SegmentFooter>> read_back();

  SegmentId id_;
  std::string where_;
  std::shared_ptr<os::File> file_;
  std::uint64_t file_bytes_ = 0;
  Pages front_;  ///< the first page
  format::SegmentHeader header_;
  format::Rider rider_;
  std::mutex mutex_;  ///< of making what follows; never held over an operation on files
  std::unique_ptr<DecodedFile> decoded_;  ///< null: the index was not read yet
  std::vector<std::uint64_t> places_;     ///< of entries, in `decoded_`
  std::vector<format::Extent> extents_;
  std::optional<std::uint64_t> checked_entries_;  ///< that the index has, which is as it was
};

}  // namespace belay::store
