// SPDX-License-Identifier: Apache-2.0
// Stores with copies on other nodes: what the tool finds in them, whole and damaged.
#include "inspect/copied_store_test.hpp"
#include "inspect/part_reader.hpp"
#include "inspect/segment_life.hpp"
#include "inspect/store_check.hpp"
#include "inspect/store_prune.hpp"
#include "inspect/store_repair.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

namespace belay::inspect {
namespace {

class Copies : public testing::Test {
 protected:
  Copies() {
    for (const char* node : {"/s/node-0", "/s/node-1"}) EXPECT_TRUE(files_.make_directory(node));
    for (const MadeFile& made : CopiedStore::files()) put(made.node, made.name, made.bytes);
  }

  static std::string path(const std::string& node, const std::string& name) {
    return "/s/node-" + node + "/" + name;
  }
  void put(const std::string& node, const std::string& name, std::span<const std::byte> bytes) {
    const auto file = files_.create(path(node, name), /*direct=*/false);
    ASSERT_TRUE(file && (*file)->write(0, bytes) && (*file)->sync());
  }
  std::vector<std::byte> get(const std::string& node, const std::string& name) {
    const auto file = files_.open(path(node, name), /*direct=*/false);
    std::vector<std::byte> bytes(*(*file)->size());
    EXPECT_EQ(*(*file)->read(0, bytes), bytes.size());
    return bytes;
  }
  void flip(const std::string& node, const std::string& name, std::size_t offset) {
    auto bytes = get(node, name);
    bytes[offset] ^= std::byte{4};
    erase(node, name);
    put(node, name, bytes);
  }
  void erase(const std::string& node, const std::string& name) {
    ASSERT_TRUE(files_.erase(path(node, name)));
  }
  std::vector<std::string> names(const std::string& node) {
    const auto entries = files_.list("/s/node-" + node);
    EXPECT_TRUE(entries);
    std::vector<std::string> found;
    for (const auto& entry : *entries) found.push_back(entry.name);
    return found;
  }
  void lose(const std::string& node) {
    for (const std::string& name : names(node)) erase(node, name);
  }

  StoreView look() {
    auto view = StoreView::open(files_, {"/s"});
    EXPECT_TRUE(view) << view.error().message();
    return *std::move(view);
  }
  CheckReport check(const StoreView& view) {
    auto report = check_store(view, 1, [](std::uint64_t, std::uint64_t) {});
    EXPECT_TRUE(report) << report.error().message();
    return *std::move(report);
  }
  CheckReport check() { return check(look()); }

  static std::string describe(const std::vector<Flaw>& flaws) {
    std::string text;
    for (const Flaw& flaw : flaws)
      text += fmt::format("{}/{}: {} (version {}, rank {}, region {}, {} blocks)\n", flaw.directory,
                          flaw.file, flaw.reason, flaw.version ? flaw.version->version : 0,
                          flaw.rank ? static_cast<int>(*flaw.rank) : -1, flaw.region, flaw.blocks);
    return text;
  }
  static std::size_t whole(const CheckReport& report) {
    std::size_t count = 0;
    for (const CheckedVersion& version : report.versions)
      count += version.state == VersionState::whole ? 1 : 0;
    return count;
  }
  static std::size_t whole(const StoreView& view) {
    std::size_t count = 0;
    for (const VersionView& version : view.versions())
      count += version.state == VersionState::whole ? 1 : 0;
    return count;
  }
  /// One flaw, of that file and rank, that costs no version.
  void expect_one_flaw(const std::string& node, const std::string& name, Rank rank) {
    const CheckReport report = check();
    ASSERT_EQ(report.flaws.size(), 1u) << describe(report.flaws);
    EXPECT_EQ(report.flaws[0].directory, "/s/node-" + node);
    EXPECT_EQ(report.flaws[0].file, name);
    EXPECT_EQ(report.flaws[0].rank, rank);
    EXPECT_FALSE(report.flaws[0].version);
    EXPECT_EQ(whole(report), 2u);
    expect_readable();
  }
  /// Everything can be read and is what was saved.
  void expect_readable() {
    const StoreView view = look();
    for (const VersionView& version : view.versions())
      for (const PartView& part : version.parts) {
        SCOPED_TRACE(fmt::format("version {}, rank {}", version.key.version, part.rank));
        const std::string letters = part.rank == 1             ? "bsxd"
                                    : version.key.version == 1 ? "asxc"
                                                               : "Asxc";
        const auto expected = CopiedStore::content(std::string_view(letters));
        auto reader = PartReader::open(view, version, part, {});
        ASSERT_TRUE(reader) << reader.error().message();
        std::vector<std::byte> bytes(expected.size());
        const auto read = reader->read(reader->manifest().regions[0], 0, bytes);
        ASSERT_TRUE(read) << read.error().message();
        EXPECT_TRUE(bytes == expected);
      }
  }

