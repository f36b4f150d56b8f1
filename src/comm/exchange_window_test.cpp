// SPDX-License-Identifier: Apache-2.0
#include "comm/exchange_window.hpp"

#include "conformance/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>

namespace belay::ranks {
namespace {

/// All ranks put eight bytes to the next; `spoil` may change what one of them says. All must be
/// told the same.
void expect_refused_on_all_ranks(
    const std::function<void(Rank, std::vector<Put>&, std::vector<Landing>&)>& spoil,
    const std::string& told) {
  play_ranks(3, kPatience, [&](std::unique_ptr<Group>& group) {
    auto window = group->open_window(100);
    ASSERT_TRUE(window);
    const std::array<std::byte, 8> bytes{std::byte{1}};
    const Rank me = group->rank();
    std::vector<Put> puts = {{(me + 1) % 3, 10, {bytes}}};
    std::vector<Landing> landings = {{(me + 2) % 3, 10, 8}};
    spoil(me, puts, landings);
    const auto refused = (*window)->put(puts, landings);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::invalid_argument);
    EXPECT_NE(refused.error().message().find(told), std::string::npos) << refused.error().message();
    EXPECT_EQ((*window)->bytes()[10], std::byte{0}) << "nothing is put";
    EXPECT_TRUE((*window)->put({}, {})) << "the ranks are in step";
    EXPECT_TRUE((*window)->close());
    EXPECT_TRUE(group->close());
  });
}

TEST(ExchangeWindow, APutThatNobodyExpectsIsRefused) {
  expect_refused_on_all_ranks(
      [](Rank rank, std::vector<Put>&, std::vector<Landing>& landings) {
        if (rank == 1) landings.clear();
      },
      "8 bytes from rank 0 at 10 of rank 1 put");
}

TEST(ExchangeWindow, ALandingThatNobodyPutsIsRefused) {
  expect_refused_on_all_ranks(
      [](Rank rank, std::vector<Put>& puts, std::vector<Landing>&) {
        if (rank == 2) puts.clear();
      },
      "8 bytes from rank 2 at 10 of rank 0 expected");
}

TEST(ExchangeWindow, ALandingElsewhereThanThePutIsRefused) {
  expect_refused_on_all_ranks(
      [](Rank rank, std::vector<Put>&, std::vector<Landing>& landings) {
        if (rank == 0) landings[0].offset = 11;
      },
      "disagree");
}

TEST(ExchangeWindow, RanksInAnotherCallAreOutOfStep) {
  play_ranks(2, kPatience, [](std::unique_ptr<Group>& group) {
    auto window = group->open_window(100);
    ASSERT_TRUE(window);
    const std::array<std::byte, 3> bytes{};
    if (group->rank() == 0) {
      EXPECT_TRUE(group->gather(bytes));
    } else {
      const auto refused = (*window)->put({}, {});
      ASSERT_FALSE(refused);
      EXPECT_NE(refused.error().message().find("rank 0 is in another call"), std::string::npos);
    }
  });
}

TEST(ExchangeWindow, IsNotUsedAfterClose) {
  const auto group = make_solo_group();
  const auto window = group->open_window(100);
  ASSERT_TRUE(window);
  ASSERT_TRUE((*window)->close());
  EXPECT_TRUE((*window)->bytes().empty());
  EXPECT_EQ((*window)->put({}, {}).error().code(), Code::invalid_argument);
  EXPECT_EQ((*window)->close().error().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace belay::ranks
