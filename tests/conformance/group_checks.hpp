// SPDX-License-Identifier: Apache-2.0
// What every Group must do, as functions that each rank calls with its group: written once for
// solo groups, thread groups and MPI.
#pragma once

#include "comm/group.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace belay::ranks {

/// Bytes that tell who made them: no two ranks' are alike from the first on.
inline std::vector<std::byte> bytes_of(Rank rank, std::size_t length) {
  std::vector<std::byte> bytes(length);
  std::uint64_t word = (rank + 1) * 0x9E3779B97F4A7C15u;
  for (std::size_t i = 0; i < length; i += sizeof word) {
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, length - i));
    word = word * 6364136223846793005u + 1442695040888963407u;
  }
  return bytes;
}

inline void check_reduce(Group& group) {
  const std::uint64_t size = group.size();
  const std::uint64_t rank = group.rank();
  constexpr std::uint64_t kHuge = 1ull << 63;  // unsigned, not signed, must be compared

  std::array<std::uint64_t, 3> values = {100 + rank, kHuge + rank, size - rank};
  ASSERT_TRUE(group.reduce(values, Reduction::min));
  EXPECT_EQ(values, (std::array<std::uint64_t, 3>{100, kHuge, 1}));

  values = {100 + rank, kHuge + rank, size - rank};
  ASSERT_TRUE(group.reduce(values, Reduction::max));
  EXPECT_EQ(values, (std::array<std::uint64_t, 3>{99 + size, kHuge + size - 1, size}));

  values = {1, rank, kHuge};
  ASSERT_TRUE(group.reduce(values, Reduction::sum));
  EXPECT_EQ(values,
            (std::array<std::uint64_t, 3>{size, size * (size - 1) / 2, size % 2 ? kHuge : 0}));

  values = {1ull << rank, 0, kHuge};
  ASSERT_TRUE(group.reduce(values, Reduction::bit_or));
  EXPECT_EQ(values, (std::array<std::uint64_t, 3>{(1ull << size) - 1, 0, kHuge}));

  ASSERT_TRUE(group.reduce({}, Reduction::sum));
}

inline void check_gather_of(Group& group, const std::vector<std::size_t>& lengths) {
  const auto gathered = group.gather(bytes_of(group.rank(), lengths[group.rank()]));
  ASSERT_TRUE(gathered) << gathered.error().message();
  ASSERT_EQ(gathered->size(), group.size());
  for (Rank rank = 0; rank < group.size(); ++rank)
    EXPECT_TRUE((*gathered)[rank] == bytes_of(rank, lengths[rank])) << "bytes of rank " << rank;
}

inline void check_uneven_gather(Group& group) {
  std::vector<std::size_t> rising;
  std::vector<std::size_t> odd_only;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    rising.push_back(1000 * rank);
    odd_only.push_back(rank % 2 * 7);
  }
  check_gather_of(group, rising);
  check_gather_of(group, odd_only);
}

inline void check_empty_gather(Group& group) {
  check_gather_of(group, std::vector<std::size_t>(group.size()));
}

inline void check_large_gather(Group& group) {
  check_gather_of(group, std::vector<std::size_t>(group.size(), 8u << 20));
}

inline void check_broadcast(Group& group) {
  for (Rank root = 0; root < group.size(); ++root) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{100'000}}) {
      auto bytes = bytes_of(group.rank(), length);
      const auto sent = group.broadcast(bytes, root);
      ASSERT_TRUE(sent) << sent.error().message();
      EXPECT_TRUE(bytes == bytes_of(root, length)) << length << " bytes from rank " << root;
    }
  }
}

inline void check_unknown_root(Group& group) {
  auto bytes = bytes_of(group.rank(), 8);
  const auto sent = group.broadcast(bytes, group.size());
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Code::invalid_argument);
  EXPECT_TRUE(bytes == bytes_of(group.rank(), 8));
  check_reduce(group);
}

inline void check_many_small(Group& group) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    if (i % 3 == 0) {
      std::uint64_t value = i + group.rank();
      ASSERT_TRUE(group.reduce({&value, 1}, Reduction::max));
      ASSERT_EQ(value, i + group.size() - 1);
    } else if (i % 3 == 1) {
      std::uint64_t value = group.rank() == 0 ? i : 0;
      ASSERT_TRUE(group.broadcast(std::as_writable_bytes(std::span(&value, 1)), 0));
      ASSERT_EQ(value, i);
    } else {
      const auto gathered = group.gather(bytes_of(group.rank(), i % 10));
      ASSERT_TRUE(gathered);
      for (Rank rank = 0; rank < group.size(); ++rank)
        ASSERT_TRUE((*gathered)[rank] == bytes_of(rank, i % 10));
    }
  }
}

struct GroupCheck {
  const char* name;
  void (*run)(Group& group);
};

inline constexpr GroupCheck kGroupChecks[] = {
    {"ReduceCombinesTheValuesOfAllRanks", check_reduce},
    {"GatherTakesContributionsOfAnyLength", check_uneven_gather},
    {"GatherOfNothingGivesNothing", check_empty_gather},
    {"GatherMoves8MiBOfEachRank", check_large_gather},
    {"BroadcastBringsTheBytesOfEachRoot", check_broadcast},
    {"BroadcastFromARankThatDoesNotExistIsRefused", check_unknown_root},
    {"AThousandSmallCollectivesStayInStep", check_many_small},
};

/// Names the instance of a parameterised test after its check.
inline std::string name_of_check(const ::testing::TestParamInfo<GroupCheck>& tested) {
  return tested.param.name;
}

/// The last rank stays away for three deadlines. All others lose it at theirs, and from then on at
/// once. REQUIRES: more than one rank, and a group with this deadline.
inline void check_lost_peer(Group& group, std::chrono::milliseconds deadline) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t value = 1;
  if (group.rank() + 1 == group.size()) {
    std::this_thread::sleep_for(3 * deadline);
    // Made so that no operation of a peer stays pending for ever; what it returns depends on the
    // implementation, for the peers' messages may have arrived meanwhile.
    static_cast<void>(group.reduce({&value, 1}, Reduction::sum));
    return;
  }
  const auto start = Clock::now();
  const auto lost = group.reduce({&value, 1}, Reduction::sum);
  const auto waited = Clock::now() - start;
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), Code::peer_lost) << lost.error().message();
  EXPECT_GE(waited, deadline * 9 / 10);
  EXPECT_LT(waited, deadline * 2 + std::chrono::seconds(5)) << "not even on a busy machine";
  EXPECT_EQ(value, 1u) << "a failed call leaves the caller's memory alone";

  // The quickest of several: the machine may be busy, a group that waits is never quick.
  auto quickest = Clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    const auto again = Clock::now();
    EXPECT_EQ(group.reduce({&value, 1}, Reduction::sum).error().code(), Code::peer_lost);
    EXPECT_EQ(group.gather({}).error().code(), Code::peer_lost);
    EXPECT_EQ(group.broadcast({}, 0).error().code(), Code::peer_lost);
    EXPECT_EQ(group.close().error().code(), Code::peer_lost);
    quickest = std::min(quickest, Clock::now() - again);
  }
  EXPECT_LT(quickest, std::chrono::milliseconds(1));
}

}  // namespace belay::ranks
