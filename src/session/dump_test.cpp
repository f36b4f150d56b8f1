// SPDX-License-Identifier: Apache-2.0
// dump() and load(): buffers that are versions of their own.
#include "session/played_ranks_test.hpp"
#include "session/session_test.hpp"

#include <cstring>
#include <set>
#include <thread>

namespace belay::session {
namespace {

constexpr Rank kDumping = 4;
constexpr std::uint64_t kPatienceNs = 60'000'000'000;

using Buffer = std::vector<std::uint64_t>;

/// Of different number and size on each rank; some are empty, some have blocks in common.
std::vector<Buffer> buffers_of(Rank rank, std::uint64_t seed = 1) {
  std::vector<Buffer> buffers;
  for (Rank i = 0; i < 2 * rank; ++i)
    buffers.push_back(noise(i % 3 == 2 ? 0 : 10 + 300 * i, seed + 100 * rank + i));
  buffers.push_back(noise(20 * kPerBlock, seed));  // the same on all ranks
  return buffers;
}

std::vector<std::span<const std::byte>> bytes_of(const std::vector<Buffer>& buffers) {
  std::vector<std::span<const std::byte>> spans;
  for (const Buffer& buffer : buffers) spans.push_back(std::as_bytes(std::span(buffer)));
  return spans;
}
std::vector<std::span<std::byte>> room_of(std::vector<Buffer>& buffers) {
  std::vector<std::span<std::byte>> spans;
  for (Buffer& buffer : buffers) spans.push_back(std::as_writable_bytes(std::span(buffer)));
  return spans;
}

struct Setting {
  friend void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

  const char* name;
  const char* redundancy;
  const char* dedup;
  const char* background;
};

class Dump : public testing::TestWithParam<Setting> {
 protected:
  Options options(Rank rank) const {
    Options options;
    options.store = "/store";
    options.application = "test";
    options.block = kBlock;
    options.staging = "1MiB";
    options.keep = 1;
    options.redundancy = GetParam().redundancy;
    if (GetParam().dedup != nullptr) options.dedup = GetParam().dedup;
    options.background = GetParam().background;
    options.node = std::to_string(rank);
    return options;
  }

  void play(const std::function<void(Rank, Session&)>& play_rank) {
    play_ranks(kDumping, kPatienceNs, [&](Rank rank, std::unique_ptr<ranks::Group> group) {
      auto session = must(open(std::move(group), options(rank)));
      play_rank(rank, session);
    });
  }
  Result<Session> open(std::unique_ptr<ranks::Group> group, Options options) {
    Seams seams = played_seams(memory_);
    seams.clock = &clock_;
    return open_played(seams, std::move(group), std::move(options));
  }

  static Version dump(Session& session, const std::vector<Buffer>& buffers, int copies) {
    const auto spans = bytes_of(buffers);
    return must(session.dump(spans, copies));
  }
  static Result<void> load(Session& session, Version version, std::vector<Buffer>& into) {
    const auto spans = room_of(into);
    return session.load(version, spans);
  }
  static void expect_loaded(Session& session, Version version,
                            const std::vector<Buffer>& expected) {
    std::vector<Buffer> found;
    for (const Buffer& buffer : expected) found.emplace_back(buffer.size());
    must(load(session, version, found));
    EXPECT_TRUE(found == expected);
  }
  void lose(const std::string& node) {
    for (const std::string& path : memory_.paths())
      if (path.starts_with("/store/node-" + node + "/")) must(memory_.remove(path));
  }
  std::uint64_t payload_bytes(const char* kind) const {
    std::uint64_t sum = 0;
    for (const std::string& path : memory_.paths())
      if (path.find(kind) != path.npos) sum += must(memory_.peek(path)).size();
    return sum;
  }

