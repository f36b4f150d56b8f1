// SPDX-License-Identifier: Apache-2.0
// What every Group must do with messages and duplicates: more of the checks of group_checks.hpp.
#pragma once

#include "conformance/group_checks.hpp"

#include <functional>

namespace belay::ranks {

/// Bytes that tell sender, receiver and turn.
inline std::vector<std::byte> message_of(Rank from, Rank to, std::size_t length, Rank turn = 0) {
  return bytes_of(from * 1009 + to * 31 + turn * 7, length);
}

/// How many bytes go from a rank to another.
using Lengths = std::function<std::size_t(Rank from, Rank to)>;

/// Every rank sends to each in `targets`, and expects a message from each in `sources`, of lengths
/// that `length` gives for sender and receiver.
inline void check_messages(Group& group, const std::vector<Rank>& targets,
                           const std::vector<Rank>& sources, const Lengths& length, Rank turn = 0) {
  std::vector<std::vector<std::byte>> sent;
  for (const Rank to : targets)
    sent.push_back(message_of(group.rank(), to, length(group.rank(), to), turn));
  std::vector<Message> out;
  for (std::size_t i = 0; i < targets.size(); ++i) out.push_back({targets[i], sent[i]});
  const auto received = group.exchange(out, sources);
  ASSERT_TRUE(received) << received.error().message();
  ASSERT_EQ(received->size(), sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i)
    EXPECT_TRUE((*received)[i] ==
                message_of(sources[i], group.rank(), length(sources[i], group.rank()), turn))
        << "from rank " << sources[i] << " in turn " << turn;
}

inline std::vector<Rank> all_ranks(const Group& group) {
  std::vector<Rank> ranks(group.size());
  for (Rank rank = 0; rank < group.size(); ++rank) ranks[rank] = rank;
  return ranks;
}

inline void check_all_to_all(Group& group) {
  auto backwards = all_ranks(group);
  std::reverse(backwards.begin(), backwards.end());
  const auto odd = [](Rank from, Rank to) { return std::size_t{5003} * from + 13 * to + 1; };
  check_messages(group, all_ranks(group), backwards, odd);
  // Messages of 3 MiB, which no transport takes before the receiver is there.
  check_messages(group, backwards, all_ranks(group),
                 [](Rank from, Rank to) { return (std::size_t{3} << 20) + 10 * from + to; });
}

inline void check_empty_messages(Group& group) {
  check_messages(group, all_ranks(group), all_ranks(group), [](Rank, Rank) { return 0; });
  check_messages(group, all_ranks(group), all_ranks(group),
                 [](Rank from, Rank to) { return (from + to) % 2 * std::size_t{100}; });
  const auto nothing = group.exchange({}, {});
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->empty());
}

inline void check_oneself(Group& group) {
  check_messages(group, {group.rank()}, {group.rank()},
                 [](Rank from, Rank) { return (std::size_t{5} << 20) + from; });
}

inline void check_order(Group& group) {
  const Rank next = (group.rank() + 1) % group.size();
  const Rank previous = (group.rank() + group.size() - 1) % group.size();
  for (Rank turn = 0; turn < 300; ++turn)
    check_messages(
        group, {next}, {previous}, [&](Rank, Rank) { return turn % 7 * 100; }, turn);
}

/// Only the first two ranks have messages, while the others are at a collective already.
inline void check_bystanders(Group& group) {
  if (group.size() > 1 && group.rank() < 2) {
    const Rank other = 1 - group.rank();
    check_messages(group, {other}, {other}, [](Rank, Rank) { return std::size_t{2} << 20; });
    // One way only.
    const auto length = [](Rank, Rank) { return std::size_t{77}; };
    if (group.rank() == 0)
      check_messages(group, {other}, {}, length);
    else
      check_messages(group, {}, {other}, length);
  }
  check_reduce(group);
}

