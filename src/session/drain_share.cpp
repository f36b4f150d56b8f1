// SPDX-License-Identifier: Apache-2.0
#include "session/drain_share.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/wire.hpp"
#include "store/bundle.hpp"
#include "store/pages.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>

namespace belay::session {
namespace {

using Block = store::StoredBlock;

// A block in a part: fingerprint, length, offset, and whether the bundle needs it.
constexpr std::uint64_t kWireBlockBytes = 29;

auto content_of(const Block& block) {
  return std::tie(block.fingerprint.low, block.fingerprint.high, block.length);
}

Result<os::PagedVector<std::byte>> read_manifest(os::File& file) {
  BELAY_ASSIGN(const std::uint64_t size, file.size());
  const auto front = std::min<std::uint64_t>(size, os::kDirectAlignment);
  {
    BELAY_ASSIGN(const auto page, store::read_pages(file, 0, front));
    BELAY_TRY(format::check_manifest_front(page.bytes(), size));
  }
  BELAY_ASSIGN(const auto pages, store::read_pages(file, 0, size));
  return os::PagedVector<std::byte>(pages.bytes().begin(), pages.bytes().end());
}

std::uint8_t holder_of(const Manifest& head, const SegmentId& id) {
  const auto is_it = [&](const SegmentRef& segment) { return segment.id == id; };
  return static_cast<std::uint8_t>(std::find_if(head.segments.begin(), head.segments.end(), is_it) -
                                   head.segments.begin());
}

bool holds_any(const format::ManifestView& manifest, const SegmentId& id) {
  const std::uint8_t holder = holder_of(manifest.head(), id);
  for (std::uint64_t i = 0; i < manifest.blocks(); ++i)
    if (manifest.holder(i) == holder) return true;
  return false;
}

/// What the manifest needs of the segment.
void mark_live(const format::ManifestView& manifest, aggregate::Source& source) {
  const auto& blocks = source.blocks;
  os::PagedVector<std::uint32_t> by_content(blocks.size());
  std::iota(by_content.begin(), by_content.end(), 0u);
  std::sort(by_content.begin(), by_content.end(), [&](std::uint32_t a, std::uint32_t b) {
    return content_of(blocks[a]) < content_of(blocks[b]);
  });
  const Manifest& head = manifest.head();
  const std::uint8_t holder = holder_of(head, source.id);
  for (const RegionRecord& region : head.regions)
    for (std::uint64_t i = 0; i < head.blocks_of(region); ++i) {
      const std::uint64_t number = region.first_block + i;
      if (manifest.holder(number) != holder) continue;
      const Block live{manifest.fingerprint(number), head.length_of(region, i), 0};
      auto found = std::lower_bound(
          by_content.begin(), by_content.end(), live,
          [&](std::uint32_t a, const Block& b) { return content_of(blocks[a]) < content_of(b); });
      for (; found != by_content.end() && content_of(blocks[*found]) == content_of(live); ++found)
        source.needed[*found] = true;
    }
}

bool any_needed(const aggregate::Source& source) {
  return std::find(source.needed.begin(), source.needed.end(), true) != source.needed.end();
}

/// Of blocks that are needed, those in bundles of this place are not any more. What a bundle has is
/// told by its rider; a copy put together from it would take several times as much memory.
void leave_out_bundled(store::Tier& place, aggregate::Source& source) {
  for (const auto& bundle : place.bundles_with(source.id)) {
    const auto number = bundle->rider().find(source.id);
    if (!number || bundle->rider().segments[*number].blocks != source.blocks.size()) continue;
    const auto blocks = bundle->blocks_of(*number);
    for (std::size_t i = 0; blocks && i < blocks->size(); ++i) {
      const format::BundledBlock& block = (*blocks)[i];
      if (block.entry != format::kNotInBundle &&
          block.fingerprint == source.blocks[i].fingerprint &&
          block.length == source.blocks[i].length)
        source.needed[i] = false;
    }
  }
}

/// Of blocks that are needed, those that the tier has are not any more.
void leave_out_copied(const DrainSources& from, const DrainTask& task, const StoreId& store,
                      aggregate::Source& source) {
  for (const std::string& directory : task.copied) {
    auto& place = store::place_in(from.sight, directory);
    leave_out_bundled(place, source);
    if (!any_needed(source)) return;
    auto copy = store::SegmentFile::open(place, task.id, store, {}, FileKind::copy);
    if (!copy) {
      from.log.warn("global tier: {}; it is written again", copy.error().message());
      continue;
    }
    copy->sort_blocks();
    for (std::size_t i = 0; i < source.blocks.size(); ++i)
      if (copy->find(source.blocks[i].fingerprint, source.blocks[i].length) != nullptr)
        source.needed[i] = false;
  }
}

}  // namespace

Result<OwnShare> OwnShare::open(const DrainSources& from, const Origin& origin,
                                const std::vector<DrainTask>& tasks,
                                std::vector<LostFile>& damaged) {
  OwnShare own;
  // The block table in memory is overwritten by the next capture: the file is read instead.
  const std::string name = format::manifest_name(origin.key, origin.rank);
  const std::string where = from.nodes.place() + "/" + name;
  {
    BELAY_ASSIGN(const auto file, from.nodes.open(name));
    BELAY_ASSIGN(own.share_.manifest_bytes, within(where, read_manifest(*file)));
  }
  BELAY_ASSIGN(const auto manifest,
               within(where, format::view_manifest(own.share_.manifest_bytes)));
  if (manifest.head().origin != origin)
    return fail(Code::corruption, "{}: its content is another file's", where);
  for (const DrainTask& task : tasks)
    if (task.keeper == origin.rank) BELAY_TRY(own.open_segment(from, manifest, task, damaged));
  return own;
}

Result<OwnShare> OwnShare::of_memory(const Manifest& manifest,
                                     std::span<const std::span<const std::byte>> blocks,
                                     std::span<const Fingerprint> fingerprints) {
  OwnShare own;
  {
    BELAY_ASSIGN(const auto encoded, format::encode_manifest(manifest));
    own.share_.manifest_bytes.assign(encoded.begin(), encoded.end());
  }
  if (blocks.empty()) return own;
  const SegmentId id{manifest.origin.key, manifest.origin.rank};
  aggregate::Source source{id, id.rank, manifest.block_bytes, {}, {}};
  source.blocks.reserve(blocks.size());
  own.held_.reserve(blocks.size());
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    source.blocks.push_back(
        {fingerprints[i], static_cast<std::uint32_t>(blocks[i].size()), offset});
    own.held_.emplace_back(offset, blocks[i]);
    offset += blocks[i].size();
  }
  source.needed.assign(blocks.size(), true);
  own.share_.sources.push_back(std::move(source));
  own.share_.places[id] = 0;  // no file that could be damaged
  return own;
}

