// SPDX-License-Identifier: Apache-2.0
#include "session/bundle_draft.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"

#include <algorithm>
#include <memory>

namespace belay::session {
namespace {

/// A segment of one of the group.
struct Place {
  ShareReader* share = nullptr;
  std::size_t segment = 0;

  const SharedSegment& head() const { return share->head().segments[segment]; }
};

/// All segments of the group, by rising id.
std::vector<Place> places_of(std::vector<ShareReader>& group) {
  std::vector<Place> places;
  for (ShareReader& share : group)
    for (std::size_t i = 0; i < share.head().segments.size(); ++i) places.push_back({&share, i});
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.head().id < b.head().id; });
  return places;
}

/// All at once: tables of the whole group are in memory, and variables of its ranks lie together.
Result<void> draft_whole(std::vector<ShareReader>& group, const std::vector<Place>& places,
                         const NameMatch& match, BundleDraft& made) {
  auto chapter = std::make_shared<aggregate::Chapter>();
  std::vector<std::shared_ptr<os::PagedVector<std::byte>>> bytes;
  std::vector<format::ManifestView> manifests;
  for (ShareReader& share : group) {
    BELAY_ASSIGN(auto read, share.manifest());
    bytes.push_back(std::make_shared<os::PagedVector<std::byte>>(std::move(read)));
    BELAY_ASSIGN(auto manifest, format::view_manifest(*bytes.back()));
    manifests.push_back(std::move(manifest));
    made.draft.manifests.push_back(
        {share.rank(), bytes.back()->size(),
         [manifest_bytes = bytes.back()](ByteSink& sink) { return sink.append(*manifest_bytes); }});
  }
  for (const Place& place : places) {
    BELAY_ASSIGN(auto source, place.share->source(place.segment));
    chapter->sources.push_back(std::move(source));
  }
  chapter->plan =
      aggregate::plan_bundle(chapter->sources, manifests, made.portions.extent_bytes, match);
  // It is asked for once.
  made.draft.chapter = [chapter](std::size_t) { return Result(std::move(*chapter)); };
  return {};
}

/// Some blocks of a segment at a time.
class Chapters {
 public:
  Chapters(ShareReader& share, Manifest manifest, std::uint64_t most_blocks,
           std::uint64_t extent_bytes, const NameMatch& match)
      : share_(share), manifest_(std::move(manifest)), extent_bytes_(extent_bytes), match_(match) {
    const auto& segments = share.head().segments;
    for (std::size_t i = 0; i < segments.size(); ++i)
      for (std::uint64_t first = 0; first < segments[i].blocks; first += most_blocks)
        parts_.push_back({i, first, std::min(most_blocks, segments[i].blocks - first)});
  }

  /// A rank that brings no blocks has one, which is empty.
  std::size_t count() const { return std::max<std::size_t>(parts_.size(), 1); }

  Result<aggregate::Chapter> read(std::size_t number) const {
    if (parts_.empty()) return aggregate::Chapter{};
    const Part& part = parts_[number];
    BELAY_ASSIGN(auto slice, share_.slice(part.segment, part.first, part.count));
    aggregate::Chapter chapter{part.segment, {}, {}};
    chapter.plan =
        aggregate::plan_in_order(slice.source, manifest_, slice.regions, extent_bytes_, match_);
    chapter.sources.push_back(std::move(slice.source));
    return chapter;
  }

 private:
  struct Part {
    std::size_t segment = 0;
    std::uint64_t first = 0, count = 0;
  };
  ShareReader& share_;
  const Manifest manifest_;
  const std::uint64_t extent_bytes_;
  const NameMatch& match_;
  std::vector<Part> parts_;
};

Result<void> draft_in_chapters(ShareReader& share, std::uint64_t most_blocks,
                               const NameMatch& match, BundleDraft& made) {
  BELAY_ASSIGN(auto manifest, share.manifest_head());
  const auto chapters = std::make_shared<const Chapters>(share, std::move(manifest), most_blocks,
                                                         made.portions.extent_bytes, match);
  made.draft.chapters = chapters->count();
  made.draft.chapter = [chapters](std::size_t number) { return chapters->read(number); };
  made.draft.manifests.push_back({share.rank(), share.head().manifest_bytes,
                                  [&share](ByteSink& sink) { return share.copy_manifest(sink); }});
  return {};
}

}  // namespace

Result<BundleDraft> make_draft(std::vector<ShareReader>& group, const DraftMeans& means) {
  BundleDraft made;
  std::uint64_t blocks = 0, planning = 0;
  for (const ShareReader& share : group) {
    blocks += share.head().blocks();
    planning += share.head().planning_bytes();
  }
  const auto places = places_of(group);
  for (const Place& place : places) {
    const SharedSegment& head = place.head();
    made.sources.push_back({place.share->rank(), head.id, head.place});
    made.draft.segments.push_back({head.id, head.block_bytes, head.blocks});
  }
  const bool fits = planning <= aggregate::most_planning_bytes(means.memory_bytes);
  const std::uint64_t most_blocks = aggregate::most_chapter_blocks(means.memory_bytes);
  made.portions =
      aggregate::divide_memory(means.memory_bytes, fits ? blocks : std::min(blocks, most_blocks),
                               means.block_bytes, means.encoders);
  if (fits)
    BELAY_TRY(draft_whole(group, places, means.match, made));
  else
    BELAY_TRY(draft_in_chapters(group.front(), most_blocks, means.match, made));
  return made;
}

}  // namespace belay::session
