// SPDX-License-Identifier: Apache-2.0
// The half of a version that runs in the background: its failures, its lateness, its end.
#include "os/faulty_files.hpp"
#include "session/session_test.hpp"

#include <cerrno>

namespace belay::session {
namespace {

class BackgroundWork : public SessionTest {
 protected:
  /// While set, writes to segments fail with this errno.
  void fail_writes(int error) {
    error_ = error;
    files_ = &faulty_;
  }
  static Options held() {
    Options options = SessionTest::options();
    options.late = "skip";
    return options;
  }

  std::atomic<int> error_ = 0;
  os::FaultyFiles faulty_{memory_, [this](const os::Operation& operation) {
                            const bool hit = operation.kind == os::Operation::Kind::write &&
                                             operation.path.find("/segment-") != std::string::npos;
                            return os::Action{.error = hit ? error_.load() : 0};
                          }};
  std::vector<std::uint64_t> numbers_ = noise(20 * kPerBlock, 1);
};

TEST_F(BackgroundWork, WaitReportsAFailureOnceAndTheNextVersionHasTheBlocks) {
  make_worker_ = [] { return std::make_unique<HeldWorker>(); };
  fail_writes(0);
  auto session = open();
  must(session.protect("numbers", numbers_));
  take(session);
  ++numbers_[0];
  error_ = EIO;
  EXPECT_EQ(must(session.checkpoint()), 2u) << "nothing has failed yet";
  expect_error(session.wait(), Code::io, {"version 2", "segment-", "/store/node-host-a"});
  EXPECT_EQ(must(session.wait()), 1u);
  EXPECT_EQ(session.stats().failed, 1u);
  EXPECT_NE(session.stats().last_failure.find("version 2"), std::string::npos);
  EXPECT_TRUE(logged("version 2"));
  error_ = 0;
  EXPECT_EQ(must(session.checkpoint()), 3u) << "numbers are not used twice";
  EXPECT_EQ(must(session.wait()), 3u);
  EXPECT_EQ(session.stats().last.written_bytes, kBlock) << "the block of the failed version";
  const auto saved = numbers_;
  numbers_.clear();
  must(session.restore());
  EXPECT_EQ(numbers_, saved);
}

TEST_F(BackgroundWork, ANextCheckpointDoesNotReportTheFailureOfAnEarlierOne) {
  make_worker_ = [] { return std::make_unique<HeldWorker>(); };
  fail_writes(EIO);
  auto session = open();
  must(session.protect("numbers", numbers_));
  must(session.checkpoint());
  // The jobs of version 1 run when version 2 is begun, which itself succeeds.
  const auto second = session.checkpoint();
  EXPECT_TRUE(second) << second.error().message();
  error_ = 0;
  expect_error(session.close(), Code::io, {"version 1"});
}

TEST_F(BackgroundWork, NoSpaceSaysHowMuchIsFreeAndWhatToDo) {
  auto session = open();
  must(session.protect("numbers", numbers_));
  take(session);
  memory_.set_capacity(memory_.total_bytes() + 4096);
  numbers_ = noise(20 * kPerBlock, 2);
  expect_error(session.checkpoint(), Code::no_space, {"version 2", "free", "keep"});
  EXPECT_EQ(session.latest(), 1u);
  memory_.set_capacity(1 << 30);
  EXPECT_EQ(must(session.checkpoint()), 3u);
  (void)session.wait();
  EXPECT_EQ(must(session.wait()), 3u);
}

TEST_F(BackgroundWork, AFailedVersionLeavesNoFiles) {
  fail_writes(EIO);
  auto session = open();
  must(session.protect("numbers", numbers_));
  EXPECT_FALSE(session.checkpoint());
  (void)session.wait();
  EXPECT_EQ(files_named("segment-").size() + files_named("manifest-").size(), 0u);
  EXPECT_EQ(session.latest(), std::nullopt);
}

TEST_F(BackgroundWork, CloseReturnsTheFailureOfAnIgnoredCall) {
  auto session = open();
  (void)session.protect("", numbers_);
  (void)session.unprotect("nobody");
  expect_error(session.close(), Code::invalid_argument, {"region"});
}

TEST_F(BackgroundWork, CallsAfterCloseAreRefusedAndASecondCloseIsFine) {
  auto session = open();
  must(session.protect("numbers", numbers_));
  take(session);
  must(session.close());
  must(session.close());
  for (const auto& result : {session.protect("x", numbers_), session.unprotect("numbers"),
                             session.begin(), session.add("numbers")})
    expect_error(result, Code::invalid_argument, {"closed"});
  for (const auto& result :
       {session.checkpoint(), session.commit(), session.wait(), session.restore()})
    expect_error(result, Code::invalid_argument, {"closed"});
  EXPECT_EQ(session.latest(), 1u) << "what it knew it still says";
  EXPECT_EQ(session.stats().existing, 1u);
}

TEST_F(BackgroundWork, DestroyingWithoutCloseKeepsWhatWasCaptured) {
  {
    make_worker_ = [] { return std::make_unique<HeldWorker>(); };
    auto session = open();
    must(session.protect("numbers", numbers_));
    must(session.checkpoint());
  }
  make_worker_ = {};
  auto session = open();
  EXPECT_EQ(session.latest(), 1u);
}

TEST_F(BackgroundWork, DestroyingWithoutCloseLogsAFailure) {
  {
    make_worker_ = [] { return std::make_unique<HeldWorker>(); };
    fail_writes(EIO);
    auto session = open();
    must(session.protect("numbers", numbers_));
    must(session.checkpoint());
  }
  EXPECT_TRUE(logged("version 1 failed"));
}

TEST_F(BackgroundWork, LateSkipReturnsTheVersionInFlight) {
  make_worker_ = [] { return std::make_unique<HeldWorker>(); };
  auto session = open(held());
  must(session.protect("numbers", numbers_));
  EXPECT_EQ(must(session.checkpoint()), 1u);
  EXPECT_EQ(must(session.checkpoint()), 1u);
  EXPECT_EQ(session.stats().skipped, 1u);
  EXPECT_EQ(session.stats().captured, 1u);
  EXPECT_EQ(must(session.wait()), 1u);
  EXPECT_EQ(must(session.checkpoint()), 2u);
}

TEST_F(BackgroundWork, LateWaitWaitsForTheFormerVersion) {
  make_worker_ = [] { return std::make_unique<HeldWorker>(); };
  auto session = open();
  must(session.protect("numbers", numbers_));
  EXPECT_EQ(must(session.checkpoint()), 1u);
  EXPECT_EQ(must(session.checkpoint()), 2u);
  EXPECT_EQ(session.latest(), 1u);
}

TEST_F(BackgroundWork, ARegionThatChangesDuringCheckpointFailsTheVersion) {
  auto session = open();
  std::vector<std::uint64_t> steady = noise(20 * kPerBlock, 2);
  must(session.protect("a steady one", steady));
  must(session.protect("numbers", numbers_));
  take(session);
  const auto saved = numbers_;
  numbers_[5 * kPerBlock] = 0;  // a block that must be staged
  // Between fingerprint and copy the clock is asked for the time: then somebody writes.
  clock_.on_look = [&] { ++numbers_[5 * kPerBlock]; };
  const auto failed = session.checkpoint();
  clock_.on_look = nullptr;
  expect_error(failed, Code::invalid_argument,
               {"version 2", "region 'numbers' changed during checkpoint()"});
  (void)session.wait();
  EXPECT_EQ(session.latest(), 1u);
  must(session.restore());
  EXPECT_EQ(numbers_, saved);
  EXPECT_EQ(take(session), 3u);
}

TEST_F(BackgroundWork, ANumberThatFailedIsNotUsedAgainAfterARestart) {
  Version failed = 0;
  {
    fail_writes(0);
    auto session = open();
    must(session.protect("numbers", numbers_));
    take(session);
    error_ = EIO;
    ++numbers_[0];
    EXPECT_FALSE(session.checkpoint());
    failed = session.stats().last.version;
    EXPECT_FALSE(session.close());
    error_ = 0;
  }
  auto session = open();
  must(session.protect("numbers", numbers_));
  EXPECT_GT(take(session), failed);
}

TEST_F(BackgroundWork, AnUnsafeVersionIsNotSeenByTheNextOpening) {
  {
    fail_writes(EIO);
    auto session = open();
    must(session.protect("numbers", numbers_));
    EXPECT_FALSE(session.checkpoint());
  }
  auto session = open();
  EXPECT_EQ(session.latest(), std::nullopt);
}

TEST_F(BackgroundWork, AnImageLargerThanStagingIsWrittenWhileItIsCaptured) {
  Options threaded = options();
  threaded.background = "thread";
  auto session = open(threaded);
  auto large = noise((8u << 20) / sizeof(std::uint64_t) + 5, 3);
  must(session.protect("large", large));
  take(session);
  EXPECT_LE(session.stats().staging_bytes, (1u << 20) + (1u << 18));
  const auto saved = large;
  large.clear();
  must(session.restore());
  EXPECT_EQ(large, saved);
}

TEST_F(BackgroundWork, TwoSessionsOfOneProcessDoNotMeet) {
  Options other = options();
  other.store = "/other";
  auto first = open();
  auto second = open(other);
  std::uint64_t one = 1;
  std::uint64_t two = 2;
  must(first.protect("x", one));
  must(second.protect("x", two));
  take(first);
  take(second);
  take(second);
  one = two = 0;
  must(first.restore());
  must(second.restore());
  EXPECT_EQ(one, 1u);
  EXPECT_EQ(two, 2u);
  EXPECT_EQ(first.latest(), 1u);
  EXPECT_EQ(second.latest(), 2u);
}

TEST_F(BackgroundWork, ASessionMayBeMoved) {
  auto session = open();
  must(session.protect("numbers", numbers_));
  must(session.checkpoint());
  Session moved = std::move(session);
  EXPECT_EQ(must(moved.wait()), 1u);
  must(moved.close());
}

TEST_F(BackgroundWork, StagesThatDoNotExistYetSaySo) {
  auto session = open();
  EXPECT_FALSE(session.is_head());
}

}  // namespace
}  // namespace belay::session
