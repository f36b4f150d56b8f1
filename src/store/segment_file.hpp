// SPDX-License-Identifier: Apache-2.0
// A segment, or a copy of one, opened for reading: header, footer and index are verified, blocks
// are found by fingerprint and length. Encoded extents are read as if they were raw.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "format/segment.hpp"
#include "os/files.hpp"
#include "os/paged_vector.hpp"
#include "store/tier.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace belay::store {

/// A block and its place in SegmentFile::file().
struct StoredBlock {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;

  std::uint64_t end() const { return offset + length; }
};

using StoredBlocks = os::PagedVector<StoredBlock>;

/// Bytes [begin, end) of a file.
struct FileRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Move-only. One thread.
class SegmentFile {
 public:
  /// corruption if the file is not the segment `id` of `store` or a copy of it, or is damaged
  /// outside of its blocks. `file_bytes` is the size of the segment, of which copies may differ;
  /// unset: any.
  static Result<SegmentFile> open(Tier& tier, const SegmentId& id, const StoreId& store,
                                  std::optional<std::uint64_t> file_bytes,
                                  FileKind kind = FileKind::segment);
  /// Only holds the file, so that it stays readable, whoever removes its name. Nothing else may be
  /// asked before load().
  static Result<SegmentFile> hold(Tier& tier, const SegmentId& id,
                                  FileKind kind = FileKind::segment);
  /// The same for the segment `id` in a file that no tier has, where nothing is in `lost` places.
  static SegmentFile over(std::unique_ptr<os::File> file, std::string where, const SegmentId& id,
                          std::vector<FileRange> lost);
  /// What open() does more than hold().
  Result<void> load(const StoreId& store, std::optional<std::uint64_t> file_bytes);
  bool loaded() const { return loaded_; }

  /// False: a copy that has only some of the segment's blocks.
  bool complete() const { return !header_.partial; }
  /// True: file() gives decoded bytes, and blocks have their places in these.
  bool encoded() const { return header_.encoded; }
  const format::SegmentHeader& header() const { return header_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t index_offset() const { return index_offset_; }
  os::File& file() { return *file_; }
  const std::string& where() const { return where_; }  ///< for messages

  const std::vector<format::Extent>& extents() const { return extents_; }
  /// Those that are in the file, in its order until sort_blocks().
  const StoredBlocks& blocks() const { return blocks_; }
  /// The same, for who wants to keep them; the file stays readable.
  StoredBlocks take_blocks() { return std::exchange(blocks_, {}); }
  /// Makes find() possible.
  void sort_blocks();
  /// The first copy in the file; nullptr if there is none. REQUIRES: sort_blocks() was called.
  const StoredBlock* find(const Fingerprint& fingerprint, std::uint32_t length) const;
  /// All of that content. REQUIRES: the same.
  std::span<const StoredBlock> find_all(const Fingerprint& fingerprint, std::uint32_t length) const;

 private:
  Result<void> load_parts(const StoreId& store, std::optional<std::uint64_t> file_bytes);

  SegmentId id_;
  FileKind kind_ = FileKind::segment;
  bool loaded_ = false;
  std::string where_;
  std::unique_ptr<os::File> file_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t index_offset_ = 0;
  std::vector<format::Extent> extents_;
  std::vector<FileRange> lost_;
  format::SegmentHeader header_;
  StoredBlocks blocks_;
};

}  // namespace belay::store
