// SPDX-License-Identifier: Apache-2.0
#include "session/drain.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/wire.hpp"
#include "session/copy_extents.hpp"
#include "store/file_writer.hpp"
#include "vote/claim.hpp"

#include <algorithm>
#include <map>

namespace belay::session {
namespace {

// Reads of this size reach a disk's speed; a block with what it shares pages with fits.
constexpr std::uint64_t kReadBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kWriteBytes = std::uint64_t{1} << 20;
static_assert(kReadBytes >= 2 * std::uint64_t{kMaxBlockBytes});

bool by_content(const store::StoredBlock& a, const store::StoredBlock& b) {
  return std::tie(a.fingerprint.low, a.fingerprint.high, a.length) <
         std::tie(b.fingerprint.low, b.fingerprint.high, b.length);
}

/// What the manifest needs of each segment of its own rank, sorted by content.
std::map<SegmentId, std::vector<store::StoredBlock>> live_blocks(const Manifest& manifest) {
  std::map<SegmentId, std::vector<store::StoredBlock>> live;
  for (const RegionRecord& region : manifest.regions)
    for (std::uint64_t i = 0; i < manifest.blocks_of(region); ++i) {
      const std::uint64_t block = region.first_block + i;
      const SegmentId& id = manifest.segments[manifest.holders[block]].id;
      live[id].push_back({manifest.fingerprints[block], manifest.length_of(region, i), 0});
    }
  for (auto& [id, blocks] : live) std::sort(blocks.begin(), blocks.end(), by_content);
  return live;
}

}  // namespace

Drain::Drain(DrainPlaces places, const Manifest& manifest, std::vector<DrainTask> tasks)
    : places_(places), origin_(manifest.origin), tasks_(std::move(tasks)) {
  for (const SegmentRef& segment : manifest.segments) segments_.push_back(segment.id);
}

void Drain::run() {
  result_ = within_memory([&] { return drain(); });
  read_buffer_ = {};
  write_buffer_ = {};
  finished_.store(true, std::memory_order_release);
}

void Drain::abandon(const Error& error) {
  result_ = Unexpected(error);
  finished_.store(true, std::memory_order_release);
}

Result<void> Drain::drain() {
  // The block table in memory is overwritten by the next capture: the file is read instead.
  const std::string name = format::manifest_name(origin_.key, origin_.rank);
  BELAY_ASSIGN(const auto bytes,
               store::read_whole(places_.nodes, name, format::check_manifest_front));
  BELAY_ASSIGN(const Manifest manifest,
               within(places_.nodes.place() + "/" + name, format::decode_manifest(bytes)));
  if (manifest.origin != origin_)
    return fail(Code::corruption, "{}/{}: its content is another file's", places_.nodes.place(),
                name);
  if (!planted(Mistake::drain_early)) BELAY_TRY(copy_segments(manifest));
  BELAY_TRY(publish_manifest(bytes));
  if (planted(Mistake::drain_early)) BELAY_TRY(copy_segments(manifest));
  return {};
}

Result<void> Drain::copy_segments(const Manifest& manifest) {
  const auto live = live_blocks(manifest);
  for (const DrainTask& task : tasks_) {
    if (cancelled_.load(std::memory_order_relaxed))
      return fail(Code::invalid_argument, "the session ended before");
    const auto found = live.find(task.id);
    const std::vector<Block> needed = found == live.end() ? std::vector<Block>{} : found->second;
    if (!task.whole && needed.empty()) continue;
    if (!is_there(task, needed)) BELAY_TRY(copy_segment(task, needed));
  }
  return places_.global.sync_names();
}

bool Drain::is_there(const DrainTask& task, const std::vector<Block>& needed) const {
  for (const std::string& directory : task.copied) {
    auto& place = store::place_in(places_.sight, directory);
    auto copy = store::SegmentFile::open(place, task.id, origin_.store, {}, FileKind::copy);
    if (!copy) {
      places_.log.warn("global tier: {}; it is copied again", copy.error().message());
      continue;
    }
    if (copy->complete()) return true;
    copy->sort_blocks();
    if (!task.whole && std::all_of(needed.begin(), needed.end(), [&](const Block& block) {
          return copy->find(block.fingerprint, block.length) != nullptr;
        }))
      return true;
  }
  return false;
}

Result<void> Drain::copy_segment(const DrainTask& task, const std::vector<Block>& needed) {
  auto& place = store::place_in(places_.nodes, task.directory);
  auto segment = store::SegmentFile::open(place, task.id, origin_.store, {});
  if (!segment) {
    damaged_.push_back({task.id, FileKind::segment, task.place});
    return Unexpected(segment.error());
  }
  // A name that is taken is of a copy with too few blocks, or of a drain that did not end: versions
  // there may count on it, so that only a larger one may take its place, at once.
  const std::string name = format::copy_name(task.id);
  const bool taken = places_.global.touch(name).has_value();
  std::vector<bool> present;
  for (const Block& block : segment->blocks())
    present.push_back(task.whole || taken ||
                      std::binary_search(needed.begin(), needed.end(), block, by_content));
  BELAY_TRY(make_buffers(segment->file_bytes()));
  const std::string target = taken ? format::temporary_name(name) : name;
  if (taken) (void)places_.global.remove(target);  // left by a drain that did not end
  auto written = write_copy(*segment, present, target);
  if (written && taken) {
    written = vote::check_still_ours(places_.global, origin_.key.run);
    if (written) written = places_.global.publish(target, name, /*exclusive=*/false);
  }
  if (!written) {
    if (written.error().code() == Code::corruption)
      damaged_.push_back({task.id, FileKind::segment, task.place});
    (void)places_.global.remove(target);
    return written;
  }
  copies_.push_back(task.id);
  return {};
}

Result<void> Drain::make_buffers(std::uint64_t segment_bytes) {
  const auto grow = [&](os::AlignedMemory& buffer, std::uint64_t most) -> Result<void> {
    const std::uint64_t wanted = std::min(most, segment_bytes);
    if (buffer.bytes().size() >= wanted) return {};
    BELAY_ASSIGN(buffer, os::AlignedMemory::allocate(wanted));
    return {};
  };
  BELAY_TRY(grow(read_buffer_, kReadBytes));
  return grow(write_buffer_, kWriteBytes);
}

Result<std::span<const std::byte>> Drain::read_run(store::SegmentFile& segment, std::size_t first,
                                                   std::size_t last) {
  const std::span<const Block> blocks(segment.blocks().data() + first, last - first);
  const std::uint64_t begin = blocks.front().offset / os::kDirectAlignment * os::kDirectAlignment;
  const std::uint64_t end = format::round_up(blocks.back().end(), os::kDirectAlignment);
  const auto pages = read_buffer_.bytes().first(end - begin);
  BELAY_ASSIGN(const std::size_t got, segment.file().read(begin, pages));
  if (begin + got < blocks.back().end())
    return fail(Code::corruption, "{}: ends at byte {}", segment.where(), begin + got);
  std::vector<fingerprint::Block> contents;
  for (const Block& block : blocks)
    contents.push_back(pages.subspan(block.offset - begin, block.length));
  std::vector<Fingerprint> found(contents.size());
  places_.hasher.hash(contents, found);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (found[i] != blocks[i].fingerprint)
      return fail(Code::corruption, "{}: the block at byte {} is damaged", segment.where(),
                  blocks[i].offset);
  return std::span<const std::byte>(
      pages.subspan(blocks.front().offset - begin, blocks.back().end() - blocks.front().offset));
}

Result<void> Drain::write_copy(store::SegmentFile& segment, const std::vector<bool>& present,
                               const std::string& name) {
  format::SegmentHeader header = segment.header();
  header.partial = std::find(present.begin(), present.end(), false) != present.end();
  BELAY_ASSIGN(auto writer, store::FileWriter::create(places_.global, name));
  writer.lend(write_buffer_.bytes());
  BELAY_TRY(writer.append(format::encode_segment_header(header)));
  const auto& blocks = segment.blocks();
  std::vector<format::IndexEntry> entries;
  for (const Block& block : blocks) entries.push_back({block.fingerprint, block.length});
  for (std::size_t first = 0; first < blocks.size();) {
    std::size_t last = first;
    while (last < blocks.size() && present[last] &&
           blocks[last].end() - blocks[first].offset <= kReadBytes - 2 * os::kDirectAlignment)
      ++last;
    if (last == first) {
      ++first;
      continue;
    }
    if (cancelled_.load(std::memory_order_relaxed))
      return fail(Code::invalid_argument, "the session ended before");
    BELAY_ASSIGN(const auto bytes, read_run(segment, first, last));
    BELAY_TRY(writer.append(bytes));
    first = last;
  }
  std::size_t next = 0;
  BELAY_TRY(format::encode_segment_end(writer, header, extents_of(entries, present), entries.size(),
                                       [&] { return entries[next++]; }));
  bytes_ += writer.offset();
  return writer.finish(planted(Mistake::skip_copy_sync));
}

Result<void> Drain::publish_manifest(std::span<const std::byte> bytes) {
  const std::string name = format::manifest_name(origin_.key, origin_.rank);
  BELAY_TRY(store::prepare_whole(places_.global, name, bytes));
  BELAY_TRY(vote::check_still_ours(places_.global, origin_.key.run));
  BELAY_TRY(places_.global.publish(format::temporary_name(name), name, /*exclusive=*/false));
  bytes_ += bytes.size();
  return {};
}

}  // namespace belay::session
