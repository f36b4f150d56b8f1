// SPDX-License-Identifier: Apache-2.0
#include "comm/group.hpp"

#include "conformance/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <limits>

namespace belay::ranks {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

Result<void> sum(Group& group, std::size_t count = 1) {
  std::vector<std::uint64_t> values(count, 1);
  return group.reduce(values, Reduction::sum);
}

void expect_refused(const Result<void>& result, const char* one, const char* other) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::invalid_argument);
  EXPECT_NE(result.error().message().find(one), std::string::npos) << result.error().message();
  EXPECT_NE(result.error().message().find(other), std::string::npos) << result.error().message();
}

TEST(ThreadGroup, HasNoGroupsForNoRanks) { EXPECT_TRUE(make_thread_groups(0, 1).empty()); }

TEST(ThreadGroup, LengthsThatDifferInReduceAreRefusedOnAllRanksByName) {
  play_ranks(3, kPatience, [](std::unique_ptr<Group>& group) {
    expect_refused(sum(*group, group->rank() == 2 ? 5 : 4), "rank 0 called reduce(sum) of 4 values",
                   "rank 2 called reduce(sum) of 5 values");
    EXPECT_TRUE(sum(*group)) << "the ranks are in step again";
  });
}

TEST(ThreadGroup, ReductionsThatDifferAreRefused) {
  play_ranks(2, kPatience, [](std::unique_ptr<Group>& group) {
    std::uint64_t value = 1;
    expect_refused(
        group->reduce({&value, 1}, group->rank() == 0 ? Reduction::min : Reduction::bit_or),
        "rank 0 called reduce(min)", "rank 1 called reduce(bit_or)");
    EXPECT_EQ(value, 1u);
  });
}

TEST(ThreadGroup, RootsAndLengthsThatDifferInBroadcastAreRefused) {
  play_ranks(2, kPatience, [](std::unique_ptr<Group>& group) {
    std::array<std::byte, 8> bytes{};
    expect_refused(group->broadcast(bytes, group->rank()), "8 bytes from rank 0",
                   "8 bytes from rank 1");
    expect_refused(group->broadcast(std::span(bytes).first(group->rank() + 1), 0),
                   "broadcast of 1 bytes", "broadcast of 2 bytes");
  });
}

TEST(ThreadGroup, CollectivesThatDifferAreRefusedOnAllRanksByName) {
  play_ranks(3, kPatience, [](std::unique_ptr<Group>& group) {
    if (group->rank() == 1) {
      const auto gathered = group->gather({});
      ASSERT_FALSE(gathered);
      EXPECT_EQ(gathered.error().code(), Code::invalid_argument);
      EXPECT_NE(gathered.error().message().find("rank 1 called gather"), std::string::npos);
    } else {
      expect_refused(sum(*group), "rank 0 called reduce(sum)", "rank 1 called gather");
    }
  });
}

TEST(ThreadGroup, ALatecomerFindsTheGroupBroken) {
  play_ranks(3, milliseconds(100), [](std::unique_ptr<Group>& group) {
    if (group->rank() == 1) std::this_thread::sleep_for(milliseconds(300));
    const auto start = Clock::now();
    const auto lost = sum(*group);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code(), Code::peer_lost);
    EXPECT_NE(lost.error().message().find("no answer from rank 1 within 100 ms"), std::string::npos)
        << lost.error().message();
    if (group->rank() == 1) {
      EXPECT_LT(Clock::now() - start, milliseconds(90)) << "it did not wait for a deadline";
    }
    // Rank 0's and 2's groups must not count as gone before rank 1 has looked.
    std::this_thread::sleep_for(milliseconds(400));
  });
}

TEST(ThreadGroup, ARankWhoseGroupIsDestroyedIsLostAtOnce) {
  const auto start = Clock::now();
  play_ranks(3, kPatience, [](std::unique_ptr<Group>& group) {
    ASSERT_TRUE(sum(*group));
    if (group->rank() == 2) return group.reset();
    const auto lost = sum(*group);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code(), Code::peer_lost);
    EXPECT_NE(lost.error().message().find("has left the group"), std::string::npos);
  });
  EXPECT_LT(Clock::now() - start, kPatience / 2);
}

TEST(ThreadGroup, ARoundThatWasCompleteCountsEvenIfAPeerLeavesRightAfterIt) {
  for (int i = 0; i < 500; ++i)
    play_ranks(3, kPatience, [](std::unique_ptr<Group>& group) {
      EXPECT_TRUE(sum(*group));
      EXPECT_TRUE(group->close());
    });
}

TEST(ThreadGroup, CloseWaitsForAllRanks) {
  std::atomic<bool> late_rank_is_there = false;
  play_ranks(3, kPatience, [&](std::unique_ptr<Group>& group) {
    if (group->rank() == 1) {
      std::this_thread::sleep_for(milliseconds(50));
      late_rank_is_there = true;
    }
    EXPECT_TRUE(group->close());
    EXPECT_TRUE(late_rank_is_there);
  });
}

TEST(ThreadGroup, TheLongestTimeoutIsNotAnInstantOne) {
  auto groups = make_thread_groups(2, std::numeric_limits<std::uint64_t>::max());
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_TRUE(sum(*groups[1]));
  });
  EXPECT_TRUE(sum(*groups[0]));
  other.join();
}

}  // namespace
}  // namespace belay::ranks
