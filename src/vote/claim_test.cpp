// SPDX-License-Identifier: Apache-2.0
#include "vote/claim.hpp"

#include "format/names.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace belay::vote {
namespace {

/// Sleeping is instant.
class QuickClock final : public os::Clock {
 public:
  std::uint64_t now_ns() override { return now_ns_; }
  std::int64_t wall_ns() override { return 1; }
  void sleep_ns(std::uint64_t ns) override { now_ns_ += ns; }

 private:
  std::atomic<std::uint64_t> now_ns_{0};
};

class ClaimTest : public testing::Test {
 protected:
  static ClaimRequest request(std::string node = "n") {
    return {
        .store = "/store", .node = std::move(node), .application = "test", .host = "h", .pid = 7};
  }
  Result<Claim> claim_alone(const ClaimRequest& wanted) {
    const auto group = ranks::make_solo_group();
    Surroundings around{*group, files_, clock_, os::system_random(), log_};
    return claim_store(around, wanted);
  }
  void claim_together(Rank ranks, const std::function<ClaimRequest(Rank)>& wanted,
                      const std::function<void(Rank, const Result<Claim>&)>& look) {
    auto groups = ranks::make_thread_groups(ranks, 20'000'000'000);
    std::vector<std::optional<Result<Claim>>> claims(ranks);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        Surroundings around{*groups[rank], files_, clock_, os::system_random(), log_};
        claims[rank].emplace(claim_store(around, wanted(rank)));
      });
    for (auto& thread : threads) thread.join();
    for (Rank rank = 0; rank < ranks; ++rank) look(rank, *claims[rank]);
  }

  os::MemoryFiles files_;
  QuickClock clock_;
  Log log_;
};

TEST_F(ClaimTest, ANewStoreTakesTheSeedOfRankZeroAndKeepsIt) {
  const auto seeded = [](std::uint64_t seed) {
    ClaimRequest wanted = request();
    wanted.seed = seed;
    return wanted;
  };
  claim_together(
      2, [&](Rank rank) { return seeded(17 + rank); },
      [](Rank, const Result<Claim>& claim) {
        ASSERT_TRUE(claim) << claim.error().message();
        EXPECT_EQ(claim->identity.seed, 17u);
      });
  claim_together(
      2, [&](Rank) { return seeded(99); },
      [](Rank, const Result<Claim>& claim) {
        ASSERT_TRUE(claim) << claim.error().message();
        EXPECT_EQ(claim->identity.seed, 17u);
      });
}

TEST_F(ClaimTest, EachOpeningIsARunOfTheSameStore) {
  StoreId store;
  for (std::uint64_t run = 1; run <= 3; ++run) {
    const auto claim = claim_alone(request());
    ASSERT_TRUE(claim) << claim.error().message();
    EXPECT_EQ(claim->run, run);
    if (run == 1) store = claim->identity.store;
    EXPECT_EQ(claim->identity.store, store);
    EXPECT_TRUE(files_.peek("/store/node-n/" + format::run_name(run)));
  }
}

TEST_F(ClaimTest, DifferentStoresHaveDifferentIds) {
  ClaimRequest other = request();
  other.store = "/other";
  EXPECT_FALSE(claim_alone(request())->identity.store == claim_alone(other)->identity.store);
}

TEST_F(ClaimTest, TheLockIsHeldAsLongAsTheClaim) {
  {
    const auto claim = claim_alone(request());
    ASSERT_TRUE(claim);
    const auto refused = claim_alone(request());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::busy);
  }
  EXPECT_TRUE(claim_alone(request()));
}

TEST_F(ClaimTest, OneRankOfANodeLeadsIt) {
  claim_together(
      4, [](Rank rank) { return request(rank < 3 ? "a" : "b"); },
      [](Rank rank, const Result<Claim>& claim) {
        ASSERT_TRUE(claim) << claim.error().message();
        EXPECT_EQ(claim->leads_node, rank == 0 || rank == 3);
        EXPECT_EQ(claim->ranks_on_node, rank < 3 ? 3u : 1u);
        EXPECT_EQ(claim->run, 1u);
        EXPECT_EQ(claim->surveys.size(), 4u);
      });
  EXPECT_TRUE(files_.peek("/store/node-a/run-000001"));
  EXPECT_TRUE(files_.peek("/store/node-b/run-000001"));
}

TEST_F(ClaimTest, TheHighestRunOnAnyNodeCounts) {
  for (int i = 0; i < 3; ++i)
    claim_together(
        2, [](Rank rank) { return request(rank == 0 ? "a" : "b"); },
        [](Rank, const Result<Claim>& claim) { ASSERT_TRUE(claim); });
  for (std::uint64_t run = 1; run <= 3; ++run)
    ASSERT_TRUE(files_.erase("/store/node-a/" + format::run_name(run)));
  claim_together(
      2, [](Rank rank) { return request(rank == 0 ? "a" : "b"); },
      [](Rank, const Result<Claim>& claim) {
        ASSERT_TRUE(claim);
        EXPECT_EQ(claim->run, 4u);
      });
}

TEST_F(ClaimTest, NewAndOldNodesAgreeOnTheIdentity) {
  const auto first = claim_alone(request())->identity;
  const auto again = claim_alone(request("renamed"));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->identity, first);
  EXPECT_EQ(again->run, 2u);
  EXPECT_EQ(again->locks.size(), 2u) << "its own directory, and the one that it adopts";
}

TEST_F(ClaimTest, ARankThatLivesOnInAnAdoptedDirectorySeesTheLaterRun) {
  ASSERT_TRUE(claim_alone(request("old")));
  const auto straggler = store::make_local_tier(files_, "/store/node-old");
  EXPECT_TRUE(check_still_ours(*straggler, 1));
  for (const std::uint64_t run : {2u, 3u}) {
    ASSERT_TRUE(claim_alone(request("new")));
    const auto seen = check_still_ours(*straggler, run - 1);
    ASSERT_FALSE(seen) << run;
    EXPECT_EQ(seen.error().code(), Code::busy);
  }
  EXPECT_FALSE(files_.peek("/store/node-old/run-000001")) << "one record is enough";
  EXPECT_FALSE(files_.peek("/store/node-old/run-000002"));
}

TEST_F(ClaimTest, LeadersThatSeeTheSameAbandonedDirectoryDoNotBlockEachOther) {
  claim_together(
      2, [](Rank rank) { return request("old" + std::to_string(rank)); },
      [](Rank, const Result<Claim>& claim) { ASSERT_TRUE(claim); });
  claim_together(
      2, [](Rank rank) { return request("new" + std::to_string(rank)); },
      [](Rank, const Result<Claim>& claim) {
        ASSERT_TRUE(claim) << claim.error().message();
        EXPECT_EQ(claim->run, 2u);
      });
}

TEST_F(ClaimTest, ARefusedClaimLeavesTheStoreFree) {
  ASSERT_TRUE(claim_alone(request()));
  ClaimRequest other = request();
  other.application = "other";
  ASSERT_FALSE(claim_alone(other));
  EXPECT_TRUE(claim_alone(request()));
}

}  // namespace
}  // namespace belay::vote