  const std::string segment_ = format::segment_name(CopiedStore::kFirst);
  const std::string copy_ = format::copy_name(CopiedStore::kFirst);
  const std::string other_ = format::segment_name(CopiedStore::kOther);
  const std::string partial_ = format::copy_name(CopiedStore::kOther);
  os::MemoryFiles files_;
};

TEST_F(Copies, AreKnownAndVerified) {
  const StoreView view = look();
  EXPECT_TRUE(view.all_flaws().empty()) << describe(view.all_flaws());
  EXPECT_EQ(whole(view), 2u);
  const CheckReport report = check(view);
  EXPECT_TRUE(report.flaws.empty()) << describe(report.flaws);
  EXPECT_TRUE(report.leftovers.empty());
  EXPECT_TRUE(report.replaced.empty());
  EXPECT_EQ(report.files, 4u + 3u + 3u) << "manifests, segments, copies";
  EXPECT_EQ(report.blocks, 4u + 3u + 1u + 4u + 2u + 1u);
  expect_readable();
}

TEST_F(Copies, AnyNodeMayBeLost) {
  for (const std::string node : {"0", "1"}) {
    for (const MadeFile& made : CopiedStore::files())
      if (!files_.open(path(made.node, made.name), false)) put(made.node, made.name, made.bytes);
    lose(node);
    const CheckReport report = check();
    EXPECT_TRUE(report.flaws.empty()) << describe(report.flaws);
    EXPECT_EQ(report.replaced.size(), node == "0" ? 2u : 1u) << describe(report.replaced);
    EXPECT_EQ(whole(report), 2u);
    EXPECT_EQ(whole(look()), 2u);
    expect_readable();
  }
}

TEST_F(Copies, BothNodesMayNot) {
  erase("0", segment_);
  erase("1", copy_);
  const StoreView view = look();
  EXPECT_EQ(whole(view), 0u);
  const CheckReport report = check(view);
  EXPECT_EQ(whole(report), 0u);
  for (const Rank rank : {0u, 1u}) {
    const auto names_it = [&](const Flaw& flaw) {
      return flaw.rank == rank && flaw.file == segment_ && flaw.region == "field" && flaw.version;
    };
    EXPECT_EQ(std::count_if(report.flaws.begin(), report.flaws.end(), names_it), 2)
        << "both versions\n"
        << describe(report.flaws);
  }
}

TEST_F(Copies, BlocksElsewhereAreFoundWhereverTheyAre) {
  erase("0", segment_);
  erase("1", copy_);
  // A partial copy somewhere else has what is needed.
  put("1", copy_, CopiedStore::segment(CopiedStore::kFirst, "as-c"));
  const CheckReport report = check();
  EXPECT_TRUE(report.flaws.empty()) << describe(report.flaws);
  EXPECT_EQ(report.replaced.size(), 1u);
  expect_readable();
}

TEST_F(Copies, APartialCopyDoesNotStandInForWhatItLacks) {
  erase("0", segment_);
  erase("1", copy_);
  put("1", copy_, CopiedStore::segment(CopiedStore::kFirst, "a--c"));
  const StoreView view = look();
  EXPECT_EQ(whole(view), 0u) << "nobody has s";
  for (const VersionView& version : view.versions())
    EXPECT_EQ(version.flaws.size(), 2u) << "rank 0 has lost it, and rank 1\n"
                                        << describe(version.flaws);
  const CheckReport report = check(view);
  EXPECT_EQ(whole(report), 0u);
  ASSERT_FALSE(report.flaws.empty());
  for (const Flaw& flaw : report.flaws) EXPECT_EQ(flaw.blocks, 1u) << describe(report.flaws);
}

TEST_F(Copies, DamageOfACopyIsToldWithFileAndRank) {
  flip("1", copy_, 128 + 512 + 3);  // s
  expect_one_flaw("1", copy_, 0);
  EXPECT_EQ(check().flaws[0].blocks, 1u);
}

TEST_F(Copies, DamageOfACopysIndexIsToldWithFileAndRank) {
  flip("0", partial_, 4096 - 10);
  expect_one_flaw("0", partial_, 1);
}

TEST_F(Copies, AFileUnderTheNameOfACopyThatIsNoneIsDamage) {
  erase("1", copy_);
  put("1", copy_, get("1", other_));
  expect_one_flaw("1", copy_, 0);
}

TEST_F(Copies, DamageOfASegmentThatACopyMakesGoodCostsNoVersion) {
  flip("0", segment_, 128 + 3);  // a
  expect_one_flaw("0", segment_, 0);
  flip("0", segment_, 128 + 3);
  flip("0", segment_, 4096 - 10);  // the footer
  expect_one_flaw("0", segment_, 0);
}

TEST_F(Copies, DamageInDifferentBlocksOfSegmentAndCopyCostsNoVersion) {
  flip("0", segment_, 128 + 3);     // a
  flip("1", copy_, 128 + 512 + 3);  // s
  const CheckReport report = check();
  EXPECT_EQ(report.flaws.size(), 2u) << describe(report.flaws);
  EXPECT_EQ(whole(report), 2u);
  expect_readable();
}

TEST_F(Copies, DamageOfASegmentAndItsCopiesInTheSameBlockCostsTheVersions) {
  flip("0", segment_, 128 + 3);  // a, which only version 1 needs
  flip("1", copy_, 128 + 3);
  const CheckReport report = check();
  ASSERT_EQ(report.versions.size(), 2u);
  EXPECT_EQ(report.versions[0].state, VersionState::whole) << describe(report.flaws);
  EXPECT_EQ(report.versions[1].state, VersionState::damaged);
  EXPECT_EQ(report.flaws.size(), 2u) << "the version's and the copy's\n" << describe(report.flaws);
}

TEST_F(Copies, OneReadableManifestSuffices) {
  const std::string name = format::manifest_name({1, 1}, 1);
  for (const std::string node : {"0", "1"}) {
    flip(node, name, 300);
    expect_one_flaw(node, name, 1);
    flip(node, name, 300);
  }
  erase("1", name);
  EXPECT_TRUE(check().flaws.empty());
  flip("0", name, 300);
  const CheckReport report = check();
  EXPECT_EQ(whole(report), 1u);
  EXPECT_TRUE(std::any_of(report.flaws.begin(), report.flaws.end(),
                          [&](const Flaw& flaw) { return flaw.file == name && flaw.version; }));
}

TEST_F(Copies, AManifestOfAnotherStoreIsNoCopy) {
  Manifest stranger = CopiedStore::manifests()[1];
  stranger.origin.store.low++;
  const std::string name = format::manifest_name({1, 1}, 1);
  erase("1", name);
  put("1", name, *format::encode_manifest(stranger));
  const StoreView view = look();
  EXPECT_TRUE(view.mixed());
  const auto flaws = view.all_flaws();
  ASSERT_EQ(flaws.size(), 1u) << describe(flaws);
  EXPECT_EQ(flaws[0].directory, "/s/node-1");
}

TEST_F(Copies, ACopyOfASegmentThatNothingCountsOnIsALeftover) {
  put("1", format::copy_name({{1, 2}, 1}), CopiedStore::segment({{1, 2}, 1}, "A-"));
  const CheckReport report = check();
  EXPECT_TRUE(report.flaws.empty()) << describe(report.flaws);
  ASSERT_EQ(report.leftovers.size(), 1u);
  EXPECT_EQ(report.leftovers[0].file, format::copy_name({{1, 2}, 1}));
}

TEST_F(Copies, PruneRemovesThemWithTheirSegment) {
  // A later version that needs nothing older, so that everything else can go.
  for (Rank rank = 0; rank < 2; ++rank) {
    Manifest manifest = CopiedStore::manifest(3, rank, "", {});
    manifest.segments.clear();
    for (const std::string node : {"0", "1"})
      put(node, format::manifest_name({1, 3}, rank), *format::encode_manifest(manifest));
  }
  const StoreView view = look();
  const auto some = plan_prune(view, 2);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->manifests.size(), 4u) << "version 1, on two nodes";
  EXPECT_TRUE(some->segments.empty()) << "version 2 needs them";
  EXPECT_TRUE(some->copies.empty());
  const auto plan = plan_prune(view, 1);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->segments.size(), 3u);
  EXPECT_EQ(plan->copies.size(), 3u);
  Log log(LogLevel::warn, [](LogLevel, std::string_view text) { ADD_FAILURE() << text; });
  ASSERT_TRUE(prune(view, *plan, log));
  for (const std::string node : {"0", "1"})
    for (const std::string& name : names(node)) {
      EXPECT_FALSE(name.starts_with("copy-")) << name;
      EXPECT_FALSE(name.starts_with("segment-")) << name;
    }
  EXPECT_TRUE(check().flaws.empty());
}

