// SPDX-License-Identifier: Apache-2.0
#include "store/bundle.hpp"

#include "base/try.hpp"
#include "format/names.hpp"
#include "store/segment_frame.hpp"

#include <algorithm>

namespace belay::store {
namespace {

constexpr std::uint64_t kPage = os::kDirectAlignment;

}  // namespace

Result<std::shared_ptr<Bundle>> Bundle::open(Tier& tier, const SegmentId& id) {
  const std::string name = format::bundle_name(id);
  auto bundle = std::make_shared<Bundle>();
  bundle->id_ = id;
  bundle->where_ = tier.place() + "/" + name;
  BELAY_ASSIGN(bundle->file_, tier.open(name));
  BELAY_TRY(within(bundle->where_, bundle->load()));
  return bundle;
}

Result<void> Bundle::load() {
  BELAY_ASSIGN(file_bytes_, file_->size());
  constexpr std::uint64_t kFront = format::kSegmentHeaderBytes + format::kRiderFrontBytes;
  if (file_bytes_ < kFront) return fail(Code::corruption, "too short for a bundle");
  BELAY_ASSIGN(front_, read_pages(*file_, 0, std::min<std::uint64_t>(file_bytes_, kPage)));
  const auto front = front_.bytes();
  BELAY_ASSIGN(header_, format::decode_segment_header(front.first(format::kSegmentHeaderBytes)));
  if (SegmentId{header_.origin.key, header_.origin.rank} != id_)
    return fail(Code::corruption, "its content is another file's (run {}, version {}, set {})",
                header_.origin.key.run, header_.origin.key.version, header_.origin.rank);
  if (header_.rider_bytes == 0 || header_.rider_bytes > file_bytes_ - format::kSegmentHeaderBytes)
    return fail(Code::corruption, "has no rider, or was cut");
  BELAY_ASSIGN(const std::uint64_t bytes,
               format::decode_rider_front(front.first(kFront).subspan(format::kSegmentHeaderBytes),
                                          header_.rider_bytes));
  Pages pages;
  BELAY_ASSIGN(const auto tables,
               read_rider(format::kSegmentHeaderBytes, format::kSegmentHeaderBytes + bytes, pages));
  BELAY_ASSIGN(rider_,
               format::decode_rider_tables(tables, header_.rider_bytes, header_.origin.ranks));
  return {};
}

Result<std::span<const std::byte>> Bundle::read_rider(std::uint64_t begin, std::uint64_t end,
                                                      Pages& pages) {
  if (end <= front_.bytes().size()) return front_.bytes().subspan(begin, end - begin);
  BELAY_ASSIGN(pages, read_pages(*file_, begin, end));
  return pages.bytes();
}

Result<std::pair<Pages, format::SegmentFooter>> Bundle::read_back() {
  const std::uint64_t end = file_bytes_ - format::kSegmentFooterBytes;
  const std::uint64_t last_page = end / kPage * kPage;
  BELAY_ASSIGN(auto back, read_pages(*file_, last_page, file_bytes_));
  BELAY_ASSIGN(const auto footer,
               format::decode_segment_footer(back.bytes().subspan(end - last_page), file_bytes_));
  if (footer.index_offset >= last_page) {
    back.narrow(footer.index_offset - last_page, end - footer.index_offset);
    return std::pair(std::move(back), footer);
  }
  BELAY_ASSIGN(auto bytes, read_pages(*file_, footer.index_offset, end));
  return std::pair(std::move(bytes), footer);
}

Result<format::SegmentIndex> Bundle::read_index() {
  BELAY_ASSIGN(const auto back, read_back());
  return format::decode_segment_index(back.first.bytes(), back.second, header_);
}

Result<void> Bundle::load_index() {
  {
    const std::lock_guard lock(mutex_);
    if (decoded_) return {};
  }
  BELAY_ASSIGN(const auto back, read_back());
  const auto& [bytes, footer] = back;
  BELAY_ASSIGN(auto extents, format::decode_segment_extents(bytes.bytes(), footer, header_));
  std::vector<std::uint64_t> places;
  places.reserve(footer.entries + 1);
  places.push_back(format::kSegmentHeaderBytes);
  BELAY_TRY(format::decode_segment_entries(
      bytes.bytes(), footer, header_, extents,
      [&](const format::IndexEntry& entry) { places.push_back(places.back() + entry.length); }));
  auto decoded = std::make_unique<DecodedFile>(file_, extents);
  const std::lock_guard lock(mutex_);
  if (decoded_) return {};  // somebody else was faster
  places_ = std::move(places);
  extents_ = std::move(extents);
  decoded_ = std::move(decoded);
  return {};
}

std::vector<std::string> Bundle::names() const {
  std::vector<std::string> names;
  for (const format::CarriedManifest& manifest : rider_.manifests)
    names.push_back(format::manifest_name(id_.key, manifest.rank));
  for (const format::BundledSegment& segment : rider_.segments)
    names.push_back(format::copy_name(segment.id));
  return names;
}

Result<std::size_t> Bundle::read_manifest(std::size_t manifest, std::uint64_t offset,
                                          std::span<std::byte> bytes) {
  const std::uint64_t all = rider_.manifests[manifest].bytes;
  const std::uint64_t left = all - std::min(offset, all);
  bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), left));
  if (bytes.empty()) return std::size_t{0};
  return file_->read(rider_.manifest_offset(manifest) + offset, bytes);
}

