// SPDX-License-Identifier: Apache-2.0
#include "codec/quiet_groups.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace belay::codec {
namespace {

using Bytes = std::vector<std::byte>;

/// Runs of repetition and of noise, of any length.
Bytes mixed(std::size_t bytes, std::size_t step) {
  std::mt19937 random(9);
  Bytes made;
  while (made.size() < bytes) {
    const bool quiet = made.size() >= step && random() % 2 == 0;
    for (std::size_t left = random() % 700; left > 0; --left)
      made.push_back(quiet ? made[made.size() - step] : static_cast<std::byte>(random()));
  }
  made.resize(bytes);
  return made;
}

TEST(QuietGroups, AreLeftOutAndPutBack) {
  for (const std::size_t step : {1u, 3u, 8u, 12u, 33u, 63u, 64u})
    for (const std::size_t bytes : {1u, 63u, 64u, 65u, 640u, 30000u}) {
      const Bytes raw = mixed(bytes, step);
      const QuietGroups groups(step, bytes);
      Bytes kept(bytes + QuietGroups::kGroupBytes), map(groups.map_bytes()), back(bytes);
      kept.resize(groups.split(raw, kept, map));
      ASSERT_TRUE(groups.join(kept, map, back)) << step << " in " << bytes;
      ASSERT_EQ(back, raw) << step << " in " << bytes;
      EXPECT_LT(kept.size(), bytes == 30000 ? bytes * 3 / 4 : bytes + 1);
      kept.push_back({});
      EXPECT_FALSE(groups.join(kept, map, back)) << "more than the map says";
      kept.resize(kept.size() - 2);
      EXPECT_FALSE(groups.join(kept, map, back)) << "less than the map says";
    }
}

TEST(QuietGroups, AreNotJoinedBeforeTheFirst) {
  const QuietGroups groups(8, 128);
  const Bytes kept(64), map(1, std::byte{2});
  Bytes raw(128);
  EXPECT_FALSE(groups.join(kept, map, raw));
}

TEST(QuietGroups, AreManyOnlyWhereTheyAre) {
  const Bytes noise = mixed(1 << 16, 1 << 20);
  EXPECT_FALSE(QuietGroups(8, noise.size()).are_many(noise));
  EXPECT_TRUE(QuietGroups(8, 1 << 16).are_many(Bytes(1 << 16)));
  EXPECT_FALSE(QuietGroups(8, 1 << 10).are_many(Bytes(1 << 10))) << "too few to look at";
}

}  // namespace
}  // namespace belay::codec
