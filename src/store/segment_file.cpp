// SPDX-License-Identifier: Apache-2.0
#include "store/segment_file.hpp"

#include "base/try.hpp"
#include "format/names.hpp"
#include "store/decoded_file.hpp"
#include "store/pages.hpp"
#include "store/segment_frame.hpp"

#include <algorithm>
#include <tuple>

namespace belay::store {
namespace {

auto key_of(const StoredBlock& block) {
  return std::tie(block.fingerprint.low, block.fingerprint.high, block.length, block.offset);
}

/// Is fed the entries of all extents in order, and keeps those that are in the file.
class Placing {
 public:
  /// `decoded`: what the file is read through; nullptr: extents are raw or absent.
  Placing(const std::vector<format::Extent>& extents, const DecodedFile* decoded,
          StoredBlocks& blocks)
      : extents_(extents), decoded_(decoded), blocks_(blocks) {}

  void take(const format::IndexEntry& entry) {
    while (entry_ == end_) begin_extent();
    ++entry_;
    if (absent_) return;
    blocks_.push_back({entry.fingerprint, entry.length, offset_});
    offset_ += entry.length;
  }

 private:
  void begin_extent() {
    const format::Extent& extent = extents_[number_];
    offset_ = decoded_ == nullptr ? extent.offset : decoded_->begin_of(number_);
    absent_ = extent.codec == CodecId::absent;
    end_ = extent.first_entry + extent.entries;
    ++number_;
  }

  const std::vector<format::Extent>& extents_;
  const DecodedFile* decoded_;
  StoredBlocks& blocks_;
  std::size_t number_ = 0;  ///< of the extent that comes next
  std::uint64_t entry_ = 0;
  std::uint64_t end_ = 0;  ///< of the extent's entries
  std::uint64_t offset_ = 0;
  bool absent_ = false;
};

}  // namespace

Result<SegmentFile> SegmentFile::hold(Tier& tier, const SegmentId& id, FileKind kind) {
  const std::string name = format::file_name(id, kind);
  SegmentFile segment;
  segment.id_ = id;
  segment.kind_ = kind;
  segment.where_ = tier.place() + "/" + name;
  BELAY_ASSIGN(segment.file_, tier.open(name));
  return segment;
}

SegmentFile SegmentFile::over(std::unique_ptr<os::File> file, std::string where,
                              const SegmentId& id, std::vector<FileRange> lost) {
  SegmentFile segment;
  segment.id_ = id;
  segment.where_ = std::move(where);
  segment.file_ = std::move(file);
  segment.lost_ = std::move(lost);
  return segment;
}

Result<SegmentFile> SegmentFile::open(Tier& tier, const SegmentId& id, const StoreId& store,
                                      std::optional<std::uint64_t> file_bytes, FileKind kind) {
  BELAY_ASSIGN(auto segment, hold(tier, id, kind));
  BELAY_TRY(segment.load(store, file_bytes));
  return segment;
}

Result<void> SegmentFile::load(const StoreId& store, std::optional<std::uint64_t> file_bytes) {
  BELAY_TRY(within(where_, load_parts(store, file_bytes)));
  loaded_ = true;
  return {};
}

Result<void> SegmentFile::load_parts(const StoreId& store,
                                     std::optional<std::uint64_t> file_bytes) {
  BELAY_ASSIGN(const auto frame, read_frame(*file_, kind_, id_, store, file_bytes));
  file_bytes_ = frame.file_bytes;
  header_ = frame.header;
  const format::SegmentFooter& footer = frame.footer;
  BELAY_ASSIGN(const auto bytes, read_pages(*file_, footer.index_offset, frame.index_end()));
  BELAY_ASSIGN(extents_, format::decode_segment_extents(bytes.bytes(), footer, header_));
  index_offset_ = footer.index_offset;
  std::unique_ptr<DecodedFile> decoded;
  if (encoded()) decoded = std::make_unique<DecodedFile>(std::move(file_), extents_);
  blocks_.clear();
  blocks_.reserve(footer.entries);
  Placing placing(extents_, decoded.get(), blocks_);
  const auto placed =
      format::decode_segment_entries(bytes.bytes(), footer, header_, extents_,
                                     [&](const format::IndexEntry& entry) { placing.take(entry); });
  if (decoded) file_ = std::move(decoded);
  BELAY_TRY(placed);
  std::erase_if(blocks_, [this](const StoredBlock& block) {
    return std::any_of(lost_.begin(), lost_.end(), [&](const FileRange& range) {
      return block.offset < range.end && block.end() > range.begin;
    });
  });
  return {};
}

void SegmentFile::sort_blocks() {
  std::sort(blocks_.begin(), blocks_.end(),
            [](const StoredBlock& a, const StoredBlock& b) { return key_of(a) < key_of(b); });
}

const StoredBlock* SegmentFile::find(const Fingerprint& fingerprint, std::uint32_t length) const {
  const auto all = find_all(fingerprint, length);
  return all.empty() ? nullptr : all.data();
}

std::span<const StoredBlock> SegmentFile::find_all(const Fingerprint& fingerprint,
                                                   std::uint32_t length) const {
  const StoredBlock wanted{fingerprint, length, 0};
  const auto first = std::lower_bound(
      blocks_.begin(), blocks_.end(), wanted,
      [](const StoredBlock& a, const StoredBlock& b) { return key_of(a) < key_of(b); });
  auto last = first;
  while (last != blocks_.end() && last->fingerprint == fingerprint && last->length == length)
    ++last;
  return {first, last};
}

}  // namespace belay::store