Result<std::vector<format::BundledBlock>> Bundle::blocks_of(std::size_t segment) {
  BELAY_TRY(within(where_, load_index()));
  const std::uint64_t begin = rider_.blocks_offset(segment);
  const format::BundledSegment& described = rider_.segments[segment];
  Pages pages;
  BELAY_ASSIGN(
      const auto bytes,
      within(where_,
             read_rider(begin, begin + format::Rider::blocks_bytes(described.blocks), pages)));
  BELAY_ASSIGN(auto blocks,
               within(where_, format::decode_bundled_blocks(bytes, described, places_.size() - 1)));
  for (const format::BundledBlock& block : blocks)
    if (block.entry != format::kNotInBundle &&
        places_[block.entry + 1] - places_[block.entry] != block.length)
      return fail(Code::corruption, "{}: a block has another length than its entry", where_);
  return blocks;
}

Result<std::uint64_t> Bundle::check_index() {
  {
    const std::lock_guard lock(mutex_);
    if (checked_entries_) return *checked_entries_;
    if (decoded_) return std::uint64_t{places_.size() - 1};
  }
  SegmentFrame frame{file_bytes_, header_, {}};
  {
    BELAY_ASSIGN(const auto back, read_pages(*file_, frame.index_end(), file_bytes_));
    BELAY_ASSIGN(frame.footer, format::decode_segment_footer(back.bytes(), file_bytes_));
  }
  BELAY_TRY(verify_index(*file_, frame, [](const format::IndexEntry&) {}));
  const std::lock_guard lock(mutex_);
  checked_entries_ = frame.footer.entries;
  return frame.footer.entries;
}

Result<void> Bundle::each_block_of(std::size_t segment,
                                   const std::function<void(const format::BundledBlock&)>& take) {
  BELAY_ASSIGN(const std::uint64_t entries, within(where_, check_index()));
  constexpr std::uint64_t kAtOnce = 1024 * format::kBundledBlockBytes;
  const std::uint64_t begin = rider_.blocks_offset(segment);
  const std::uint64_t end = begin + rider_.segments[segment].blocks * format::kBundledBlockBytes;
  format::BundledBlocksCheck check(rider_.segments[segment], entries);
  PageReader reader;
  std::vector<std::byte> bytes;
  for (std::uint64_t at = begin; at < end; at += kAtOnce) {
    bytes.resize(std::min(kAtOnce, end - at));
    BELAY_TRY(within(where_, reader.read(*file_, at, bytes)));
    BELAY_TRY(within(where_, check.take(bytes, take)));
  }
  bytes.resize(format::Rider::blocks_bytes(0));
  BELAY_TRY(within(where_, reader.read(*file_, end, bytes)));
  return within(where_, check.finish(bytes));
}

Result<EntryPlace> Bundle::place_of(std::uint32_t entry) {
  BELAY_TRY(within(where_, load_index()));
  if (entry >= places_.size() - 1)
    return fail(Code::corruption, "{}: has no entry {}", where_, entry);
  const auto after =
      std::upper_bound(extents_.begin(), extents_.end(), entry,
                       [](std::uint64_t e, const format::Extent& x) { return e < x.first_entry; });
  const auto found = std::prev(after);
  return EntryPlace{static_cast<std::uint32_t>(found - extents_.begin()), found->codec,
                    found->raw_bytes,
                    static_cast<std::uint32_t>(places_[entry + 1] - places_[entry])};
}

void Bundle::release() {
  const std::lock_guard lock(mutex_);
  if (decoded_) decoded_->release();
}

Result<void> Bundle::read_entry(std::uint32_t entry, std::uint64_t offset,
                                std::span<std::byte> bytes) {
  BELAY_TRY(within(where_, load_index()));
  BELAY_ASSIGN(const std::size_t got, decoded_->read(places_[entry] + offset, bytes));
  if (got < bytes.size()) return fail(Code::corruption, "{}: was cut", where_);
  return {};
}

}  // namespace belay::store
