// SPDX-License-Identifier: Apache-2.0
#include "comm/hub_group.hpp"
#include "conformance/exchange_checks.hpp"
#include "conformance/group_checks.hpp"
#include "conformance/thread_ranks.hpp"
#include "conformance/window_checks.hpp"

#include <map>
#include <mutex>

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

/// Plays ranks by heads, which are threads of a thread group.
void play_by_heads(const std::vector<std::vector<Rank>>& crews, std::chrono::nanoseconds timeout,
                   const std::function<void(Group& group)>& play) {
  play_ranks(static_cast<Rank>(crews.size()), timeout, [&](std::unique_ptr<Group>& heads) {
    Hub hub(*heads, crews, static_cast<std::uint64_t>(timeout.count()));
    static_cast<void>(hub.run(play));
  });
}

const std::vector<std::vector<std::vector<Rank>>> kCrews = {
    {{0}}, {{0, 1, 2}}, {{0}, {1}}, {{1, 2}, {0}}, {{0, 3}, {1}, {2, 4}}};

class HubGroupConformance : public ::testing::TestWithParam<GroupCheck> {};

TEST_P(HubGroupConformance, Holds) {
  for (const auto& crews : kCrews)
    play_by_heads(crews, kPatience, [&](Group& group) {
      GetParam().run(group);
      EXPECT_TRUE(group.close());
    });
}

INSTANTIATE_TEST_SUITE_P(Group, HubGroupConformance, ::testing::ValuesIn(kGroupChecks),
                         name_of_check);
INSTANTIATE_TEST_SUITE_P(Exchange, HubGroupConformance, ::testing::ValuesIn(kExchangeChecks),
                         name_of_check);
INSTANTIATE_TEST_SUITE_P(Window, HubGroupConformance, ::testing::ValuesIn(kWindowChecks),
                         name_of_check);

TEST(HubGroupConformance, ARankThatStaysAwayIsLostToAllOthersAtTheirDeadline) {
  const std::chrono::milliseconds deadline(300);
  for (const auto& crews : kCrews)
    if (crews.size() > 1 || crews[0].size() > 1)
      play_by_heads(crews, deadline, [&](Group& group) { check_lost_peer(group, deadline); });
}

TEST(HubGroupConformance, ASenderThatStaysAwayIsLostToReceiversAtTheirDeadline) {
  const std::chrono::milliseconds deadline(300);
  play_by_heads({{0, 3}, {1}, {2, 4}}, deadline,
                [&](Group& group) { check_lost_sender(group, deadline); });
}

TEST(HubGroupConformance, AHeadRunsAgainWithTheWindowsOfTheRunBefore) {
  play_ranks(2, kPatience, [&](std::unique_ptr<Group>& heads) {
    Hub hub(*heads, {{0, 1}, {2}}, kPatience.count());
    std::map<Rank, std::unique_ptr<Window>> windows;
    std::mutex mutex;
    EXPECT_TRUE(hub.run([&](Group& group) {
      auto window = opened(group, 300);
      const std::lock_guard guard(mutex);
      windows[group.rank()] = std::move(window);
    }));
    for (Rank turn = 0; turn < 3; ++turn)
      EXPECT_TRUE(hub.run([&](Group& group) {
        check_put_round(
            group, *windows.at(group.rank()), [](Rank, Rank) { return 100; }, {30}, turn);
      }));
    EXPECT_TRUE(hub.run([&](Group& group) { close_window(*windows.at(group.rank())); }));
  });
}

TEST(HubGroupConformance, MuchMoreThanTheWindowMovesInRounds) {
  play_by_heads({{0, 2}, {1}}, kPatience,
                [](Group& group) { check_large_volume(group, 50u << 20); });
}

TEST(SoloGroupConformance, ADuplicateServesAnotherThread) { check_duplicate(*make_solo_group()); }

}  // namespace
}  // namespace belay::ranks