TEST_F(Copies, PruneKeepsASegmentThatOnlyAnotherRankCountsOn) {
  Manifest alone = CopiedStore::manifest(3, 0, "", {});
  alone.segments.clear();
  const Manifest shares = CopiedStore::manifest(3, 1, "s", {1});
  for (const std::string node : {"0", "1"}) {
    put(node, format::manifest_name({1, 3}, 0), *format::encode_manifest(alone));
    put(node, format::manifest_name({1, 3}, 1), *format::encode_manifest(shares));
  }
  const auto plan = plan_prune(look(), 1);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->segments.size(), 1u);
  EXPECT_EQ(plan->segments[0].name, format::segment_name(CopiedStore::kSecond));
  ASSERT_EQ(plan->copies.size(), 1u);
  EXPECT_EQ(plan->copies[0].name, format::copy_name(CopiedStore::kSecond));
}

TEST_F(Copies, RepairPutsThemAwayWithTheVersionsThatAloneNeedThem) {
  erase("0", format::segment_name(CopiedStore::kSecond));
  flip("1", format::copy_name(CopiedStore::kSecond), 128);
  const StoreView view = look();
  const auto repaired = repair_store(view, check(view));
  ASSERT_TRUE(repaired);
  EXPECT_TRUE(files_.open(path("1", "quarantine/" + format::copy_name(CopiedStore::kSecond)),
                          /*direct=*/false));
  const CheckReport after = check();
  EXPECT_TRUE(after.flaws.empty()) << describe(after.flaws);
  EXPECT_EQ(whole(after), 1u);
}

TEST_F(Copies, LiveBytesOfASegmentIncludeWhatOtherRanksNeedOfIt) {
  const auto lives = segment_lives(look());
  ASSERT_TRUE(lives);
  // Version 2 needs s and c for rank 0; x, and s for rank 1 too, are found in the first segment.
  EXPECT_EQ(lives->at(CopiedStore::kFirst).live_bytes, 512u + 512u + 100u);
  EXPECT_EQ(lives->at(CopiedStore::kFirst).retained_bytes, 3u * 512u + 100u);
  EXPECT_EQ(lives->at(CopiedStore::kOther).live_bytes, 512u + 200u);
}

}  // namespace
}  // namespace belay::inspect
