// SPDX-License-Identifier: Apache-2.0
// From segments of ranks to a bundle, and what can be read of it.
#include "store/bundle.hpp"
#include "aggregate/bundle_plan.hpp"
#include "aggregate/bundle_writer.hpp"
#include "format/names.hpp"
#include "format/segment_maker_test.hpp"
#include "os/clock.hpp"
#include "os/memory_files.hpp"
#include "store/bundled_tier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace belay::aggregate {
namespace {

constexpr StoreId kStore{1, 2};
constexpr Rank kRanks = 4;
constexpr std::uint32_t kBlock = 512;

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return *std::move(result);
}

/// Equal contents have equal names, which is enough here.
Fingerprint name_of(std::span<const std::byte> bytes) {
  Fingerprint name{14695981039346656037u, bytes.size()};
  for (const std::byte byte : bytes)
    name.low = (name.low ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
  return name;
}

std::vector<std::byte> content(std::uint32_t number) {
  std::vector<std::byte> bytes(kBlock);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(number + (i / 64) * (number % 3));
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

class BundleTest : public testing::Test {
 protected:
  BundleTest() {
    for (const char* directory : {"/node", "/global"})
      if (!files_.make_directory(directory)) throw std::runtime_error(directory);
  }

  /// A segment of this rank with these contents, all needed.
  Source source(Rank rank, const std::vector<std::uint32_t>& numbers) {
    const SegmentId id{{1, 2}, rank};
    const format::SegmentHeader header{{kStore, 7, id.key, rank, kRanks}, HashKind::xxh3, kBlock};
    std::vector<format::MadeBlock> blocks;
    for (const std::uint32_t number : numbers)
      blocks.push_back({name_of(content(number)), content(number)});
    const auto bytes = format::make_segment(header, blocks);
    const auto file = must(files_.create("/node/" + format::segment_name(id), false));
    if (!file->write(0, bytes)) throw std::runtime_error("write");
    auto opened = must(store::SegmentFile::open(*nodes_, id, kStore, {}));
    return {id, opened.blocks(), std::vector<bool>(numbers.size(), true)};
  }

  /// Two regions: the first `split` blocks are `a`, the others `b`.
  static Manifest manifest(Rank rank, const std::vector<std::uint32_t>& numbers,
                           std::size_t split) {
    Manifest made;
    made.origin = {kStore, 7, {1, 2}, rank, kRanks};
    made.block_bytes = kBlock;
    const auto add = [&](const char* name, std::size_t blocks) {
      made.regions.push_back({name,
                              {ElementKind::f64, 8, {}},
                              Shape(blocks * kBlock / 8),
                              blocks * kBlock,
                              made.fingerprints.size()});
      for (std::size_t i = 0; i < blocks; ++i)
        made.fingerprints.push_back(name_of(content(numbers[made.fingerprints.size()])));
    };
    add("a", split);
    add("b", numbers.size() - split);
    made.holders.resize(numbers.size());
    return made;
  }

  static BundlePlan plan(const std::vector<Source>& sources, const std::vector<Manifest>& manifests,
                         std::uint64_t extent_bytes, const NameMatch& match = {}) {
    std::vector<format::ManifestView> views(manifests.begin(), manifests.end());
    return plan_bundle(sources, views, extent_bytes, match);
  }

  /// All of it in one chapter.
  Result<WrittenBundle> write(const std::vector<Source>& sources, const BundlePlan& planned,
                              unsigned encoders = 0) {
    return write(
        sources, 1,
        [&](std::size_t) {
          return Chapter{0, sources, planned};
        },
        encoders);
  }

  Result<WrittenBundle> write(const std::vector<Source>& sources, std::size_t chapters,
                              std::function<Result<Chapter>(std::size_t)> chapter,
                              unsigned encoders = 0) {
    const Tools tools{
        *global_,
        chooser_,
        os::system_clock(),
        [](std::span<const std::span<const std::byte>> blocks, std::span<Fingerprint> names) {
          for (std::size_t i = 0; i < blocks.size(); ++i) names[i] = name_of(blocks[i]);
        },
        [&](std::span<const Piece> pieces, std::optional<std::size_t>& damaged) {
          return read(sources, pieces, damaged);
        },
        encoders,
        divide_memory(1 << 20, 0, kBlock, encoders),
        cancelled_};
    const format::SegmentHeader header{{kStore, 7, {1, 2}, 0, kRanks}, HashKind::xxh3, kBlock};
    (void)global_->remove(format::bundle_name({{1, 2}, 0}));  // of another try
    Draft draft;
    for (const Source& source : sources)
      draft.segments.push_back({source.id, kBlock, source.blocks.size()});
    draft.manifests = {manifest_of(0, 4096, std::byte{1}), manifest_of(3, 8192, std::byte{2})};
    draft.chapters = chapters;
    draft.chapter = std::move(chapter);
    return write_bundle(tools, format::bundle_name({{1, 2}, 0}), header, std::move(draft),
                        damaged_);
  }

  static MemberManifest manifest_of(Rank rank, std::size_t bytes, std::byte value) {
    return {rank, bytes, [bytes, value](ByteSink& sink) {
              return sink.append(std::vector<std::byte>(bytes, value));
            }};
  }

  Result<void> read(const std::vector<Source>& sources, std::span<const Piece> pieces,
                    std::optional<std::size_t>& damaged) {
    for (const Piece& piece : pieces) {
      auto file = store::SegmentFile::open(*nodes_, sources[piece.source].id, kStore, {});
      const auto got = file ? file->file().read(piece.begin, piece.into)
                            : Result<std::size_t>(Unexpected(file.error()));
      if (got && *got == piece.into.size()) continue;
      damaged = piece.source;
      return Unexpected(Error(Code::corruption, "cannot be read"));
    }
    return {};
  }

  /// Of the copy that the bundle has of this rank's segment; empty: not in it.
  std::vector<std::vector<std::byte>> blocks_of(Rank rank) {
    auto copy =
        must(store::SegmentFile::open(*global_, {{1, 2}, rank}, kStore, {}, FileKind::copy));
    std::vector<std::vector<std::byte>> blocks;
    for (const store::StoredBlock& block : copy.blocks()) {
      blocks.emplace_back(block.length);
      EXPECT_EQ(must(copy.file().read(block.offset, blocks.back())), block.length);
    }
    return blocks;
  }

  os::MemoryFiles files_;
  std::unique_ptr<store::Tier> nodes_ = store::make_local_tier(files_, "/node");
  std::unique_ptr<store::Tier> global_ =
      store::make_bundled_tier(store::make_local_tier(files_, "/global"));
  codec::Chooser chooser_{{{}, "shuffle-zstd", 1e6}};
  std::atomic<bool> cancelled_ = false;
  std::optional<std::size_t> damaged_;
};

TEST_F(BundleTest, TheSameVariableOfAllRanksLiesTogetherAndEachContentOnce) {
  const std::vector<Source> sources = {source(0, {1, 2, 3, 4}), source(1, {1, 5, 3, 6})};
  const auto planned =
      plan(sources, {manifest(0, {1, 2, 3, 4}, 2), manifest(1, {1, 5, 3, 6}, 2)}, 1 << 20);
  ASSERT_EQ(planned.extents.size(), 2u);
  EXPECT_EQ(planned.variable_of(planned.extents[0]).name, "a");
  EXPECT_EQ(planned.extents[0].count, 3u) << "1, 2 and 5";
  EXPECT_EQ(planned.variable_of(planned.extents[1]).name, "b");
  EXPECT_EQ(planned.blocks.size(), 6u);
  EXPECT_EQ(planned.entries[1][0], planned.entries[0][0]);
}

TEST_F(BundleTest, VariablesWhoseNamesAMatchMakesEqualLieTogether) {
  const std::vector<Source> sources = {source(0, {1, 2}), source(1, {3, 4})};
  std::vector<Manifest> manifests = {manifest(0, {1, 2}, 2), manifest(1, {3, 4}, 2)};
  for (Manifest& each : manifests)
    each.regions[0].name = "patch_" + std::to_string(each.origin.rank);
  EXPECT_EQ(plan(sources, manifests, 1 << 20).extents.size(), 2u);
  const auto match = must(NameMatch::parse("_[0-9]+$="));
  const auto planned = plan(sources, manifests, 1 << 20, match);
  ASSERT_EQ(planned.extents.size(), 1u);
  EXPECT_EQ(planned.variable_of(planned.extents[0]).name, "patch");
}

TEST_F(BundleTest, ExtentsAreNoLargerThanAllowed) {
  const std::vector<std::uint32_t> numbers = {1, 2, 3, 4, 5, 6, 7};
  const auto planned = plan({source(0, numbers)}, {manifest(0, numbers, 7)}, 3 * kBlock);
  ASSERT_EQ(planned.extents.size(), 3u);
  EXPECT_EQ(planned.extents[0].count, 3u);
  EXPECT_EQ(planned.extents[2].count, 1u);
}

TEST_F(BundleTest, LargePartsOfDifferentRanksLieInExtentsOfTheirOwn) {
  std::vector<std::uint32_t> first(1200), second(1200);
  std::iota(first.begin(), first.end(), 0u);
  std::iota(second.begin(), second.end(), 5000u);
  const auto planned = plan({source(0, first), source(1, second)},
                            {manifest(0, first, 1200), manifest(1, second, 1200)}, 8 << 20);
  ASSERT_EQ(planned.extents.size(), 2u);
  EXPECT_EQ(planned.extents[0].count, 1200u);
  EXPECT_EQ(planned.blocks[1200].source, 1u);
}

TEST_F(BundleTest, WhatOnlyOtherRanksKnowIsInItToo) {
  const auto planned = plan({source(0, {1, 2, 9})}, {manifest(0, {1, 2}, 2)}, 1 << 20);
  EXPECT_EQ(planned.blocks.size(), 3u);
}

TEST(Portions, AllThatIsOnItsWayAndItsTablesFitIntoTheMemory) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
  for (const std::uint64_t memory : {kMib, 4 * kMib, 8 * kMib, 64 * kMib, 1024 * kMib})
    for (const unsigned encoders : {0u, 1u, 4u})
      for (std::uint64_t blocks = 0;
           120 * blocks <= memory;  // of one rank, while it is looked at what the tier has
           blocks = 2 * blocks + 1) {
        const Portions portions = divide_memory(memory, blocks, 16384, encoders);
        // Raw, encoded, and as much again for reading and for what codecs need.
        const std::uint64_t extents = 3 * portions.parcels * portions.extent_bytes;
        EXPECT_LE(extents + portions.write_bytes + 48 * blocks, memory) << memory << " " << blocks;
        EXPECT_GE(portions.parcels, 2u);
        EXPECT_GE(portions.extent_bytes, 32768u) << memory << " " << blocks;
      }
}

TEST(Portions, TablesThatAreTooLargeLeaveHalfOfTheMemoryToExtents) {
  const Portions portions = divide_memory(8 << 20, 1 << 20, 16384, 0);
  EXPECT_EQ(portions.extent_bytes, divide_memory(4 << 20, 0, 16384, 0).extent_bytes);
}

TEST(Portions, FewLargeBlocksAreOnTheirWayAtATime) {
  EXPECT_EQ(divide_memory(1 << 20, 0, 4 << 20, 0).parcels, 2u);
}

TEST_F(BundleTest, CopiesAndManifestsAreThereUnderTheirNames) {
  for (const unsigned encoders : {0u, 2u}) {
    (void)nodes_->remove(format::segment_name({{1, 2}, 0}));
    (void)nodes_->remove(format::segment_name({{1, 2}, 3}));
    std::vector<Source> sources = {source(0, {1, 2, 3}), source(3, {4, 2, 5})};
    sources[1].needed[0] = false;
    const auto planned =
        plan(sources, {manifest(0, {1, 2, 3}, 1), manifest(3, {4, 2, 5}, 2)}, 2 * kBlock);
    const auto written = must(write(sources, planned, encoders));
    EXPECT_EQ(written.raw_bytes, 4 * kBlock);
    EXPECT_EQ(must(global_->touch(format::bundle_name({{1, 2}, 0}))), written.file_bytes);
    EXPECT_EQ(must(global_->list()),
              (std::vector<std::string>{
                  "bundle-000001-0000000002-000000", "copy-000001-0000000002-000000",
                  "copy-000001-0000000002-000003", "manifest-000001-0000000002-000000",
                  "manifest-000001-0000000002-000003"}));
    const std::vector<std::vector<std::byte>> first = {content(1), content(2), content(3)};
    const std::vector<std::vector<std::byte>> second = {content(2), content(5)};
    EXPECT_EQ(blocks_of(0), first);
    EXPECT_EQ(blocks_of(3), second) << "without what was not needed";
    EXPECT_EQ(must(global_->touch("manifest-000001-0000000002-000003")), 8192u);
    std::vector<std::byte> bytes(8192);
    EXPECT_EQ(must(must(global_->open("manifest-000001-0000000002-000003"))->read(0, bytes)),
              8192u);
    EXPECT_EQ(bytes, std::vector<std::byte>(8192, std::byte{2}));
  }
}

/// Blocks of the sources, at most `most` of one at a time.
struct Parts {
  Parts(const std::vector<Source>& sources, std::size_t most) {
    for (std::size_t i = 0; i < sources.size(); ++i)
      for (std::size_t first = 0; first < sources[i].blocks.size(); first += most) {
        const std::size_t end = std::min(first + most, sources[i].blocks.size());
        const auto at = [](const auto& list, std::size_t place) {
          return list.begin() + static_cast<std::ptrdiff_t>(place);
        };
        chapters.push_back({i, {{sources[i].id, {}, {}}}, {}});
        Source& part = chapters.back().sources.front();
        part.blocks.assign(at(sources[i].blocks, first), at(sources[i].blocks, end));
        part.needed.assign(at(sources[i].needed, first), at(sources[i].needed, end));
      }
  }
  std::vector<Chapter> chapters;
};

TEST_F(BundleTest, WhatIsWrittenInChaptersIsThereAsIfItWereOne) {
  for (const std::size_t most : {1u, 2u, 3u, 7u}) {
    (void)nodes_->remove(format::segment_name({{1, 2}, 0}));
    (void)nodes_->remove(format::segment_name({{1, 2}, 3}));
    const std::vector<std::uint32_t> first = {1, 2, 3, 4, 5, 6, 7}, second = {8, 9, 10};
    std::vector<Source> sources = {source(0, first), source(3, second)};
    sources[0].needed[1] = sources[0].needed[2] = sources[1].needed[0] = false;
    const Manifest all = manifest(0, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 4);
    Parts parts(sources, most);
    std::size_t asked = 0;
    const auto written = must(write(sources, parts.chapters.size(), [&](std::size_t number) {
      ++asked;
      Chapter chapter = parts.chapters[number];
      const Source& part = chapter.sources.front();
      const std::vector<std::uint32_t> regions(part.blocks.size(), number % 2);
      chapter.plan = plan_in_order(part, all, regions, 2 * kBlock);
      return chapter;
    }));
    EXPECT_EQ(asked, 3 * parts.chapters.size()) << "for rider, extents and index";
    EXPECT_EQ(written.raw_bytes, 7 * kBlock);
    EXPECT_EQ(blocks_of(0), (std::vector<std::vector<std::byte>>{content(1), content(4), content(5),
                                                                 content(6), content(7)}));
    EXPECT_EQ(blocks_of(3), (std::vector<std::vector<std::byte>>{content(9), content(10)}));
  }
}

TEST_F(BundleTest, ChaptersThatChangeOrEndTooSoonMakeNoBundle) {
  const std::vector<Source> sources = {source(0, {1, 2, 3, 4})};
  const Manifest all = manifest(0, {1, 2, 3, 4}, 4);
  const Parts parts(sources, 2);
  const auto planned = [&](std::size_t number, bool changed, bool renamed = false) {
    Chapter chapter = parts.chapters[number];
    Source& part = chapter.sources.front();
    if (changed) part.needed[0] = false;
    if (renamed) part.blocks[0].fingerprint.low ^= 1;
    chapter.plan = plan_in_order(part, all, std::vector<std::uint32_t>(2, 0), 1 << 20);
    return chapter;
  };
  std::size_t asked = 0;
  const auto changed =
      write(sources, 2, [&](std::size_t number) { return planned(number, ++asked > 2); });
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code(), Code::corruption);
  for (const std::size_t wrong : {1u, 6u}) {  // told to the rider, to the index
    asked = 0;
    const auto renamed = write(
        sources, 2, [&](std::size_t number) { return planned(number, false, ++asked == wrong); });
    ASSERT_FALSE(renamed) << wrong;
    EXPECT_EQ(renamed.error().code(), Code::corruption);
  }
  const auto cut = write(sources, 1, [&](std::size_t number) { return planned(number, false); });
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code(), Code::corruption);
  const auto failed = write(sources, 2, [&](std::size_t number) -> Result<Chapter> {
    if (number == 1) return Unexpected(Error(Code::io, "gone"));
    return planned(number, false);
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::io);
}

