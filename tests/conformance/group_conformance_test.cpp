// SPDX-License-Identifier: Apache-2.0
#include "conformance/exchange_checks.hpp"
#include "conformance/group_checks.hpp"
#include "conformance/thread_ranks.hpp"
#include "conformance/window_checks.hpp"

namespace belay::ranks {
namespace {

class SoloGroupConformance : public ::testing::TestWithParam<GroupCheck> {};

TEST_P(SoloGroupConformance, Holds) {
  const auto group = make_solo_group();
  EXPECT_EQ(group->rank(), 0u);
  EXPECT_EQ(group->size(), 1u);
  GetParam().run(*group);
  EXPECT_TRUE(group->close());
}

INSTANTIATE_TEST_SUITE_P(Group, SoloGroupConformance, ::testing::ValuesIn(kGroupChecks),
                         name_of_check);
INSTANTIATE_TEST_SUITE_P(Exchange, SoloGroupConformance, ::testing::ValuesIn(kExchangeChecks),
                         name_of_check);
INSTANTIATE_TEST_SUITE_P(Window, SoloGroupConformance, ::testing::ValuesIn(kWindowChecks),
                         name_of_check);

class ThreadGroupConformance : public ::testing::TestWithParam<GroupCheck> {};

TEST_P(ThreadGroupConformance, Holds) {
  for (const Rank size : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(size);
    play_ranks(size, kPatience, [&](std::unique_ptr<Group>& group) {
      EXPECT_EQ(group->size(), size);
      GetParam().run(*group);
      EXPECT_TRUE(group->close());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Group, ThreadGroupConformance, ::testing::ValuesIn(kGroupChecks),
                         name_of_check);
INSTANTIATE_TEST_SUITE_P(Exchange, ThreadGroupConformance, ::testing::ValuesIn(kExchangeChecks),
                         name_of_check);
INSTANTIATE_TEST_SUITE_P(Window, ThreadGroupConformance, ::testing::ValuesIn(kWindowChecks),
                         name_of_check);

TEST(ThreadGroupConformance, AThreadThatStaysAwayIsLostToAllOthersAtTheirDeadline) {
  const std::chrono::milliseconds deadline(300);
  for (const Rank size : {2u, 4u})
    play_ranks(size, deadline,
               [&](std::unique_ptr<Group>& group) { check_lost_peer(*group, deadline); });
}

TEST(ThreadGroupConformance, ASenderThatStaysAwayIsLostToReceiversAtTheirDeadline) {
  const std::chrono::milliseconds deadline(300);
  play_ranks(3, deadline,
             [&](std::unique_ptr<Group>& group) { check_lost_sender(*group, deadline); });
}

TEST(ThreadGroupConformance, AThreadThatStaysAwayFromARoundOfPutsIsLost) {
  const std::chrono::milliseconds deadline(300);
  play_ranks(3, deadline,
             [&](std::unique_ptr<Group>& group) { check_lost_target(*group, deadline); });
}

TEST(ThreadGroupConformance, ADuplicateServesAnotherThread) {
  play_ranks(3, kPatience, [](std::unique_ptr<Group>& group) { check_duplicate(*group); });
}

TEST(ThreadGroupConformance, MuchMoreThanTheWindowMovesInRounds) {
  play_ranks(3, kPatience,
             [](std::unique_ptr<Group>& group) { check_large_volume(*group, 50u << 20); });
}

TEST(SoloGroupConformance, ADuplicateServesAnotherThread) { check_duplicate(*make_solo_group()); }

}  // namespace
}  // namespace belay::ranks
