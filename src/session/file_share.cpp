// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "format/names.hpp"
#include "session/drain_share.hpp"
#include "session/liveness.hpp"
#include "store/bundle.hpp"
#include "store/manifest_table.hpp"
#include "store/places.hpp"

#include <algorithm>
#include <memory>
#include <optional>

namespace belay::session {
namespace {

/// Of a segment, compared at a time with what the tier has of it.
constexpr std::uint64_t kComparedBlocks = 1024;
/// Bundles that stay open while it is found out what the tier lacks.
constexpr std::size_t kMostOpened = 64;

bool any_needed(const LiveSegment& segment) {
  return std::find(segment.needed.begin(), segment.needed.end(), true) != segment.needed.end();
}

/// Blocks of a segment as the tier tells of them, in the order of the segment; those that it has
/// are not needed any more, once all of it has turned out to be true.
class Elsewhere {
 public:
  Elsewhere(LiveSegment& segment, store::PageReader& reader)
      : segment_(segment), reader_(reader), there_(segment.needed.size(), false) {}

  /// The next one; `is_there`: the tier has it.
  Result<void> add(const Fingerprint& fingerprint, std::uint32_t length, bool is_there) {
    told_.push_back({{fingerprint, length, 0}, is_there});
    return told_.size() < kComparedBlocks ? Result<void>{} : compare();
  }
  Result<void> finish() {
    BELAY_TRY(compare());
    for (std::size_t i = 0; i < there_.size(); ++i)
      if (there_[i]) segment_.needed[i] = false;
    return {};
  }

 private:
  Result<void> compare() {
    if (first_ + told_.size() > there_.size())
      return fail(Code::corruption, "{} has fewer blocks than a copy of it",
                  format::segment_name(segment_.id));
    std::size_t i = 0;
    BELAY_TRY(segment_.table->read(first_, told_.size(), reader_, [&](const auto& block, bool) {
      const auto& [told, is_there] = told_[i];
      there_[first_ + i++] =
          is_there && told.fingerprint == block.fingerprint && told.length == block.length;
    }));
    first_ += told_.size();
    told_.clear();
    return {};
  }