TEST_F(BundleTest, InOrderVariablesHaveExtentsOfTheirOwnAndSmallOnesShareThem) {
  const std::vector<std::uint32_t> numbers = {1, 2, 3, 4, 5, 6};
  const Source part = source(0, numbers);
  Manifest all = manifest(0, numbers, 3);
  all.regions.push_back({"s", {ElementKind::f64, 8, {}}, Shape(1), 8, 6});
  all.regions.push_back({"t", {ElementKind::f64, 8, {}}, Shape(1), 8, 7});
  const std::vector<std::uint32_t> regions = {0, 2, 0, 1, 3, kNoRegion};
  const auto planned = plan_in_order(part, all, regions, 1 << 20);
  ASSERT_EQ(planned.extents.size(), 4u);
  EXPECT_EQ(planned.variable_of(planned.extents[0]).name, "a");
  EXPECT_EQ(planned.extents[0].count, 2u);
  EXPECT_EQ(planned.variable_of(planned.extents[1]).name, "b");
  EXPECT_EQ(planned.variable_of(planned.extents[2]).name, "(other)");
  EXPECT_EQ(planned.variable_of(planned.extents[3]).name, "(small)");
  EXPECT_EQ(planned.extents[3].count, 2u);
  EXPECT_EQ(planned.entries[0], (os::PagedVector<std::uint32_t>{0, 4, 1, 2, 5, 3}));
}

