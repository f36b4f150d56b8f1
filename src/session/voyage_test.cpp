// SPDX-License-Identifier: Apache-2.0
// Copies are exchanged in the background: what checkpoint() leaves to it, what it reports, and what
// becomes of it when ranks fail.
#include "os/faulty_files.hpp"
#include "session/played_ranks_test.hpp"
#include "session/session_test.hpp"

#include <barrier>
#include <cerrno>
#include <thread>

namespace belay::session {
namespace {

constexpr Rank kRanks = 3;

class VoyageTest : public testing::Test {
 protected:
  using Play = std::function<void(Rank, Session&)>;

  Options options(Rank rank) const {
    Options options;
    options.store = "/store";
    options.application = "test";
    options.block = kBlock;
    options.staging = "1MiB";
    options.background = "thread";
    options.late = late_;
    options.redundancy = "replicas:2";
    options.node = std::to_string(rank);
    options.timeout = std::chrono::milliseconds(500);
    return options;
  }

  /// Runs `play_rank` for each rank; what it throws fails the test.
  void play(const Play& play_rank) {
    play_ranks(kRanks, timeout_ns_, [&](Rank rank, std::unique_ptr<ranks::Group> group) {
      auto session = must(try_open(rank, std::move(group)));
      play_rank(rank, session);
    });
  }

  Result<Session> try_open(Rank rank, std::unique_ptr<ranks::Group> group) {
    Seams seams = played_seams(files_);
    seams.clock = &clock_;
    if (make_worker_) seams.make_worker = [this, rank] { return make_worker_(rank); };
    return open_played(seams, std::move(group), options(rank));
  }

  /// Jobs run when their ranks wait for them, each on a thread of its own rank.
  void hold_work() {
    make_worker_ = [](Rank) { return std::make_unique<HeldWorker>(); };
  }
  std::size_t written_files() const {
    std::size_t count = 0;
    for (const std::string& path : memory_.paths())
      if (path.find("/segment-") != path.npos || path.find("/copy-") != path.npos) ++count;
    return count;
  }
  static std::vector<std::uint64_t> numbers_of(Rank rank) { return noise(40 * kPerBlock, rank); }

