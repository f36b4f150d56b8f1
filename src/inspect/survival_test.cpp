// SPDX-License-Identifier: Apache-2.0
#include "inspect/survival.hpp"

#include "base/node_sets.hpp"
#include "inspect/copied_store_test.hpp"
#include "inspect/version_files.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

namespace belay::inspect {
namespace {

class Survival : public testing::Test {
 protected:
  Survival() {
    for (const MadeFile& made : CopiedStore::files()) {
      EXPECT_TRUE(files_.make_directory("/s/node-" + made.node));
      const auto file = files_.create(path(made.node, made.name), /*direct=*/false);
      EXPECT_TRUE(file && (*file)->write(0, made.bytes) && (*file)->sync());
    }
  }

  static std::string path(const std::string& node, const std::string& name) {
    return "/s/node-" + node + "/" + name;
  }
  void erase(const std::string& node, const std::string& name) {
    ASSERT_TRUE(files_.erase(path(node, name)));
  }
  void add_empty_nodes(std::size_t until) {
    for (std::size_t node = 2; node < until; ++node)
      ASSERT_TRUE(files_.make_directory(fmt::format("/s/node-{:03}", node)));
  }
  StoreView look() {
    auto view = StoreView::open(files_, {"/s"});
    EXPECT_TRUE(view) << view.error().message();
    return *std::move(view);
  }
  SurvivalReport judge(std::size_t losses, std::size_t most_sets = 10'000) {
    const StoreView view = look();
    auto report = judge_losses(view, losses, most_sets);
    EXPECT_TRUE(report) << report.error().message();
    return *std::move(report);
  }