Result<void> OwnShare::open_segment(const DrainSources& from, const format::ManifestView& manifest,
                                    const DrainTask& task, std::vector<LostFile>& damaged) {
  if (!task.whole && !holds_any(manifest, task.id)) return {};
  const StoreId& store = manifest.head().origin.store;
  auto& place = store::place_in(from.nodes, task.directory);
  auto file = store::SegmentFile::open(place, task.id, store, {});
  if (!file) {
    damaged.push_back({task.id, FileKind::segment, task.place});
    return Unexpected(file.error());
  }
  aggregate::Source source{
      task.id, task.keeper, file->header().block_bytes, file->take_blocks(), {}};
  source.needed.assign(source.blocks.size(), task.whole);
  if (!task.whole) mark_live(manifest, source);
  leave_out_copied(from, task, store, source);
  if (!any_needed(source)) return {};
  share_.sources.push_back(std::move(source));
  share_.places[task.id] = task.place;
  files_.emplace(task.id, *std::move(file));
  return {};
}

Result<void> OwnShare::read(const SegmentId& id, std::uint64_t begin, std::span<std::byte> into,
                            store::PageReader& reader) {
  if (!held_.empty()) return copy_held(begin, into);
  const auto file = files_.find(id);
  if (file == files_.end())
    return fail(Code::not_found, "{} is not looked after here", format::segment_name(id));
  return reader.read(file->second.file(), begin, into);
}

Result<void> OwnShare::copy_held(std::uint64_t begin, std::span<std::byte> into) const {
  auto held = std::upper_bound(held_.begin(), held_.end(), begin,
                               [](std::uint64_t at, const auto& each) { return at < each.first; });
  while (!into.empty()) {
    if (held == held_.begin() || begin >= std::prev(held)->first + std::prev(held)->second.size())
      return fail(Code::invalid_argument, "nothing is held of byte {}", begin);
    const auto rest = std::prev(held)->second.subspan(begin - std::prev(held)->first);
    const std::size_t bytes = std::min(rest.size(), into.size());
    std::memcpy(into.data(), rest.data(), bytes);
    into = into.subspan(bytes);
    begin += bytes;
    if (held != held_.end()) ++held;
  }
  return {};
}