  os::MemoryFiles memory_;
  std::atomic<int> error_ = 0;  ///< of writes to copies, if not 0
  os::FaultyFiles files_{memory_, [this](const os::Operation& operation) {
                           const bool hit = operation.kind == os::Operation::Kind::write &&
                                            operation.path.find("/copy-") != std::string::npos;
                           return os::Action{.error = hit ? error_.load() : 0};
                         }};
  FakeClock clock_;
  std::string late_ = "wait";
  std::uint64_t timeout_ns_ = 60'000'000'000;
  std::function<std::unique_ptr<Worker>(Rank)> make_worker_;
};

TEST_F(VoyageTest, MemoryMayBeWrittenWhileItsBlocksAreStillHere) {
  hold_work();
  std::barrier all(kRanks);
  play([&](Rank rank, Session& session) {
    auto numbers = numbers_of(rank);
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    all.arrive_and_wait();
    EXPECT_EQ(written_files(), 0u) << "checkpoint() has exchanged copies";
    all.arrive_and_wait();
    std::fill(numbers.begin(), numbers.end(), 0);
    EXPECT_EQ(must(session.wait()), 1u);
    must(session.restore());
    EXPECT_EQ(numbers, numbers_of(rank));
    must(session.close());
  });
  EXPECT_EQ(written_files(), 2 * kRanks);
}

TEST_F(VoyageTest, RegionsAddedOneByOneMayBeWrittenAtOnce) {
  play([&](Rank rank, Session& session) {
    auto first = numbers_of(rank);
    auto second = numbers_of(rank + 10);
    must(session.protect("first", first));
    must(session.protect("second", second));
    must(session.begin());
    must(session.add("second"));
    std::fill(second.begin(), second.end(), 0);
    must(session.commit());
    std::fill(first.begin(), first.end(), 0);
    EXPECT_EQ(must(session.wait()), 1u);
    must(session.restore());
    EXPECT_EQ(first, numbers_of(rank));
    EXPECT_EQ(second, numbers_of(rank + 10));
    must(session.close());
  });
}

TEST_F(VoyageTest, WhatDoesNotFitInStagingOfOneRankIsExchangedInsideCheckpoint) {
  hold_work();
  std::barrier all(kRanks);
  play([&](Rank rank, Session& session) {
    auto numbers = noise((rank == 1 ? 3000 : 4) * kPerBlock, rank);
    const auto saved = numbers;
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    all.arrive_and_wait();
    EXPECT_GT(written_files(), 0u);
    all.arrive_and_wait();
    std::fill(numbers.begin(), numbers.end(), 0);
    EXPECT_EQ(must(session.wait()), 1u);
    numbers.assign(saved.size(), 0);
    must(session.restore());
    EXPECT_EQ(numbers, saved);
    numbers[0] = 17;  // little enough for all
    must(session.checkpoint());
    EXPECT_EQ(must(session.wait()), 2u);
    EXPECT_EQ(session.stats().last.written_bytes, kBlock);
    must(session.close());
  });
}

TEST_F(VoyageTest, OnATierInMemoryWhatIsExchangedInsideCheckpointIsWrittenThereToo) {
  hold_work();
  memory_.set_in_memory(true);
  constexpr std::size_t kBlocks = 3000;
  constexpr std::size_t kLeftBytes = std::size_t{300} << 10;  // a piece, and the index
  play([&](Rank rank, Session& session) {
    auto numbers = noise(kBlocks * kPerBlock, rank);
    const auto saved = numbers;
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    const std::string own = "/segment-000001-0000000001-00000" + std::to_string(rank);
    const auto written = memory_.peek("/store/node-" + std::to_string(rank) + own);
    EXPECT_GT(must(written).size(), kBlocks * kBlock - kLeftBytes);
    std::fill(numbers.begin(), numbers.end(), 0);
    EXPECT_EQ(must(session.wait()), 1u);
    must(session.restore());
    EXPECT_EQ(numbers, saved);
    must(session.close());
  });
}

TEST_F(VoyageTest, TheLedgerIsCompleteOnceTheVersionIsSettled) {
  std::atomic<std::uint64_t> left_out = 0;
  play([&](Rank rank, Session& session) {
    auto same = noise(40 * kPerBlock, 99);
    auto own = numbers_of(rank);
    must(session.protect("same", same));
    must(session.protect("own", own));
    must(session.checkpoint());
    EXPECT_TRUE(session.stats().last.balances());
    EXPECT_EQ(session.stats().last.written_bytes, 80 * kBlock) << "not known yet";
    must(session.wait());
    const Stats stats = session.stats();
    EXPECT_TRUE(stats.last.balances());
    EXPECT_TRUE(stats.total.balances());
    EXPECT_EQ(stats.last.written_bytes + stats.last.duplicate_elsewhere_bytes, 80 * kBlock);
    EXPECT_EQ(stats.last.encoded_bytes, stats.last.written_bytes);
    EXPECT_EQ(session.versions().front().ledger.written_bytes, stats.last.written_bytes);
    left_out += stats.last.duplicate_elsewhere_bytes;
    must(session.close());
  });
  EXPECT_EQ(left_out, 40 * kBlock) << "of what three ranks have, two nodes are enough";
}

TEST_F(VoyageTest, AFailureInTheBackgroundIsReportedOnceAndTheNextVersionHasTheBlocks) {
  error_ = EIO;
  std::barrier all(kRanks);
  play([&](Rank rank, Session& session) {
    auto numbers = numbers_of(rank);
    must(session.protect("numbers", numbers));
    EXPECT_EQ(must(session.checkpoint()), 1u);
    expect_error(session.wait(), Code::io, {"version 1", "copy-"});
    EXPECT_EQ(session.stats().failed, 1u);
    EXPECT_NE(session.stats().last_failure.find("version 1"), std::string::npos);
    EXPECT_EQ(must(session.wait()), 0u);
    all.arrive_and_wait();
    error_ = 0;
    EXPECT_EQ(must(session.checkpoint()), 2u);
    EXPECT_EQ(must(session.wait()), 2u);
    std::fill(numbers.begin(), numbers.end(), 0);
    must(session.restore());
    EXPECT_EQ(numbers, numbers_of(rank));
    must(session.close());
  });
}

TEST_F(VoyageTest, ALateVersionIsSkippedWhileItsCopiesAreExchanged) {
  hold_work();
  late_ = "skip";
  play([&](Rank rank, Session& session) {
    auto numbers = numbers_of(rank);
    must(session.protect("numbers", numbers));
    EXPECT_EQ(must(session.checkpoint()), 1u);
    EXPECT_EQ(must(session.checkpoint()), 1u);
    EXPECT_EQ(session.stats().skipped, 1u);
    EXPECT_EQ(must(session.wait()), 1u);
    EXPECT_EQ(must(session.checkpoint()), 2u);
    must(session.close());
  });
}

TEST_F(VoyageTest, ARankThatLeavesIsLostToTheOthersWithinTheDeadline) {
  timeout_ns_ = 500'000'000;
  std::barrier all(kRanks);
  play([&](Rank rank, Session& session) {
    auto numbers = numbers_of(rank);
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    EXPECT_EQ(must(session.wait()), 1u);
    ++numbers[0];
    if (rank == 1) {
      all.arrive_and_wait();
      return;  // as if killed, as far as the others can tell
    }
    all.arrive_and_wait();
    const auto start = std::chrono::steady_clock::now();
    const auto taken = session.checkpoint();
    const auto waited = taken ? session.wait() : taken;
    expect_error(waited, Code::peer_lost, {});
    expect_error(session.wait(), Code::peer_lost, {});
    EXPECT_FALSE(session.close());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  });
  play([&](Rank rank, Session& session) {
    std::vector<std::uint64_t> numbers;
    must(session.protect("numbers", numbers));
    EXPECT_EQ(must(session.restore()), 1u);
    EXPECT_EQ(numbers, numbers_of(rank));
    must(session.close());
  });
}

/// A worker that forgets its jobs, as if the process were stopped.
class StoppedWorker final : public Worker {
 public:
  void submit(std::function<void()>) override {}
  bool pending() override { return false; }
  void wait_one() override {}
  void wait_all() override {}
};

TEST_F(VoyageTest, APeerLostInTheBackgroundIsNotWaitedForTwice) {
  timeout_ns_ = 1'000'000'000;
  make_worker_ = [](Rank rank) -> std::unique_ptr<Worker> {
    if (rank == 1) return std::make_unique<StoppedWorker>();
    return make_thread_worker();
  };
  std::barrier all(kRanks);
  play([&](Rank rank, Session& session) {
    auto numbers = numbers_of(rank);
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    if (rank != 1) {
      const auto start = std::chrono::steady_clock::now();
      expect_error(session.wait(), Code::peer_lost, {"version 1"});
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1900));
      expect_error(session.checkpoint(), Code::peer_lost, {"version 1"});
    }
    all.arrive_and_wait();
  });
}

TEST_F(VoyageTest, ASessionThatIsDestroyedStillMakesItsVersionDurable) {
  play([&](Rank rank, Session& session) {
    auto numbers = numbers_of(rank);
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
  });
  play([&](Rank rank, Session& session) {
    std::vector<std::uint64_t> numbers;
    must(session.protect("numbers", numbers));
    EXPECT_EQ(must(session.restore()), 1u);
    EXPECT_EQ(numbers, numbers_of(rank));
    must(session.close());
  });
}

}  // namespace
}  // namespace belay::session