  os::MemoryFiles memory_;
  FakeClock clock_;
};

TEST_P(Dump, IsLoadedBitForBitAtOnceAndByALaterRun) {
  for (int copies = 1; copies <= 3; ++copies) {
    Version version = 0;
    play([&](Rank rank, Session& session) {
      const Version taken = dump(session, buffers_of(rank), copies);
      if (rank == 0) version = taken;
      expect_loaded(session, taken, buffers_of(rank));
      must(session.close());
    });
    play([&](Rank rank, Session& session) {
      expect_loaded(session, version, buffers_of(rank));
      must(session.close());
    });
  }
}

TEST_P(Dump, SurvivesTheLossOfOneNodeLessThanCopies) {
  for (const char* lost : {"0", "1", "2", "3"}) {
    Version version = 0;
    play([&](Rank rank, Session& session) {
      const Version taken = dump(session, buffers_of(rank, 7), 2);
      if (rank == 0) version = taken;
      must(session.close());
    });
    lose(lost);
    play([&](Rank rank, Session& session) {
      expect_loaded(session, version, buffers_of(rank, 7));
      must(session.close());
    });
  }
}

TEST_P(Dump, BuffersMayOverlapAndBeNone) {
  play([&](Rank rank, Session& session) {
    const Buffer memory = noise(1000, rank);
    const auto all = std::as_bytes(std::span(memory));
    std::vector<std::span<const std::byte>> spans;
    if (rank > 0) spans = {all.subspan(3, 4000), all.subspan(1001, 5000), all.first(0), all};
    const Version version = must(session.dump(spans, 2));
    std::vector<std::vector<std::byte>> found;
    std::vector<std::span<std::byte>> room;
    for (const auto& span : spans) found.emplace_back(span.size());
    for (auto& one : found) room.emplace_back(one);
    must(session.load(version, room));
    for (std::size_t i = 0; i < spans.size(); ++i)
      EXPECT_TRUE(std::equal(found[i].begin(), found[i].end(), spans[i].begin(), spans[i].end()));
    must(session.close());
  });
}

TEST_P(Dump, MoreCopiesThanNodesAreRefusedBeforeAnythingIsWritten) {
  play([&](Rank rank, Session& session) {
    const auto buffers = buffers_of(rank);
    const auto spans = bytes_of(buffers);
    expect_error(session.dump(spans, 5), Code::invalid_argument, {"5 copies need 5 nodes", "on 4"});
    for (const int none : {0, -1, 256})
      expect_error(session.dump(spans, none), Code::invalid_argument, {"1 to 255"});
    EXPECT_FALSE(session.close()) << "it is told again, since the result may have been ignored";
  });
  EXPECT_EQ(payload_bytes("segment-") + payload_bytes("manifest-") + payload_bytes("copy-"), 0u);
}

TEST_P(Dump, RanksThatAskForDifferentCopiesAllHearOfIt) {
  play([&](Rank rank, Session& session) {
    expect_error(session.dump({}, rank == 2 ? 1 : 2), Code::invalid_argument,
                 {"different numbers of copies"});
    EXPECT_FALSE(session.close());
  });
}

TEST_P(Dump, IsNoCheckpoint) {
  Version first = 0;
  play([&](Rank rank, Session& session) {
    const Version taken = dump(session, buffers_of(rank), 2);
    if (rank == 0) first = taken;
    EXPECT_FALSE(session.latest());
    must(session.close());
  });
  play([&](Rank rank, Session& session) {
    EXPECT_FALSE(session.latest()) << "a program that finds none starts anew";
    Buffer field = noise(5000, rank);
    must(session.protect("field", field));
    const Version checkpoint = must(session.checkpoint());
    const Version second = dump(session, buffers_of(rank, 9), 2);
    EXPECT_GT(second, checkpoint);
    EXPECT_EQ(session.latest(), checkpoint);
    EXPECT_EQ(must(session.wait()), checkpoint);
    must(session.close());
  });
  play([&](Rank rank, Session& session) {
    Buffer field;
    must(session.protect("field", field));
    ASSERT_TRUE(session.latest());
    must(session.restore());
    EXPECT_TRUE(field == noise(5000, rank));
    expect_error(session.restore(first), Code::invalid_argument, {"dump()", "load()"});
    EXPECT_EQ(session.versions().size(), 3u);
    must(session.close());
  });
}

TEST_P(Dump, StaysHoweverManyCheckpointsCome) {
  play([&](Rank rank, Session& session) {
    const Version version = dump(session, buffers_of(rank), 2);
    Buffer field = noise(3000, rank);
    must(session.protect("field", field));
    for (std::uint64_t step = 0; step < 6; ++step) {
      for (auto& value : field) value += step + 1;
      must(session.checkpoint());
      must(session.wait());
    }
    EXPECT_EQ(session.versions().size(), 2u) << "keep = 1, and the dump";
    expect_loaded(session, version, buffers_of(rank));
    must(session.close());
  });
  play([&](Rank rank, Session& session) {
    expect_loaded(session, session.versions().back().version, buffers_of(rank));
    must(session.close());
  });
}

TEST_P(Dump, LeavesTheNextCheckpointAsCheapAsItWas) {
  play([&](Rank rank, Session& session) {
    Buffer field = noise(4000, rank);
    must(session.protect("field", field));
    must(session.checkpoint());
    dump(session, buffers_of(rank), 2);
    must(session.checkpoint());
    must(session.wait());
    EXPECT_EQ(session.stats().last.written_bytes, 0u);
    EXPECT_EQ(session.stats().existing, 2u);
    EXPECT_TRUE(session.stats().total.balances());
    must(session.close());
  });
}

TEST_P(Dump, BuffersThatDoNotFitAreAnErrorThatSaysWhich) {
  play([&](Rank rank, Session& session) {
    const std::vector<Buffer> saved{noise(100, rank), noise(200, rank)};
    const Version version = dump(session, saved, 1);
    std::vector<Buffer> fewer{Buffer(100)};
    expect_error(load(session, version, fewer), Code::invalid_argument,
                 {"has 2 buffers", "1 were"});
    std::vector<Buffer> shorter{Buffer(100), Buffer(rank == 1 ? 199 : 200)};
    expect_error(load(session, version, shorter), Code::invalid_argument,
                 {"buffer 1 of rank 1", "1600 bytes", "1592"});
    expect_error(load(session, 77, fewer), Code::not_found, {"no version 77"});
    expect_loaded(session, version, saved);
    must(session.close());
  });
}

TEST_P(Dump, ThatFailsLeavesNothingBehindAndTheSessionUsable) {
  play([&](Rank rank, Session& session) {
    Buffer field = noise(1000, rank);
    must(session.protect("field", field));
    must(session.checkpoint());
    must(session.wait());
    const std::vector<Buffer> large{noise(1 << 16, rank)};
    const auto spans = bytes_of(large);
    memory_.set_capacity(1 << 20);
    expect_error(session.dump(spans, 2), Code::no_space, {"dump: version 2"});
    must(session.load(1, {}).has_value() ? Result<void>(Unexpected(Error(Code::io, "loaded")))
                                         : Result<void>{});
    memory_.set_capacity(std::uint64_t{1} << 40);
    const Version version = dump(session, large, 2);
    EXPECT_EQ(version, 3u);
    expect_loaded(session, version, large);
    must(session.checkpoint());
    EXPECT_FALSE(session.wait()) << "the failure is told once more";
    must(session.close());
  });
  for (const std::string& path : memory_.paths())
    EXPECT_EQ(path.find("-0000000002-"), path.npos) << path;
}

TEST_P(Dump, WhatAllRanksHaveIsStoredAsOftenAsAskedFor) {
  if (GetParam().dedup != nullptr) GTEST_SKIP() << "without dedup every rank stores it";
  play([&](Rank, Session& session) {
    dump(session, {noise(64 * kPerBlock, 3)}, 2);
    must(session.close());
  });
  const std::uint64_t bytes = payload_bytes("/segment-") + payload_bytes("/copy-");
  EXPECT_GE(bytes, 2 * 64 * kBlock);
  EXPECT_LT(bytes, 3 * 64 * kBlock);
}

INSTANTIATE_TEST_SUITE_P(All, Dump,
                         testing::Values(Setting{"WithoutRedundancy", "none", nullptr, "inline"},
                                         Setting{"WithReplicas", "replicas:2", nullptr, "thread"},
                                         Setting{"WithoutDedup", "none", "none", "thread"}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace belay::session
