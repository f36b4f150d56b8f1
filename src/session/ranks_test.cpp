// SPDX-License-Identifier: Apache-2.0
// Sessions of several ranks, played by threads: all or none, and the same error everywhere.
#include "os/faulty_files.hpp"
#include "session/played_ranks_test.hpp"
#include "session/session_test.hpp"

#include <cerrno>
#include <set>
#include <thread>

namespace belay::session {
namespace {

constexpr Rank kRanks = 3;
constexpr std::uint64_t kPatienceNs = 20'000'000'000;

class RanksTest : public testing::Test {
 protected:
  static Options options() {
    Options options;
    options.store = "/store";
    options.application = "test";
    options.block = kBlock;
    options.staging = "1MiB";
    options.background = "inline";
    return options;
  }
  /// Runs `play` for each rank; what it throws fails the test.
  void play(Rank ranks, const std::function<void(Rank, std::unique_ptr<ranks::Group>)>& play_rank,
            std::uint64_t patience_ns = kPatienceNs) {
    play_ranks(ranks, patience_ns, play_rank);
  }
  Result<Session> try_open(std::unique_ptr<ranks::Group> group, Options options) {
    Seams seams = played_seams(*files_);
    seams.clock = &clock_;
    return open_played(seams, std::move(group), std::move(options));
  }
  /// The one message that all ranks must have got.
  void expect_same(const std::vector<std::string>& messages, std::string_view words) {
    EXPECT_EQ(std::set<std::string>(messages.begin(), messages.end()).size(), 1u)
        << messages[0] << "\n"
        << messages[1];
    EXPECT_NE(messages[0].find(words), std::string::npos) << messages[0];
  }
  static std::vector<std::uint64_t> field_of(Rank rank, std::uint64_t step) {
    return noise(1000 + 300 * rank + 10 * step, rank * 1000 + step);
  }

  os::MemoryFiles memory_;
  os::Files* files_ = &memory_;
  FakeClock clock_;
};

TEST_F(RanksTest, EveryRankGetsItsOwnBack) {
  for (const char* per_node : {"1", "2", "3"}) {
    Options placed = options();
    placed.store = std::string("/store-") + per_node;
    placed.ranks_per_node = per_node;
    play(kRanks, [&](Rank rank, auto group) {
      auto session = must(try_open(std::move(group), placed));
      EXPECT_EQ(session.latest(), std::nullopt);
      std::vector<std::uint64_t> field;
      must(session.protect("field", field));
      for (std::uint64_t step = 1; step <= 5; ++step) {
        field = field_of(rank, step);
        EXPECT_EQ(must(session.checkpoint()), step);
      }
      must(session.close());
    });
    play(kRanks, [&](Rank rank, auto group) {
      auto session = must(try_open(std::move(group), placed));
      EXPECT_EQ(session.latest(), 5u);
      std::vector<std::uint64_t> field;
      must(session.protect("field", field));
      EXPECT_EQ(must(session.restore()), 5u);
      EXPECT_EQ(field, field_of(rank, 5));
      must(session.checkpoint());
      must(session.wait());
      EXPECT_EQ(session.stats().last.written_bytes, 0u);
      must(session.close());
    });
  }
}

TEST_F(RanksTest, AFailureOnOneRankFailsTheVersionOnAllWithTheSameWords) {
  std::atomic<bool> broken = false;
  os::FaultyFiles faulty(memory_, [&](const os::Operation& operation) {
    const bool hit = broken && operation.kind == os::Operation::Kind::sync &&
                     operation.path.ends_with("-000001");
    return os::Action{.error = hit ? EIO : 0};
  });
  files_ = &faulty;
  std::vector<std::string> messages(kRanks);
  play(kRanks, [&](Rank rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    std::vector<std::uint64_t> field = field_of(rank, 1);
    must(session.protect("field", field));
    must(session.checkpoint());
    EXPECT_EQ(must(session.wait()), 1u);
    if (rank == 0) broken = true;
    must(session.wait());
    field = field_of(rank, 2);
    EXPECT_EQ(session.checkpoint().has_value(), rank != 1);
    const auto waited = session.wait();
    ASSERT_FALSE(waited);
    // Rank 1 was told by its own checkpoint() already; the others hear of it now.
    messages[rank] = session.stats().last_failure;
    if (rank == 0) broken = false;
    must(session.wait());
    EXPECT_EQ(session.latest(), 1u);
    EXPECT_EQ(must(session.checkpoint()), 3u);
    EXPECT_EQ(must(session.wait()), 3u);
    must(session.close());
  });
  expect_same(messages, "rank 1: ");
  EXPECT_NE(messages[0].find("version 2"), std::string::npos);
}

TEST_F(RanksTest, OptionsThatDifferAreTheSameErrorEverywhere) {
  std::vector<std::string> messages(kRanks);
  play(kRanks, [&](Rank rank, auto group) {
    Options mine = options();
    if (rank == 2) mine.keep = 7;
    const auto opened = try_open(std::move(group), mine);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), Code::invalid_argument);
    messages[rank] = opened.error().message();
  });
  expect_same(messages, "keep=");
  EXPECT_TRUE(memory_.paths().empty());
}

