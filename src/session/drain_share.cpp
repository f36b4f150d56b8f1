// SPDX-License-Identifier: Apache-2.0
#include "session/drain_share.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/vector_sink.hpp"
#include "format/wire.hpp"
#include "store/pages.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace belay::session {
namespace {

using Block = store::StoredBlock;

bool by_content(const Block& a, const Block& b) {
  return std::tie(a.fingerprint.low, a.fingerprint.high, a.length) <
         std::tie(b.fingerprint.low, b.fingerprint.high, b.length);
}

/// What the manifest needs of this segment, sorted by content.
std::vector<Block> live_blocks(const Manifest& manifest, const SegmentId& id) {
  std::vector<Block> live;
  const auto& segments = manifest.segments;
  const auto is_it = [&](const SegmentRef& segment) { return segment.id == id; };
  const auto holder = std::find_if(segments.begin(), segments.end(), is_it) - segments.begin();
  for (const RegionRecord& region : manifest.regions)
    for (std::uint64_t i = 0; i < manifest.blocks_of(region); ++i) {
      const std::uint64_t block = region.first_block + i;
      if (manifest.holders[block] == holder)
        live.push_back({manifest.fingerprints[block], manifest.length_of(region, i), 0});
    }
  std::sort(live.begin(), live.end(), by_content);
  return live;
}

/// Of blocks that are needed, those that the tier has are not any more.
void leave_out_copied(const DrainSources& from, const DrainTask& task, const StoreId& store,
                      aggregate::Source& source) {
  for (const std::string& directory : task.copied) {
    auto& place = store::place_in(from.sight, directory);
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
  BELAY_ASSIGN(own.share_.manifest_bytes,
               store::read_whole(from.nodes, name, format::check_manifest_front));
  BELAY_ASSIGN(own.share_.manifest,
               within(where, format::decode_manifest(own.share_.manifest_bytes)));
  if (own.share_.manifest.origin != origin)
    return fail(Code::corruption, "{}: its content is another file's", where);
  for (const DrainTask& task : tasks)
    if (task.keeper == origin.rank) BELAY_TRY(own.open_segment(from, task, damaged));
  return own;
}

Result<OwnShare> OwnShare::of_memory(const Manifest& manifest,
                                     std::span<const std::span<const std::byte>> blocks,
                                     std::span<const Fingerprint> fingerprints) {
  OwnShare own;
  format::VectorSink encoded;
  BELAY_TRY(format::encode_manifest(manifest, encoded));
  own.share_.manifest_bytes.assign(encoded.bytes().begin(), encoded.bytes().end());
  own.share_.manifest = manifest;
  if (blocks.empty()) return own;
  const SegmentId id{manifest.origin.key, manifest.origin.rank};
  aggregate::Source source{id, id.rank, manifest.block_bytes, {}, {}};
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    source.blocks.push_back(
        {fingerprints[i], static_cast<std::uint32_t>(blocks[i].size()), offset});
    own.held_.emplace_hint(own.held_.end(), offset, blocks[i]);
    offset += blocks[i].size();
  }
  source.needed.assign(blocks.size(), true);
  own.share_.sources.push_back(std::move(source));
  own.share_.places[id] = 0;  // no file that could be damaged
  return own;
}

Result<void> OwnShare::open_segment(const DrainSources& from, const DrainTask& task,
                                    std::vector<LostFile>& damaged) {
  const Manifest& manifest = share_.manifest;
  const auto live = task.whole ? std::vector<Block>{} : live_blocks(manifest, task.id);
  if (!task.whole && live.empty()) return {};
  auto& place = store::place_in(from.nodes, task.directory);
  auto file = store::SegmentFile::open(place, task.id, manifest.origin.store, {});
  if (!file) {
    damaged.push_back({task.id, FileKind::segment, task.place});
    return Unexpected(file.error());
  }
  aggregate::Source source{
      task.id, task.keeper, file->header().block_bytes, file->take_blocks(), {}};
  for (const Block& block : source.blocks)
    source.needed.push_back(task.whole ||
                            std::binary_search(live.begin(), live.end(), block, by_content));
  leave_out_copied(from, task, manifest.origin.store, source);
  if (std::find(source.needed.begin(), source.needed.end(), true) == source.needed.end()) return {};
  share_.sources.push_back(std::move(source));
  share_.places[task.id] = task.place;
  files_.emplace(task.id, *std::move(file));
  return {};
}

Result<void> OwnShare::read(const SegmentId& id, std::uint64_t begin, std::span<std::byte> into) {
  if (!held_.empty()) return copy_held(begin, into);
  const auto file = files_.find(id);
  if (file == files_.end())
    return fail(Code::not_found, "{} is not looked after here", format::segment_name(id));
  BELAY_ASSIGN(const auto pages,
               store::read_pages(file->second.file(), begin, begin + into.size()));
  std::memcpy(into.data(), pages.bytes().data(), into.size());
  return {};
}

Result<void> OwnShare::copy_held(std::uint64_t begin, std::span<std::byte> into) const {
  auto held = held_.upper_bound(begin);
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

std::vector<std::byte> DrainShare::encode() const {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.field(std::uint64_t{manifest_bytes.size()});
  writer.bytes(manifest_bytes);
  writer.field(std::uint64_t{sources.size()});
  for (const aggregate::Source& source : sources) {
    writer.pair(source.id.key.run, source.id.key.version);
    writer.field(source.id.rank);
    writer.field(source.keeper);
    writer.field(places.at(source.id));
    writer.field(source.block_bytes);
    writer.field(std::uint64_t{source.blocks.size()});
    for (std::size_t i = 0; i < source.blocks.size(); ++i) {
      const Block& block = source.blocks[i];
      writer.pair(block.fingerprint.low, block.fingerprint.high);
      writer.field(block.length);
      writer.field(block.offset);
      writer.field(static_cast<std::uint8_t>(source.needed[i]));
    }
  }
  return bytes;
}

Result<DrainShare> DrainShare::decode(std::span<const std::byte> bytes) {
  format::WireReader reader(bytes);
  DrainShare share;
  const auto manifest = reader.bytes(reader.field<std::uint64_t>());
  share.manifest_bytes.assign(manifest.begin(), manifest.end());
  BELAY_ASSIGN(share.manifest, format::decode_manifest(share.manifest_bytes));
  for (auto left = reader.field<std::uint64_t>(); left > 0 && !reader.failed(); --left) {
    aggregate::Source& source = share.sources.emplace_back();
    source.id.key.run = reader.field<Run>();
    source.id.key.version = reader.field<Version>();
    source.id.rank = reader.field<Rank>();
    source.keeper = reader.field<Rank>();
    share.places[source.id] = reader.field<catalog::Whereabouts::Place>();
    source.block_bytes = reader.field<std::uint32_t>();
    for (auto blocks = reader.field<std::uint64_t>(); blocks > 0 && !reader.failed(); --blocks) {
      Block& block = source.blocks.emplace_back();
      block.fingerprint.low = reader.field<std::uint64_t>();
      block.fingerprint.high = reader.field<std::uint64_t>();
      block.length = reader.field<std::uint32_t>();
      block.offset = reader.field<std::uint64_t>();
      source.needed.push_back(reader.field<std::uint8_t>() != 0);
    }
  }
  if (reader.failed())
    return fail(Code::corruption, "what a rank told of its segments is cut short");
  return share;
}

}  // namespace belay::session