std::uint64_t DrainShare::planning_bytes() const {
  std::uint64_t blocks = 0;
  for (const aggregate::Source& source : sources) blocks += source.blocks.size();
  return aggregate::planning_bytes(manifest_bytes.size(), blocks);
}

std::vector<std::byte> DrainShare::encode_head() const {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.field(std::uint64_t{manifest_bytes.size()});
  for (const aggregate::Source& source : sources) {
    writer.pair(source.id.key.run, source.id.key.version);
    writer.field(source.id.rank);
    writer.field(source.keeper);
    writer.field(places.at(source.id));
    writer.field(source.block_bytes);
    writer.field(std::uint64_t{source.blocks.size()});
  }
  return bytes;
}

std::vector<std::byte> DrainShare::encode_part(std::uint64_t begin, std::uint64_t most) const {
  std::vector<std::byte> bytes;
  bytes.reserve(most + kWireBlockBytes);
  format::WireWriter writer(bytes);
  if (begin < manifest_bytes.size()) {
    const auto rest = std::span(manifest_bytes).subspan(begin);
    writer.bytes(rest.first(std::min<std::uint64_t>(rest.size(), most)));
    begin += bytes.size();
  }
  if (begin < manifest_bytes.size()) return bytes;
  std::uint64_t skip = (begin - manifest_bytes.size()) / kWireBlockBytes;
  for (const aggregate::Source& source : sources) {
    for (std::uint64_t i = skip; i < source.blocks.size(); ++i) {
      if (bytes.size() >= most) return bytes;
      const Block& block = source.blocks[i];
      writer.pair(block.fingerprint.low, block.fingerprint.high);
      writer.field(block.length);
      writer.field(block.offset);
      writer.field(static_cast<std::uint8_t>(source.needed[i]));
    }
    skip -= std::min<std::uint64_t>(skip, source.blocks.size());
  }
  return bytes;
}

std::uint64_t DrainShare::parts_bytes() const {
  std::uint64_t bytes = manifest_bytes.size();
  for (const aggregate::Source& source : sources) bytes += kWireBlockBytes * source.blocks.size();
  return bytes;
}

Result<ComingShare> ComingShare::decode_head(std::span<const std::byte> head) {
  format::WireReader reader(head);
  ComingShare coming;
  coming.bytes_ = coming.manifest_bytes_ = reader.field<std::uint64_t>();
  while (reader.remaining() > 0 && !reader.failed()) {
    aggregate::Source& source = coming.share_.sources.emplace_back();
    source.id.key.run = reader.field<Run>();
    source.id.key.version = reader.field<Version>();
    source.id.rank = reader.field<Rank>();
    source.keeper = reader.field<Rank>();
    coming.share_.places[source.id] = reader.field<catalog::Whereabouts::Place>();
    source.block_bytes = reader.field<std::uint32_t>();
    coming.blocks_.push_back(reader.field<std::uint64_t>());
    coming.bytes_ += kWireBlockBytes * coming.blocks_.back();
  }
  if (reader.failed())
    return fail(Code::corruption, "what a rank told of its segments is cut short");
  return coming;
}

std::uint64_t ComingShare::planning_bytes() const {
  return aggregate::planning_bytes(
      manifest_bytes_, std::accumulate(blocks_.begin(), blocks_.end(), std::uint64_t{0}));
}

Result<void> ComingShare::take(std::span<const std::byte> part) {
  if (part.empty() || part.size() > bytes_ - taken_)
    return fail(Code::corruption, "a rank has told too little or too much of its segments");
  taken_ += part.size();
  auto& manifest = share_.manifest_bytes;
  manifest.reserve(manifest_bytes_);
  const auto front = part.first(std::min(part.size(), manifest_bytes_ - manifest.size()));
  manifest.insert(manifest.end(), front.begin(), front.end());
  format::WireReader reader(part.subspan(front.size()));
  while (reader.remaining() >= kWireBlockBytes) {
    while (share_.sources[source_].blocks.size() == blocks_[source_]) ++source_;
    aggregate::Source& source = share_.sources[source_];
    source.blocks.reserve(blocks_[source_]);
    Block& block = source.blocks.emplace_back();
    block.fingerprint.low = reader.field<std::uint64_t>();
    block.fingerprint.high = reader.field<std::uint64_t>();
    block.length = reader.field<std::uint32_t>();
    block.offset = reader.field<std::uint64_t>();
    source.needed.push_back(reader.field<std::uint8_t>() != 0);
  }
  if (reader.remaining() > 0)
    return fail(Code::corruption, "what a rank told of its segments is cut short");
  return {};
}

}  // namespace belay::session