inline void check_wrong_messages(Group& group) {
  const auto bytes = bytes_of(0, 8);
  const Message beyond[] = {{group.size(), bytes}};
  const Message twice[] = {{0, bytes}, {0, bytes}};
  const Message to_oneself[] = {{group.rank(), bytes}};
  const Rank from_beyond[] = {group.size()};
  const Rank from_twice[] = {0, 0};
  const Rank from_oneself[] = {group.rank()};
  for (const auto& refused : {group.exchange(beyond, {}), group.exchange(twice, {}),
                              group.exchange(to_oneself, {}), group.exchange({}, from_beyond),
                              group.exchange({}, from_twice), group.exchange({}, from_oneself)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::invalid_argument) << refused.error().message();
  }
  check_all_to_all(group);
}

inline constexpr GroupCheck kExchangeChecks[] = {
    {"ExchangeMovesMessagesOfOddLengthsBetweenAllRanks", check_all_to_all},
    {"EmptyMessagesArrive", check_empty_messages},
    {"AMessageToOneselfArrives", check_oneself},
    {"MessagesArriveInTheOrderOfCalls", check_order},
    {"RanksWithoutMessagesNeedNotExchange", check_bystanders},
    {"ExchangesWithWrongRanksAreRefusedAndNothingIsSent", check_wrong_messages},
};

/// The duplicate is used by another thread at the same time, and outlives the group's close().
inline void check_duplicate(Group& group) {
  auto made = group.duplicate();
  ASSERT_TRUE(made) << made.error().message();
  const std::unique_ptr<Group> second = *std::move(made);
  EXPECT_EQ(second->rank(), group.rank());
  EXPECT_EQ(second->size(), group.size());
  check_reduce(group);
  std::thread other([&] {
    check_many_small(*second);
    check_all_to_all(*second);
  });
  check_all_to_all(group);
  check_many_small(group);
  other.join();
  EXPECT_TRUE(group.close());
  check_order(*second);
  EXPECT_TRUE(second->close());
}

/// Even and odd ranks go apart, each in reverse, and do not need the group that they were.
inline void check_subset(Group& group) {
  std::vector<Rank> members;
  for (Rank rank = group.size(); rank-- > 0;)
    if (rank % 2 == group.rank() % 2) members.push_back(rank);
  auto made = group.subset(members);
  ASSERT_TRUE(made) << made.error().message();
  const std::unique_ptr<Group> part = *std::move(made);
  EXPECT_TRUE(group.close());
  ASSERT_EQ(part->size(), members.size());
  EXPECT_EQ(members[part->rank()], group.rank());
  check_reduce(*part);
  check_order(*part);
  EXPECT_TRUE(part->close());
}

/// The last rank stays away for three deadlines: those who wait for its message lose it at theirs.
/// REQUIRES: more than one rank, and a group with this deadline.
inline void check_lost_sender(Group& group, std::chrono::milliseconds deadline) {
  using Clock = std::chrono::steady_clock;
  const Rank last = group.size() - 1;
  const Rank from[] = {last};
  if (group.rank() == last) {
    std::this_thread::sleep_for(3 * deadline);
    // Sent so that nothing stays pending for ever; the peers have gone.
    std::vector<Message> out;
    const auto bytes = bytes_of(last, 100);
    for (Rank to = 0; to < last; ++to) out.push_back({to, bytes});
    static_cast<void>(group.exchange(out, {}));
    return;
  }
  const auto start = Clock::now();
  const auto lost = group.exchange({}, from);
  const auto waited = Clock::now() - start;
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), Code::peer_lost) << lost.error().message();
  EXPECT_GE(waited, deadline * 9 / 10);
  EXPECT_LT(waited, deadline * 2 + std::chrono::seconds(5)) << "not even on a busy machine";
  const auto again = Clock::now();
  EXPECT_EQ(group.exchange({}, from).error().code(), Code::peer_lost);
  EXPECT_EQ(group.open_window(10).error().code(), Code::peer_lost);
  EXPECT_EQ(group.duplicate().error().code(), Code::peer_lost);
  EXPECT_LT(Clock::now() - again, deadline / 2);
}

}  // namespace belay::ranks
