// SPDX-License-Identifier: Apache-2.0
#include "redundancy/stripe_rebuild.hpp"

#include "redundancy/stripe_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace belay::redundancy {
namespace {

PlayedStripe played(const ErasureScheme& scheme, std::vector<std::uint64_t> lengths,
                    std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  auto layout = StripeLayout::make(scheme, std::move(lengths));
  EXPECT_TRUE(layout) << layout.error().message();
  return PlayedStripe(*std::move(layout), random);
}

StripeRebuilder rebuilder_of(PlayedStripe& stripe, const Places& lost,
                             std::size_t memory_bytes = StripeRebuilder::kDefaultMemory) {
  stripe.lose(lost);
  auto rebuilder = StripeRebuilder::make(
      stripe.layout(), lost,
      [&stripe](const StripePart& part, std::uint64_t offset, MutableBytes into) {
        return stripe.read(part, offset, into);
      },
      memory_bytes);
  EXPECT_TRUE(rebuilder) << rebuilder.error().message();
  return *std::move(rebuilder);
}

void expect_range(PlayedStripe& stripe, StripeRebuilder& rebuilder, const StripePart& part,
                  const Range& range) {
  String got(range.length, std::byte{0xA5});
  const auto done = rebuilder.rebuild(part, range.offset, got);
  ASSERT_TRUE(done) << done.error().message();
  const Bytes whole = stripe.bytes_of(part);
  ASSERT_TRUE(std::ranges::equal(got, whole.subspan(range.offset, range.length)))
      << name_of(part) << ", " << range.length << " bytes at " << range.offset;
}

/// Loses the nodes, and rebuilds every part that they had.
void expect_all_rebuilt(PlayedStripe& stripe, const Places& lost) {
  StripeRebuilder rebuilder = rebuilder_of(stripe, lost);
  for (const std::uint32_t place : lost) {
    expect_range(stripe, rebuilder, {place}, {0, stripe.layout().bytes_of({place})});
    for (std::uint32_t i = 0; i < stripe.layout().scheme().shards; ++i)
      expect_range(stripe, rebuilder, {place, i}, {0, stripe.layout().bytes_of({place, i})});
  }
  stripe.heal();
}

TEST(StripeRebuild, EveryLossOfUpToMNodesIsRebuilt) {
  std::mt19937_64 random(1);
  for (const ErasureScheme& scheme :
       {ErasureScheme{1, 1}, ErasureScheme{2, 1}, ErasureScheme{3, 1}, ErasureScheme{2, 2},
        ErasureScheme{4, 2}, ErasureScheme{3, 3}})
    for (std::uint32_t nodes = scheme.width(); nodes < 2 * scheme.width(); ++nodes)
      for (const std::uint64_t most : {0u, 1u, 700u, 5000u}) {
        PlayedStripe stripe = played(scheme, random_lengths(random, nodes, most), random());
        for (const Places& lost : subsets(nodes, scheme.shards)) {
          expect_all_rebuilt(stripe, lost);
          if (HasFatalFailure()) return;
        }
      }
}

TEST(StripeRebuild, LargerSchemesRebuildSampledLosses) {
  std::mt19937_64 random(2);
  for (const ErasureScheme& scheme :
       {ErasureScheme{6, 3}, ErasureScheme{8, 2}, ErasureScheme{8, 3}, ErasureScheme{20, 10}})
    for (const std::uint32_t extra : {0u, 1u, scheme.width() - 1}) {
      PlayedStripe stripe =
          played(scheme, random_lengths(random, scheme.width() + extra, 20'000), random());
      for (int sample = 0; sample < 20; ++sample) {
        Places lost(stripe.layout().nodes());
        for (std::uint32_t place = 0; place < lost.size(); ++place) lost[place] = place;
        std::ranges::shuffle(lost, random);
        lost.resize(scheme.shards);
        expect_all_rebuilt(stripe, lost);
        if (HasFatalFailure()) return;
      }
    }
}

TEST(StripeRebuild, StripesWithNodesThatGiveNothingAreRebuilt) {
  for (const std::vector<std::uint64_t>& lengths :
       {std::vector<std::uint64_t>{900, 0, 333, 64, 0, 128},
        {17, 0, 0, 65, 0, 0},
        {4001, 0, 0, 0, 0, 0},
        {0, 0, 0, 0, 5, 0}}) {
    PlayedStripe stripe = played({2, 2}, lengths, 3);
    for (const Places& lost : subsets(6, 2)) expect_all_rebuilt(stripe, lost);
  }
}

TEST(StripeRebuild, RandomRangesInLittleMemory) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 300; ++round) {
    const ErasureScheme scheme{static_cast<std::uint32_t>(1 + random() % 6),
                               static_cast<std::uint32_t>(1 + random() % 3)};
    const std::uint32_t nodes = scheme.width() + static_cast<std::uint32_t>(random() % 4);
    PlayedStripe stripe = played(scheme, random_lengths(random, nodes, 60'000), random());
    Places lost;
    for (std::uint32_t i = 0; i < scheme.shards; ++i)
      lost.push_back(static_cast<std::uint32_t>(random() % nodes));
    StripeRebuilder rebuilder = rebuilder_of(stripe, lost, 1);
    for (int sample = 0; sample < 8; ++sample) {
      const auto shard = random() % 2 == 0 ? StripePart::kMember
                                           : static_cast<std::uint32_t>(random() % scheme.shards);
      const StripePart part{lost[random() % lost.size()], shard};
      const std::uint64_t bytes = stripe.layout().bytes_of(part);
      const std::uint64_t offset = random() % (bytes + 1);
      expect_range(stripe, rebuilder, part, {offset, random() % (bytes - offset + 1)});
      ASSERT_FALSE(HasFatalFailure()) << "round " << round;
    }
    ASSERT_LE(stripe.most_read_at_once(), 4096u);
  }
}

TEST(StripeRebuild, ReadsKTimesTheRangeAndNoMore) {
  PlayedStripe stripe = played({4, 2}, std::vector<std::uint64_t>(7, 40'960));
  StripeRebuilder rebuilder = rebuilder_of(stripe, {2, 5});
  expect_range(stripe, rebuilder, {2}, {12'345, 1000});
  EXPECT_EQ(stripe.take_bytes_read(), 4000u);
  expect_range(stripe, rebuilder, {5}, {0, 40'960});
  EXPECT_EQ(stripe.take_bytes_read(), 4 * 40'960u);
}

TEST(StripeRebuild, DoesNotReadBeyondTheEndOfShortMembers) {
  PlayedStripe stripe = played({3, 1}, {3000, 0, 1, 700});
  StripeRebuilder rebuilder = rebuilder_of(stripe, {0});
  expect_range(stripe, rebuilder, {0}, {0, 3000});
  EXPECT_LT(stripe.take_bytes_read(), 3000u + 701u + 1u);
}

TEST(StripeRebuild, MoreLossesThanMAreSurvivedWhereLostMembersAreEmpty) {
  PlayedStripe stripe = played({2, 1}, {0, 5000, 0, 0, 0});
  // Member 1 is in codewords 1 and 0, with their shards on nodes 3 and 2.
  StripeRebuilder rebuilder = rebuilder_of(stripe, {0, 1, 4});
  expect_range(stripe, rebuilder, {1}, {0, 5000});
}

TEST(StripeRebuild, OneLossMoreNamesTheNodes) {
  PlayedStripe stripe = played({2, 2}, std::vector<std::uint64_t>(5, 1000));
  StripeRebuilder rebuilder = rebuilder_of(stripe, {1, 3, 4});
  String got(1000);
  const auto done = rebuilder.rebuild({3}, 0, got);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::not_found);
  EXPECT_NE(done.error().message().find("the member of node 3, bytes 0 to 512"), std::string::npos)
      << done.error().message();
  EXPECT_NE(done.error().message().find("nodes 1, 3, 4 of the set, and erasure:2+2 rebuilds 2"),
            std::string::npos)
      << done.error().message();

  const auto plan = plan_rebuild(stripe.layout(), {3}, {0, 1000}, Places{1, 3, 4});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message(), done.error().message());
}

TEST(StripeRebuild, DamagedSourcesAreReplacedByOthers) {
  PlayedStripe stripe = played({3, 2}, std::vector<std::uint64_t>(6, 30'000));
  for (const Code code : {Code::corruption, Code::io, Code::not_found}) {
    StripeRebuilder rebuilder = rebuilder_of(stripe, {0}, 1);
    // Chunk 0 of member 0 is in codeword 0 with members 1 and 2, chunk 2 in codeword 4 with 4
    // and 5.
    stripe.damage({1}, {12'000, 100}, code);
    stripe.damage({5}, {0, 30'000}, code);
    expect_range(stripe, rebuilder, {0}, {0, 30'000});
    stripe.heal();
  }
}

TEST(StripeRebuild, ADamagedPartOfAPresentNodeIsRebuiltWithoutReadingIt) {
  PlayedStripe stripe = played({3, 1}, std::vector<std::uint64_t>(4, 9999));
  for (const auto& [key, bytes] : stripe.parts()) {
    const StripePart wanted{key.first, key.second};
    auto rebuilder = StripeRebuilder::make(
        stripe.layout(), {}, [&](const StripePart& part, std::uint64_t offset, MutableBytes into) {
          EXPECT_FALSE(part == wanted);
          return stripe.read(part, offset, into);
        });
    ASSERT_TRUE(rebuilder);
    expect_range(stripe, *rebuilder, wanted, {0, bytes.size()});
  }
}

/// Can each byte of the range be known, if the parts `gone` cannot be read?
bool is_possible(const StripeLayout& layout, const StripePart& wanted, const Range& range,
                 const std::vector<StripePart>& gone) {
  for (std::uint64_t offset = range.offset; offset < range.end(); ++offset) {
    const auto piece = layout.piece_with(wanted, offset);
    const std::uint64_t at = offset - piece.range.offset;
    std::size_t unknown = 0, shards = 0;
    for (std::uint32_t position = 0; position < layout.scheme().width(); ++position) {
      const StripePart part = layout.part_at(piece.codeword, position);
      const bool is_gone = part == wanted || std::ranges::find(gone, part) != gone.end();
      if (!part.is_member())
        shards += is_gone ? 0 : 1;
      else if (is_gone && at < layout.range_at(piece.codeword, position).length)
        ++unknown;
    }
    if (unknown > shards) return false;
  }
  return true;
}

TEST(StripeRebuild, SucceedsExactlyWhereEnoughIsLeft) {
  std::mt19937_64 random(5);
  int successes = 0, failures = 0;
  for (int round = 0; round < 3000; ++round) {
    const ErasureScheme scheme{static_cast<std::uint32_t>(1 + random() % 5),
                               static_cast<std::uint32_t>(1 + random() % 3)};
    const std::uint32_t nodes = scheme.width() + static_cast<std::uint32_t>(random() % 3);
    PlayedStripe stripe = played(scheme, random_lengths(random, nodes, 600), random());
    Places lost;
    std::vector<StripePart> gone;
    for (const auto& [key, bytes] : stripe.parts()) {
      const StripePart part{key.first, key.second};
      if (part.is_member() ? random() % 4 == 0 : random() % 8 == 0) {
        stripe.damage(part, {0, bytes.size()});
        gone.push_back(part);
      }
    }
    if (random() % 2 == 0) {
      lost.push_back(static_cast<std::uint32_t>(random() % nodes));
      gone.push_back({lost[0]});
      for (std::uint32_t i = 0; i < scheme.shards; ++i) gone.push_back({lost[0], i});
    }
    const StripePart wanted{static_cast<std::uint32_t>(random() % nodes),
                            random() % 3 == 0 ? 0 : StripePart::kMember};
    const std::uint64_t offset = random() % (stripe.layout().bytes_of(wanted) + 1);
    const Range range{offset, random() % (stripe.layout().bytes_of(wanted) - offset + 1)};
    StripeRebuilder rebuilder = rebuilder_of(stripe, lost);
    if (is_possible(stripe.layout(), wanted, range, gone)) {
      expect_range(stripe, rebuilder, wanted, range);
      ++successes;
    } else {
      String got(range.length);
      const auto done = rebuilder.rebuild(wanted, range.offset, got);
      ASSERT_FALSE(done) << "round " << round;
      ASSERT_EQ(done.error().code(), Code::not_found);
      ++failures;
    }
    ASSERT_FALSE(HasFatalFailure()) << "round " << round;
  }
  EXPECT_GT(successes, 500);
  EXPECT_GT(failures, 500);
}

TEST(StripeRebuild, RangesBeyondFourGigabytesOfMembersThatNeverAreInMemory) {
  constexpr std::uint64_t kGigabyte = std::uint64_t{1} << 30;
  const auto layout = StripeLayout::make({3, 2}, {40 * kGigabyte, 33 * kGigabyte + 5, 7 * kGigabyte,
                                                  40 * kGigabyte + 1, 39 * kGigabyte});
  const auto code = ErasureCode::make({3, 2});
  ASSERT_TRUE(layout);
  const auto read_member = [](std::uint32_t place, std::uint64_t offset, MutableBytes into) {
    for (std::size_t i = 0; i < into.size(); ++i)
      into[i] = static_cast<std::byte>(((offset + i) * 0x9E3779B97F4A7C15u + place) >> 56);
  };
  const auto read = [&](const StripePart& part, std::uint64_t offset, MutableBytes into) {
    if (part.is_member()) {
      read_member(part.place, offset, into);
      return Result<void>();
    }
    const auto codeword = layout->shards(part.place)[part.shard].codeword;
    std::vector<String> members(3), shards(2, String(into.size()));
    for (std::uint32_t position = 0; position < 3; ++position) {
      const Range chunk = layout->range_at(codeword, position);
      const std::uint64_t begin = std::min(offset, chunk.length);
      members[position].resize(std::min(offset + into.size(), chunk.length) - begin);
      read_member(layout->part_at(codeword, position).place, chunk.offset + begin,
                  members[position]);
    }
    code->encode(std::vector<Bytes>(members.begin(), members.end()),
                 std::vector<MutableBytes>(shards.begin(), shards.end()));
    std::ranges::copy(shards[part.shard], into.begin());
    return Result<void>();
  };
  auto rebuilder = StripeRebuilder::make(*layout, {0, 3}, read);
  ASSERT_TRUE(rebuilder);
  for (const std::uint32_t place : {0u, 3u})
    for (const std::uint64_t offset :
         {5 * kGigabyte, layout->contributions(place)[1].range.offset - 100,
          40 * kGigabyte - 70'000}) {
      String got(70'000), expected(got.size());
      const auto done = rebuilder->rebuild({place}, offset, got);
      ASSERT_TRUE(done) << done.error().message();
      read_member(place, offset, expected);
      EXPECT_EQ(got, expected) << place << " at " << offset;
    }
}

TEST(StripeRebuild, TooMuchDamageTellsTheFirst) {
  PlayedStripe stripe = played({2, 1}, std::vector<std::uint64_t>(3, 1000));
  StripeRebuilder rebuilder = rebuilder_of(stripe, {0});
  stripe.damage({1}, {0, 1000});
  String got(1000);
  const auto done = rebuilder.rebuild({0}, 0, got);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::not_found);
  EXPECT_NE(done.error().message().find("nodes 0, 1 of the set"), std::string::npos);
  EXPECT_NE(done.error().message().find("the member of node 1: bad checksum"), std::string::npos)
      << done.error().message();
}

TEST(StripeRebuild, ALostPeerEndsItAtOnce) {
  PlayedStripe stripe = played({2, 2}, std::vector<std::uint64_t>(4, 1000));
  StripeRebuilder rebuilder = rebuilder_of(stripe, {0});
  stripe.damage({1}, {0, 1000}, Code::peer_lost);
  String got(1000);
  const auto done = rebuilder.rebuild({0}, 0, got);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::peer_lost);
}

TEST(StripeRebuild, PlansNameExactlyWhatIsNeeded) {
  const auto layout = StripeLayout::make({2, 1}, {200, 0, 64, 1000});
  ASSERT_TRUE(layout);
  // Member 3 is in codeword 3 with member 0 (72 bytes) and a shard on 1, and in codeword 2 behind
  // member 2 with a shard on 0.
  const auto steps = plan_rebuild(*layout, {3}, {500, 100}, Places{3});
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->size(), 2u);
  const RebuildStep& first = (*steps)[0];
  EXPECT_EQ(first.target, (Range{500, 12}));
  EXPECT_EQ(first.known, (Places{1, 2}));
  EXPECT_EQ(first.sources[0].range.length, 0u);
  EXPECT_EQ(first.sources[1], (RebuildStep::Source{{1, 0}, {500, 12}}));
  const RebuildStep& second = (*steps)[1];
  EXPECT_EQ(second.target, (Range{512, 88}));
  EXPECT_EQ(second.known, (Places{0, 2}));
  EXPECT_EQ(second.sources[0], (RebuildStep::Source{{2}, {0, 64}}));
  EXPECT_EQ(second.sources[1], (RebuildStep::Source{{0, 0}, {0, 88}}));
}

TEST(StripeRebuild, NoShardIsReadForALostMemberBeyondItsEnd) {
  const auto layout = StripeLayout::make({2, 2}, {1000, 200, 0, 0});
  ASSERT_TRUE(layout);
  // Codeword 0: 512 bytes of member 0, then 72 of member 1, and shards on 2 and 3.
  const auto steps = plan_rebuild(*layout, {0}, {0, 512}, Places{0, 1});
  ASSERT_TRUE(steps);
  ASSERT_EQ(steps->size(), 2u);
  EXPECT_EQ((*steps)[0].target, (Range{0, 72}));
  EXPECT_EQ((*steps)[0].known, (Places{2, 3}));
  EXPECT_EQ((*steps)[1].target, (Range{72, 440}));
  EXPECT_EQ((*steps)[1].known, (Places{1, 2}));
  EXPECT_EQ((*steps)[1].sources[0].range.length, 0u);
}

TEST(StripeRebuild, RefusesWhatIsNotInTheLayout) {
  PlayedStripe stripe = played({2, 1}, {10, 20, 30});
  StripeRebuilder rebuilder = rebuilder_of(stripe, {0});
  String got(11);
  const auto code_of = [&](const StripePart& part, std::uint64_t offset) {
    const auto done = rebuilder.rebuild(part, offset, got);
    return done ? Code::busy : done.error().code();
  };
  EXPECT_EQ(code_of({0}, 0), Code::invalid_argument);
  EXPECT_EQ(code_of({0}, ~std::uint64_t{0}), Code::invalid_argument);
  EXPECT_EQ(code_of({3}, 0), Code::invalid_argument);
  EXPECT_EQ(code_of({0, 1}, 0), Code::invalid_argument);
  EXPECT_FALSE(plan_rebuild(stripe.layout(), {0}, {0, 10}, Places{3}));
  EXPECT_FALSE(plan_rebuild(stripe.layout(), {0}, {5, ~std::uint64_t{0}}, Places{0}));
  EXPECT_FALSE(StripeRebuilder::make(stripe.layout(), {7}, nullptr));
  EXPECT_TRUE(rebuilder.rebuild({0}, 10, {}));
}

}  // namespace
}  // namespace belay::redundancy