TEST_F(BundleTest, ABundleIsFoundByItsSegmentsAndSaysWhichExtentHasABlock) {
  const std::vector<std::uint32_t> first = {1, 2, 3, 4, 5}, second = {6, 7, 8};
  const std::vector<Source> sources = {source(0, first), source(3, second)};
  const auto planned = plan(sources, {manifest(0, first, 2), manifest(3, second, 1)}, 3 * kBlock);
  EXPECT_TRUE(global_->bundles_with({{1, 2}, 3}).empty());
  ASSERT_TRUE(write(sources, planned));
  EXPECT_TRUE(global_->bundles_with({{1, 2}, 1}).empty());
  const auto found = global_->bundles_with({{1, 2}, 3});
  ASSERT_EQ(found.size(), 1u);
  // Of `a` 1, 2 and 6; of `b` 3, 4, 5 and 7, 8.
  const std::vector<std::uint32_t> extents = {0, 0, 0, 1, 1, 1, 2, 2};
  for (std::uint32_t entry = 0; entry < extents.size(); ++entry) {
    const auto place = must(found[0]->place_of(entry));
    EXPECT_EQ(place.extent, extents[entry]) << entry;
    EXPECT_EQ(place.length, kBlock);
    EXPECT_EQ(place.extent_bytes, (extents[entry] < 2 ? 3 : 2) * kBlock);
  }
  EXPECT_EQ(found[0]->place_of(8).error().code(), Code::corruption);
  EXPECT_EQ(found[0]->place_of(format::kNotInBundle).error().code(), Code::corruption);
}

