// SPDX-License-Identifier: Apache-2.0
#include "store/segment_table.hpp"

#include "base/try.hpp"
#include "format/index_stream.hpp"
#include "format/names.hpp"
#include "store/decoded_file.hpp"

#include <algorithm>

namespace belay::store {
Result<SegmentTable> SegmentTable::open(Tier& tier, const SegmentId& id, const StoreId& store,
                                        FileKind kind) {
  const std::string name = format::file_name(id, kind);
  SegmentTable table;
  table.where_ = tier.place() + "/" + name;
  BELAY_ASSIGN(table.stored_, tier.open(name));
  BELAY_ASSIGN(table.frame_, within(table.where_, read_frame(*table.stored_, kind, id, store, {})));
  BELAY_TRY(within(table.where_, table.load()));
  return table;
}

Result<void> SegmentTable::load() {
  std::uint64_t entry = 0, length = 0;
  BELAY_ASSIGN(extents_, verify_index(*stored_, frame_, [&](const format::IndexEntry& one) {
                 if (entry++ % kStep == 0) step_lengths_.push_back(length);
                 length += one.length;
               }));
  length = 0;
  for (const format::Extent& extent : extents_) {
    extent_lengths_.push_back(length);
    length += extent.raw_bytes;
  }
  file_ = stored_;
  if (frame_.header.encoded) {
    auto decoded = std::make_shared<DecodedFile>(stored_, extents_);
    decoded_ = decoded.get();
    file_ = std::move(decoded);
  }
  return {};
}

std::uint64_t SegmentTable::begin_of(std::size_t extent) const {
  return decoded_ == nullptr ? extents_[extent].offset : decoded_->begin_of(extent);
}

Result<void> SegmentTable::read(std::uint64_t first, std::uint64_t count, PageReader& reader,
                                const Take& take) const {
  if (count == 0) return {};
  std::vector<std::byte> entries;
  const auto after = std::upper_bound(
      extents_.begin(), extents_.end(), first / kStep * kStep,
      [](std::uint64_t entry, const format::Extent& extent) { return entry < extent.first_entry; });
  auto extent = static_cast<std::size_t>(after - extents_.begin());  // behind the entry's
  for (std::uint64_t begin = first / kStep * kStep; begin < first + count; begin += kStep) {
    const std::uint64_t end = std::min(begin + kStep, first + count);
    entries.resize((end - begin) * format::kIndexEntryBytes);
    BELAY_TRY(within(
        where_, reader.read(*stored_, format::index_entry_offset(frame_.footer, begin), entries)));
    std::uint64_t number = begin, length = step_lengths_[begin / kStep];
    format::take_index_entries(entries, [&](const format::IndexEntry& entry) {
      while (extent < extents_.size() && extents_[extent].first_entry <= number) ++extent;
      const std::size_t its = extent - 1;
      const std::uint64_t offset = begin_of(its) + (length - extent_lengths_[its]);
      if (number++ >= first)
        take({entry.fingerprint, entry.length, offset}, extents_[its].codec != CodecId::absent);
      length += entry.length;
    });
  }
  return {};
}

}  // namespace belay::store