  os::MemoryFiles files_;
};

TEST(VersionSurvival, PromisesWhatEachSetMayLose) {
  VersionSurvival version{
      .key = {1, 1}, .level = Level::erasure(1, 1), .sets = {0, 1, 0, 1, kNoSet}};
  const auto promises = [&](std::vector<std::size_t> nodes) {
    return version.promises(DeadlyLoss{.nodes = std::move(nodes), .parts = {}});
  };
  EXPECT_TRUE(promises({4}));
  EXPECT_TRUE(promises({0, 1}));
  EXPECT_TRUE(promises({2, 3}));
  EXPECT_FALSE(promises({0, 2})) << "two of one set";
  EXPECT_FALSE(promises({0, 4})) << "nothing is known of its set";
  version.sets.clear();
  EXPECT_FALSE(promises({0, 1}));
}

TEST_F(Survival, OneOfTwoNodesMayBeLostButNotBoth) {
  const SurvivalReport one = judge(1);
  ASSERT_EQ(one.versions.size(), 2u);
  EXPECT_EQ(one.sets, 2u);
  for (const VersionSurvival& version : one.versions) EXPECT_TRUE(version.deadly.empty());
  const SurvivalReport both = judge(2);
  ASSERT_EQ(both.versions[0].deadly.size(), 1u);
  const DeadlyLoss& loss = both.versions[0].deadly[0];
  EXPECT_EQ(loss.nodes, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(loss.blocks, 8u);
  EXPECT_EQ(loss.manifests, 2u);
  EXPECT_EQ(loss.ranks, 2u);
  EXPECT_FALSE(both.versions[0].lost_already());
}

TEST_F(Survival, AMissingCopyMakesItsOriginalsNodeDeadly) {
  erase("1", format::copy_name(CopiedStore::kSecond));
  const SurvivalReport report = judge(1);
  ASSERT_EQ(report.versions[0].key.version, 2u);
  ASSERT_EQ(report.versions[0].deadly.size(), 1u);
  EXPECT_EQ(report.versions[0].deadly[0].nodes, std::vector<std::size_t>{0});
  ASSERT_EQ(report.versions[0].deadly[0].parts.size(), 1u);
  EXPECT_EQ(report.versions[0].deadly[0].parts[0].rank, 0u);
  EXPECT_EQ(report.versions[0].deadly[0].parts[0].blocks, 1u);
  EXPECT_FALSE(report.versions[0].deadly[0].parts[0].manifest);
  EXPECT_TRUE(report.versions[1].deadly.empty()) << "version 1 does not need it";
}

TEST_F(Survival, AManifestOnOneNodeOnlyMakesThatNodeDeadly) {
  erase("0", format::manifest_name({1, 1}, 1));
  const SurvivalReport report = judge(1);
  EXPECT_TRUE(report.versions[0].deadly.empty());
  ASSERT_EQ(report.versions[1].deadly.size(), 1u);
  EXPECT_EQ(report.versions[1].deadly[0].nodes, std::vector<std::size_t>{1});
  EXPECT_EQ(report.versions[1].deadly[0].manifests, 1u);
  EXPECT_EQ(report.versions[1].deadly[0].blocks, 0u);
}

TEST_F(Survival, AFileWhoseIndexIsDamagedGivesNothing) {
  const std::string file = path("1", format::copy_name(CopiedStore::kFirst));
  ASSERT_TRUE(files_.flip(file, 8 * (4096 - 100)));
  EXPECT_EQ(judge(1).versions[0].deadly.size(), 1u);
}

TEST_F(Survival, WhatNobodyHasIsLostAlready) {
  erase("0", format::segment_name(CopiedStore::kSecond));
  erase("1", format::copy_name(CopiedStore::kSecond));
  const SurvivalReport report = judge(1);
  EXPECT_TRUE(report.versions[0].lost_already());
  EXPECT_FALSE(report.keeps_promises()) << "no level promises as little";
  EXPECT_TRUE(report.versions[1].deadly.empty());
}

TEST_F(Survival, AmongManyNodesTheDeadlyOnesAreFoundThoughOnlySomeAreLookedAt) {
  add_empty_nodes(200);
  const SurvivalReport report = judge(3, 500);
  EXPECT_EQ(report.sets, 1'313'400u);
  EXPECT_EQ(report.sampled, 500u);
  ASSERT_GE(report.versions[0].deadly.size(), 1u);
  for (const DeadlyLoss& loss : report.versions[0].deadly) {
    EXPECT_EQ(loss.nodes.size(), 3u);
    EXPECT_EQ(loss.nodes[0], 0u);
    EXPECT_EQ(loss.nodes[1], 1u);
  }
  EXPECT_TRUE(judge(1, 500).versions[0].deadly.empty());
}

TEST_F(Survival, NoMoreNodesCanBeLostThanThereAre) {
  const StoreView view = look();
  const auto report = judge_losses(view, 3);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::invalid_argument);
}

TEST_F(Survival, AGiverThatNeedsSeveralNodesGivesUntilTooFewAreLeft) {
  const StoreView view = look();
  BlockGivers givers(view);
  const GiverSet stripe = givers.with(kNobody, {{{{0, 1, 2, 3}, 3}}});
  EXPECT_TRUE(givers.survives(stripe, {false, true, false, false}));
  EXPECT_FALSE(givers.survives(stripe, {false, true, true, false}));
  EXPECT_EQ(givers.least_losses(stripe), 2u);
  const GiverSet both = givers.with(stripe, Giver::file_on(4));
  EXPECT_TRUE(givers.survives(both, {true, true, true, true, false}));
  EXPECT_FALSE(givers.survives(both, {true, true, false, false, true}));
  EXPECT_EQ(givers.with(both, Giver::file_on(4)), both);
  EXPECT_EQ(givers.nodes_with_it(both), 1u);
  EXPECT_FALSE(givers.survives(kNobody, {false}));
}

TEST_F(Survival, ASpreadCountsBlocksByTheirNodes) {
  erase("1", format::copy_name(CopiedStore::kSecond));
  const StoreView view = look();
  const auto spread = spread_of(view, view.versions()[0]);
  ASSERT_TRUE(spread);
  EXPECT_EQ(spread->blocks, (std::map<std::size_t, std::uint64_t>{{1, 1}, {2, 7}}));
  EXPECT_EQ(spread->manifests, (std::map<std::size_t, std::uint64_t>{{2, 2}}));
  const auto shares = node_shares(view, view.versions()[0]);
  EXPECT_EQ(shares[0].segments.count, 2u);
  EXPECT_EQ(shares[1].segments.ranks, std::set<Rank>{1});
  EXPECT_EQ(shares[1].copies.count, 1u);
  EXPECT_EQ(shares[0].manifests.count, 2u) << "only those of this version";
}

}  // namespace
}  // namespace belay::inspect