TEST_F(BundleTest, AManifestThatIsRemovedHidesThoseOfItsVersionAndNothingElse) {
  const std::vector<Source> sources = {source(0, {1, 2})};
  must(write(sources, plan(sources, {manifest(0, {1, 2}, 1)}, 1 << 20)));
  EXPECT_TRUE(global_->remove("manifest-000001-0000000002-000003"));
  EXPECT_TRUE(global_->remove("copy-000001-0000000002-000000")) << "its bytes go with the bundle";
  EXPECT_EQ(must(global_->list()), (std::vector<std::string>{"bundle-000001-0000000002-000000",
                                                             "copy-000001-0000000002-000000",
                                                             "retired-000001-0000000002"}));
  EXPECT_EQ(global_->open("manifest-000001-0000000002-000000").error().code(), Code::not_found);
  EXPECT_EQ(global_->remove("manifest-000001-0000000002-000003").error().code(), Code::not_found);
}

TEST_F(BundleTest, ABundleThatCannotBeReadNowIsHiddenForLater) {
  const std::vector<Source> sources = {source(0, {1, 2})};
  must(write(sources, plan(sources, {manifest(0, {1, 2}, 1)}, 1 << 20)));
  const std::string path = global_->place() + "/bundle-000001-0000000002-000000";
  ASSERT_TRUE(files_.flip(path, 0));
  EXPECT_TRUE(global_->remove("manifest-000001-0000000002-000003"));
  EXPECT_FALSE(global_->remove("manifest-000001-0000000009-000003")) << "there is none";
  ASSERT_TRUE(files_.flip(path, 0));
  EXPECT_EQ(must(global_->list()).back(), "retired-000001-0000000002");
  EXPECT_EQ(global_->open("manifest-000001-0000000002-000000").error().code(), Code::not_found);
}

