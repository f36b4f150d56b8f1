// SPDX-License-Identifier: Apache-2.0
#include "vote/agreement.hpp"

#include "base/try.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

namespace belay::vote {
namespace {

constexpr std::uint64_t kPatienceNs = 20'000'000'000;

void play(Rank ranks, const std::function<void(ranks::Group&)>& play_rank) {
  auto groups = ranks::make_thread_groups(ranks, kPatienceNs);
  std::vector<std::thread> threads;
  for (auto& group : groups) threads.emplace_back([&, mine = group.get()] { play_rank(*mine); });
  for (auto& thread : threads) thread.join();
}

TEST(Agreement, AllSuccessesAreASuccess) {
  play(4, [](ranks::Group& group) { EXPECT_TRUE(agree(group, {})); });
}

TEST(Agreement, TheLowestFailingRanksErrorIsEverybodys) {
  play(4, [](ranks::Group& group) {
    const Result<void> mine =
        group.rank() < 2 ? Result<void>{} : fail(Code::no_space, "full at {}", group.rank());
    const auto agreed = agree(group, mine);
    ASSERT_FALSE(agreed);
    EXPECT_EQ(agreed.error().code(), Code::no_space);
    EXPECT_EQ(agreed.error().message(), "rank 2: full at 2");
  });
}

TEST(Agreement, EveryCodeTravels) {
  for (const Code code : {Code::not_found, Code::corruption, Code::io, Code::no_space,
                          Code::unsupported, Code::invalid_argument, Code::peer_lost, Code::busy})
    play(2, [code](ranks::Group& group) {
      const auto agreed =
          agree(group, group.rank() == 1 ? Result<void>(fail(code, "why")) : Result<void>{});
      ASSERT_FALSE(agreed);
      EXPECT_EQ(agreed.error().code(), code);
    });
}

TEST(Agreement, AnErrorWithoutAMessageIsStillAnError) {
  play(2, [](ranks::Group& group) {
    const auto agreed =
        agree(group,
              group.rank() == 0 ? Result<void>(Unexpected(Error(Code::busy, ""))) : Result<void>{});
    ASSERT_FALSE(agreed);
    EXPECT_EQ(agreed.error().code(), Code::busy);
  });
}

TEST(Agreement, ASingleRanksErrorStaysAsItIs) {
  const auto group = ranks::make_solo_group();
  const auto agreed = agree(*group, fail(Code::io, "why"));
  ASSERT_FALSE(agreed);
  EXPECT_EQ(agreed.error().message(), "why");
}

TEST(Agreement, AValueIsKeptOnlyWhereAllHaveOne) {
  play(3, [](ranks::Group& group) {
    const auto kept = agree_on(group, Result<Rank>(group.rank()));
    ASSERT_TRUE(kept);
    EXPECT_EQ(*kept, group.rank());
    const auto lost = agree_on(group, group.rank() == 0 ? Result<Rank>(fail(Code::io, "why"))
                                                        : Result<Rank>(group.rank()));
    EXPECT_FALSE(lost);
  });
}

TEST(Agreement, TextsComeByRankWhateverTheirBytes) {
  play(3, [](ranks::Group& group) {
    const std::string mine(group.rank() * 5, '\0');
    const auto texts = gather_texts(group, mine);
    ASSERT_TRUE(texts);
    EXPECT_EQ(*texts, (std::vector<std::string>{"", std::string(5, '\0'), std::string(10, '\0')}));
  });
}

TEST(Agreement, ALostPeerIsSaidToBeLost) {
  auto groups = ranks::make_thread_groups(2, 50'000'000);
  const auto agreed = agree(*groups[0], {});
  ASSERT_FALSE(agreed);
  EXPECT_EQ(agreed.error().code(), Code::peer_lost);
}

}  // namespace
}  // namespace belay::vote