  LiveSegment& segment_;
  store::PageReader& reader_;
  std::vector<bool> there_;
  std::vector<std::pair<store::StoredBlock, bool>> told_;
  std::uint64_t first_ = 0;  ///< of what was told last
};

Result<void> leave_out_bundle(store::Bundle& bundle, LiveSegment& segment,
                              store::PageReader& reader) {
  const auto number = bundle.rider().find(segment.id);
  if (!number || bundle.rider().segments[*number].blocks != segment.needed.size()) return {};
  Elsewhere elsewhere(segment, reader);
  Result<void> compared;
  BELAY_TRY(bundle.each_block_of(*number, [&](const format::BundledBlock& block) {
    if (compared)
      compared =
          elsewhere.add(block.fingerprint, block.length, block.entry != format::kNotInBundle);
  }));
  BELAY_TRY(compared);
  return elsewhere.finish();
}

Result<void> leave_out_copy(store::Tier& place, const StoreId& store, LiveSegment& segment,
                            store::PageReader& reader) {
  store::PageReader of_copy;
  BELAY_ASSIGN(auto copy, store::SegmentTable::open(place, segment.id, store, FileKind::copy));
  Elsewhere elsewhere(segment, reader);
  Result<void> compared;
  BELAY_TRY(
      copy.read(0, copy.entries(), of_copy, [&](const store::StoredBlock& block, bool present) {
        if (compared) compared = elsewhere.add(block.fingerprint, block.length, present);
      }));
  BELAY_TRY(compared);
  return elsewhere.finish();
}

/// Of blocks that are needed, those that the tier has are not any more. What bundles have is told
/// by their riders; a copy put together from them would take several times as much memory. `opened`
/// are bundles that others may want to read next.
void leave_out_copied(const DrainSources& from, const DrainTask& task, const StoreId& store,
                      std::vector<std::shared_ptr<store::Bundle>>& opened, LiveSegment& segment) {
  store::PageReader reader;
  const auto warn = [&](const Error& error) {
    from.log.warn("global tier: {}; it is written again", error.message());
  };
  for (const std::string& directory : task.copied) {
    if (!any_needed(segment)) return;
    auto& place = store::place_in(from.sight, directory);
    const auto bundles = place.bundles_with(segment.id);
    for (const auto& bundle : bundles) {
      if (const auto left_out = leave_out_bundle(*bundle, segment, reader); !left_out)
        warn(left_out.error());
      if (opened.size() < kMostOpened) opened.push_back(bundle);
    }
    if (!bundles.empty()) continue;  // what a file beside them has is written once more
    if (const auto left_out = leave_out_copy(place, store, segment, reader); !left_out)
      warn(left_out.error());
  }
}

OwnShare::Segment share_of(LiveSegment live, const DrainTask& task) {
  const auto table = std::move(live.table);
  OwnShare::Segment segment;
  segment.head = {live.id, task.place, table->header().block_bytes, table->entries()};
  segment.needed = std::move(live.needed);
  segment.runs = std::move(live.runs);
  segment.tell = [table](std::uint64_t first, std::uint64_t count, store::PageReader& reader,
                         const store::SegmentTable::Take& take) {
    return table->read(first, count, reader, take);
  };
  segment.read = [table](std::uint64_t begin, std::span<std::byte> into,
                         store::PageReader& reader) {
    return reader.read(table->file(), begin, into);
  };
  return segment;
}

}  // namespace

Result<OwnShare> open_share(const DrainSources& from, const Origin& origin,
                            const std::vector<DrainTask>& tasks, std::vector<LostFile>& damaged) {
  store::PageReader reader;
  // The block table in memory is overwritten by the next capture: the file is read instead.
  const std::string name = format::manifest_name(origin.key, origin.rank);
  BELAY_ASSIGN(auto opened, store::ManifestTable::open(from.nodes, name, reader));
  const auto manifest = std::make_shared<const store::ManifestTable>(std::move(opened));
  const Manifest& head = manifest->head();
  if (head.origin != origin)
    return fail(Code::corruption, "{}/{}: its content is another file's", from.nodes.place(), name);
  std::vector<const DrainTask*> own;
  std::vector<LiveSegment> live;
  const auto blame = [&](const DrainTask& task) {
    damaged.push_back({task.id, FileKind::segment, task.place});
  };
  for (const DrainTask& task : tasks) {
    if (task.keeper != origin.rank) continue;
    const auto holder = holder_of(head, task.id);
    if (!task.whole && !(holder && manifest->is_used(*holder))) continue;
    auto table = store::SegmentTable::open(store::place_in(from.nodes, task.directory), task.id,
                                           origin.store);
    if (!table) {
      blame(task);
      return Unexpected(table.error());
    }
    own.push_back(&task);
    const auto shared = std::make_shared<const store::SegmentTable>(*std::move(table));
    live.push_back({task.id, shared, std::vector<bool>(shared->entries(), task.whole)});
  }
  std::optional<std::size_t> failed;
  if (auto marked = mark_live(*manifest, live, from.memory_bytes, failed); !marked) {
    if (failed) blame(*own[*failed]);
    return Unexpected(marked.error());
  }
  std::vector<OwnShare::Segment> segments;
  std::vector<std::shared_ptr<store::Bundle>> bundles;
  for (std::size_t i = 0; i < live.size(); ++i) {
    leave_out_copied(from, *own[i], origin.store, bundles, live[i]);
    if (any_needed(live[i])) segments.push_back(share_of(std::move(live[i]), *own[i]));
  }
  std::sort(segments.begin(), segments.end(),
            [](const auto& a, const auto& b) { return a.head.id < b.head.id; });
  return OwnShare(
      manifest->file_bytes(),
      [manifest](std::uint64_t begin, std::span<std::byte> into, store::PageReader& pages) {
        return manifest->read(begin, into, pages);
      },
      std::move(segments));
}

}  // namespace belay::session