TEST_F(RanksTest, AWrongOptionOnOneRankIsTheSameErrorEverywhere) {
  std::vector<std::string> messages(kRanks);
  play(kRanks, [&](Rank rank, auto group) {
    Options mine = options();
    if (rank == 1) mine.hash = "crc32";
    const auto opened = try_open(std::move(group), mine);
    ASSERT_FALSE(opened);
    messages[rank] = opened.error().message();
  });
  expect_same(messages, "rank 1: ");
}

TEST_F(RanksTest, AStoreThatOneRankCannotUseIsTheSameErrorEverywhere) {
  os::FaultyFiles faulty(memory_, [&](const os::Operation& operation) {
    return os::Action{.error = operation.path.starts_with("/refused") ? EACCES : 0};
  });
  files_ = &faulty;
  std::vector<std::string> messages(kRanks);
  play(kRanks, [&](Rank rank, auto group) {
    Options mine = options();
    if (rank == 2) mine.store = "/refused";
    const auto opened = try_open(std::move(group), mine);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), Code::io);
    messages[rank] = opened.error().message();
  });
  expect_same(messages, "rank 2: ");
}

TEST_F(RanksTest, AnotherNumberOfRanksIsRefusedEverywhere) {
  play(kRanks, [&](Rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    must(session.checkpoint());
    must(session.close());
  });
  std::vector<std::string> messages(2);
  play(2, [&](Rank rank, auto group) {
    const auto opened = try_open(std::move(group), options());
    ASSERT_FALSE(opened);
    messages[rank] = opened.error().message();
  });
  expect_same(messages, "written by 3 ranks, this job has 2");
}

TEST_F(RanksTest, ADamagedBlockOnOneRankTakesAllToTheOlderVersion) {
  play(kRanks, [&](Rank rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    std::vector<std::uint64_t> field;
    must(session.protect("field", field));
    for (std::uint64_t step = 1; step <= 2; ++step) {
      field = field_of(rank, step);
      must(session.checkpoint());
    }
    must(session.close());
  });
  must(memory_.flip("/store/node-host/segment-000001-0000000002-000002", 8 * 300));
  play(kRanks, [&](Rank rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    std::vector<std::uint64_t> field;
    must(session.protect("field", field));
    EXPECT_EQ(must(session.restore()), 1u);
    EXPECT_EQ(field, field_of(rank, 1));
    must(session.close());
  });
}

TEST_F(RanksTest, AManifestLostOnOneRankTakesAllToTheOlderVersion) {
  play(kRanks, [&](Rank rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    std::vector<std::uint64_t> field;
    must(session.protect("field", field));
    for (std::uint64_t step = 1; step <= 2; ++step) {
      field = field_of(rank, step);
      must(session.checkpoint());
    }
    must(session.close());
  });
  must(memory_.erase("/store/node-host/manifest-000001-0000000002-000001"));
  play(kRanks, [&](Rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    EXPECT_EQ(session.latest(), 1u);
    EXPECT_EQ(session.versions().size(), 1u);
    must(session.close());
  });
}

TEST_F(RanksTest, ARegionThatOneRankLacksEndsTheRestoreOnAllWithTheSameWords) {
  play(kRanks, [&](Rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    int value = 1;
    must(session.protect("value", value));
    must(session.checkpoint());
    must(session.close());
  });
  std::vector<std::string> messages(kRanks);
  play(kRanks, [&](Rank rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    int value = 0;
    must(session.protect(rank == 1 ? "other" : "value", value));
    const auto restored = session.restore();
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().code(), Code::not_found);
    messages[rank] = restored.error().message();
    EXPECT_EQ(session.latest(), 1u);
    must(session.close());
  });
  expect_same(messages, "rank 1: ");
}

