// SPDX-License-Identifier: Apache-2.0
#include "session/drain.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "store/segment_file.hpp"
#include "vote/claim.hpp"

#include <algorithm>
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

}  // namespace

Drain::Drain(DrainPlaces places, const Manifest& manifest, aggregate::RankSet set,
             std::vector<DrainTask> tasks)
    : places_(places),
      origin_(manifest.origin),
      hash_(manifest.hash),
      block_bytes_(manifest.block_bytes),
      set_(std::move(set)),
      tasks_(std::move(tasks)) {
  for (const SegmentRef& segment : manifest.segments) segments_.push_back(segment.id);
}

void Drain::run() {
  result_ = within_memory([&] { return set_.members.empty() ? Result<void>{} : drain(); });
  carried_ = {};
  manifests_ = {};
  sources_ = {};
  finished_.store(true, std::memory_order_release);
}

void Drain::abandon(const Error& error) {
  result_ = Unexpected(error);
  finished_.store(true, std::memory_order_release);
}

Result<void> Drain::drain() {
  for (const Rank rank : set_.members) {
    BELAY_ASSIGN(auto manifest, read_manifest(rank));
    manifests_.push_back(std::move(manifest));
  }
  BELAY_TRY(find_sources());
  return write();
}

Result<Manifest> Drain::read_manifest(Rank rank) {
  // The block table in memory is overwritten by the next capture: the file is read instead.
  const std::string name = format::manifest_name(origin_.key, rank);
  BELAY_ASSIGN(auto bytes, store::read_whole(places_.nodes, name, format::check_manifest_front));
  const std::string where = places_.nodes.place() + "/" + name;
  BELAY_ASSIGN(auto manifest, within(where, format::decode_manifest(bytes)));
  Origin expected = origin_;
  expected.rank = rank;
  if (manifest.origin != expected)
    return fail(Code::corruption, "{}: its content is another file's", where);
  carried_.push_back({rank, std::move(bytes)});
  return manifest;
}

Result<void> Drain::find_sources() {
  for (const DrainTask& task : tasks_) {
    if (cancelled_.load(std::memory_order_relaxed))
      return fail(Code::invalid_argument, "the session ended before");
    BELAY_ASSIGN(auto source, source_of(task));
    if (source) sources_.push_back(*std::move(source));
  }
  return {};
}

Result<std::optional<aggregate::Source>> Drain::source_of(const DrainTask& task) {
  std::optional<aggregate::Source> none;
  std::vector<Block> live;
  for (const Manifest& manifest : manifests_)
    if (!task.whole && manifest.origin.rank == task.id.rank) live = live_blocks(manifest, task.id);
  if (!task.whole && live.empty()) return none;
  auto& place = store::place_in(places_.nodes, task.directory);
  auto segment = store::SegmentFile::open(place, task.id, origin_.store, {});
  if (!segment) {
    damaged_.push_back({task.id, FileKind::segment, task.place});
    return Unexpected(segment.error());
  }
  aggregate::Source source{task.id, std::make_shared<store::SegmentFile>(*std::move(segment)), {}};
  for (const Block& block : source.file->blocks())
    source.needed.push_back(task.whole ||
                            std::binary_search(live.begin(), live.end(), block, by_content));
  leave_out_copied(task, source);
  const bool any =
      std::find(source.needed.begin(), source.needed.end(), true) != source.needed.end();
  return any ? std::optional(std::move(source)) : none;
}

void Drain::leave_out_copied(const DrainTask& task, aggregate::Source& source) const {
  for (const std::string& directory : task.copied) {
    auto& place = store::place_in(places_.sight, directory);
    auto copy = store::SegmentFile::open(place, task.id, origin_.store, {}, FileKind::copy);
    if (!copy) {
      places_.log.warn("global tier: {}; it is written again", copy.error().message());
      continue;
    }
    copy->sort_blocks();
    const auto& blocks = source.file->blocks();
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (copy->find(blocks[i].fingerprint, blocks[i].length) != nullptr) source.needed[i] = false;
  }
}

Result<void> Drain::write() {
  const SegmentId id{origin_.key, set_.number};
  const std::string name = format::bundle_name(id);
  const std::string temporary = format::temporary_name(name);
  (void)places_.global.remove(temporary);  // left by a drain that did not end
  const auto plan = aggregate::plan_bundle(sources_, manifests_,
                                           aggregate::extent_bytes_for(places_.memory_bytes));
  const aggregate::Tools tools{
      places_.global,
      places_.chooser,
      places_.clock,
      [&](std::span<const std::span<const std::byte>> blocks, std::span<Fingerprint> names) {
        places_.hasher.hash(blocks, names);
      },
      places_.encoders,
      places_.memory_bytes,
      cancelled_};
  format::SegmentHeader header{origin_, hash_, block_bytes_};
  header.origin.rank = set_.number;
  const bool early = planted(Mistake::drain_early);
  std::optional<std::size_t> damaged;
  auto written = aggregate::write_bundle(tools, early ? name : temporary, header, sources_, plan,
                                         carried_, damaged);
  if (damaged) {
    const SegmentId& source = sources_[*damaged].id;
    const auto task = std::find_if(tasks_.begin(), tasks_.end(),
                                   [&](const DrainTask& each) { return each.id == source; });
    damaged_.push_back({source, FileKind::segment, task->place});
  }
  Result<void> done;
  if (!written) done = Unexpected(written.error());
  if (written && !early) done = publish(temporary, name);
  if (!done) {
    (void)places_.global.remove(temporary);
    return done;
  }
  written_ = *written;
  bundle_ = id;
  for (const aggregate::Source& source : sources_) bundled_.push_back(source.id);
  return {};
}

/// From here on the ranks of the set have voted on the global tier.
Result<void> Drain::publish(const std::string& temporary, const std::string& name) {
  BELAY_TRY(vote::check_still_ours(places_.global, origin_.key.run));
  return places_.global.publish(temporary, name, /*exclusive=*/false);
}

}  // namespace belay::session