TEST_F(BundleTest, ADamagedSegmentIsNamedAndNothingIsMade) {
  const std::vector<Source> sources = {source(0, {1, 2}), source(1, {3, 4})};
  const auto planned = plan(sources, {manifest(0, {1, 2}, 1), manifest(1, {3, 4}, 1)}, 1 << 20);
  ASSERT_TRUE(files_.flip("/node/" + format::segment_name({{1, 2}, 1}), 8 * 700));
  const auto written = write(sources, planned);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), Code::corruption);
  EXPECT_EQ(damaged_, 1u);
}

TEST_F(BundleTest, BlocksOneAfterTheOtherAreThoseOfTheWholeAndFlipsAreFoundInEitherWay) {
  std::vector<Source> sources = {source(0, {1, 2, 3, 4})};
  sources[0].needed[2] = false;
  must(write(sources, plan(sources, {manifest(0, {1, 2, 3, 4}, 2)}, 1 << 20)));
  const SegmentId id{{1, 2}, 0};
  const std::string path = "/global/" + format::bundle_name(id);
  const auto all = must(must(store::Bundle::open(*global_, id))->blocks_of(0));
  const std::uint64_t bytes = must(files_.touch(path));
  std::size_t refused = 0;
  for (std::uint64_t at = 0; at < bytes; at += 5) {
    ASSERT_TRUE(files_.flip(path, 8 * at + at % 8));
    if (const auto bundle = store::Bundle::open(*global_, id)) {
      std::vector<format::BundledBlock> told;
      const auto done = (*bundle)->each_block_of(
          0, [&](const format::BundledBlock& block) { told.push_back(block); });
      EXPECT_EQ(done.has_value(), (*bundle)->blocks_of(0).has_value()) << at;
      if (done) {
        EXPECT_EQ(told, all) << at;
      }
      refused += done ? 0 : 1;
    }
    ASSERT_TRUE(files_.flip(path, 8 * at + at % 8));
  }
  EXPECT_GT(refused, 10u);
}