TEST_F(RanksTest, DifferentCollectiveCallsAreAnErrorThatNamesThem) {
  play(kRanks, [&](Rank rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    const auto wrong = rank == 0 ? session.wait() : session.checkpoint();
    expect_error(wrong, Code::invalid_argument, {"checkpoint()", "wait()"});
    EXPECT_EQ(must(session.checkpoint()), 1u) << "nothing is lost by it";
    (void)session.wait();
    (void)session.close();
  });
}

TEST_F(RanksTest, DueBesideAnotherCallIsAnErrorThatNamesBoth) {
  play(kRanks, [&](Rank rank, auto group) {
    Options timed = options();
    timed.interval = "1h";
    auto session = must(try_open(std::move(group), timed));
    if (rank == 1) {
      expect_error(session.checkpoint(), Code::invalid_argument, {"checkpoint()", "due()"});
    } else {
      EXPECT_FALSE(session.due());
    }
    EXPECT_TRUE(session.due()) << "nothing is lost by it";
    EXPECT_EQ(must(session.checkpoint()), 1u);
    expect_error(session.wait(), Code::invalid_argument, {"checkpoint()", "due()"});
    must(session.close());
  });
}

TEST_F(RanksTest, CloseBesideAnotherCallEndsTheSessionOnAllRanks) {
  for (const bool others_ask : {false, true})
    play(kRanks, [&](Rank rank, auto group) {
      Options timed = options();
      timed.interval = "1h";
      timed.store = others_ask ? "/asked" : "/saved";
      auto session = must(try_open(std::move(group), timed));
      must(session.checkpoint());
      if (rank == 2) {
        expect_error(session.close(), Code::invalid_argument, {"close()", "the session is closed"});
      } else if (others_ask) {
        EXPECT_FALSE(session.due());
      } else {
        expect_error(session.checkpoint(), Code::invalid_argument, {"close()", "checkpoint()"});
      }
      EXPECT_FALSE(session.due());
      expect_error(session.checkpoint(), Code::invalid_argument, {"closed"});
      expect_error(session.close(), Code::invalid_argument, {"close"});
      must(session.close());
    });
  play(kRanks, [&](Rank, auto group) {
    Options again = options();
    again.store = "/saved";
    auto session = must(try_open(std::move(group), again));
    EXPECT_EQ(session.latest(), 1u) << "the locks are free, and the version exists";
    must(session.close());
  });
}

TEST_F(RanksTest, DueIsRankZerosAnswer) {
  play(kRanks, [&](Rank, auto group) {
    Options timed = options();
    timed.interval = "1h";
    auto session = must(try_open(std::move(group), timed));
    EXPECT_TRUE(session.due());
    must(session.checkpoint());
    EXPECT_FALSE(session.due());
    must(session.close());
  });
}

TEST_F(RanksTest, ASilentRankIsLostWithinTheTimeout) {
  play(
      kRanks,
      [&](Rank rank, auto group) {
        auto session = must(try_open(std::move(group), options()));
        if (rank == 2) return;
        expect_error(session.checkpoint(), Code::peer_lost, {});
        expect_error(session.checkpoint(), Code::peer_lost, {});
        EXPECT_FALSE(session.close());
      },
      300'000'000);
}

TEST_F(RanksTest, AVersionThatNotAllHaveVotedForDoesNotExist) {
  play(kRanks, [&](Rank rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    std::vector<std::uint64_t> field = field_of(rank, 1);
    must(session.protect("field", field));
    must(session.checkpoint());
    must(session.close());
  });
  must(memory_.erase("/store/node-host/settled"));
  must(memory_.erase("/store/node-host/manifest-000001-0000000001-000000"));
  play(kRanks, [&](Rank rank, auto group) {
    auto session = must(try_open(std::move(group), options()));
    EXPECT_EQ(session.latest(), std::nullopt) << "as after a kill in the very first checkpoint";
    std::vector<std::uint64_t> field = field_of(rank, 2);
    must(session.protect("field", field));
    EXPECT_GT(must(session.checkpoint()), 1u);
    must(session.close());
  });
}

}  // namespace
}  // namespace belay::session