TEST_F(BundleTest, EachFlippedBitIsFoundByWhoReadsBlocks) {
  const std::vector<Source> sources = {source(0, {1, 2, 3, 4})};
  must(write(sources, plan(sources, {manifest(0, {1, 2, 3, 4}, 2)}, 1 << 20)));
  const std::string path = "/global/" + format::bundle_name({{1, 2}, 0});
  const std::uint64_t bytes = must(files_.touch(path));
  const std::vector<std::vector<std::byte>> right = {content(1), content(2), content(3),
                                                     content(4)};
  for (std::uint64_t at = 0; at < bytes; at += 7) {
    ASSERT_TRUE(files_.flip(path, 8 * at + at % 8));
    // Opened anew: what was read of it before is known.
    const auto place = store::make_bundled_tier(store::make_local_tier(files_, "/global"));
    auto copy = store::SegmentFile::open(*place, {{1, 2}, 0}, kStore, {}, FileKind::copy);
    if (copy)
      for (std::size_t i = 0; i < copy->blocks().size(); ++i) {
        const store::StoredBlock& block = copy->blocks()[i];
        std::vector<std::byte> read(block.length);
        const bool got = copy->file().read(block.offset, read).has_value();
        if (got && name_of(read) == block.fingerprint) {
          EXPECT_EQ(read, right[i]) << at;
        }
      }
    ASSERT_TRUE(files_.flip(path, 8 * at + at % 8));
  }
}

}  // namespace
}  // namespace belay::aggregate
