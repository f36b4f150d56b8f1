// SPDX-License-Identifier: Apache-2.0
// What tests of whole sessions share: a store in memory, a clock that they move themselves, and
// background work that runs when they say so.
#pragma once

#include <belay/belay.hpp>

#include "base/nouns.hpp"
#include "comm/group.hpp"
#include "format/names.hpp"
#include "os/clock.hpp"
#include "os/memory_files.hpp"
#include "session/seams.hpp"
#include "session/worker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace belay::session {

/// The value, or an exception that fails the test with the error's message.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return *std::move(result);
}
inline void must(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message());
}

/// Each look takes a microsecond; sleeping is instant.
class FakeClock final : public os::Clock {
 public:
  std::uint64_t now_ns() override {
    if (on_look) on_look();
    return now_ns_ += 1000;
  }
  std::int64_t wall_ns() override { return 1'700'000'000'000'000'000; }
  void sleep_ns(std::uint64_t ns) override {
    now_ns_ += ns;
    slept_ns_ += ns;
  }
  void advance(std::uint64_t ns) { now_ns_ += ns; }
  std::uint64_t slept_ns() const { return slept_ns_; }

  std::function<void()> on_look;  ///< may be set while only one thread looks

 private:
  std::atomic<std::uint64_t> now_ns_{1'000'000'000};
  std::atomic<std::uint64_t> slept_ns_{0};
};

/// Keeps jobs until somebody waits for them, and runs them on that thread.
class HeldWorker final : public Worker {
 public:
  ~HeldWorker() override { run_all(); }
  void submit(std::function<void()> job) override { jobs_.push_back(std::move(job)); }
  bool pending() override { return !jobs_.empty(); }
  void wait_one() override { run_one(); }
  void wait_all() override { run_all(); }

 private:
  void run_one() {
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    job();
  }
  void run_all() {
    while (!jobs_.empty()) run_one();
  }
  std::deque<std::function<void()>> jobs_;
};

/// Content that no other seed gives, without equal blocks.
inline std::vector<std::uint64_t> noise(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> values(count);
  for (auto& value : values) value = random();
  return values;
}

inline constexpr std::size_t kBlock = 512;                                ///< bytes, in these tests
inline constexpr std::size_t kPerBlock = kBlock / sizeof(std::uint64_t);  ///< numbers

/// One rank, with a store in memory and everything done inline unless a test says otherwise.
class SessionTest : public testing::Test {
 protected:
  static Options options() {
    Options options;
    options.store = "/store";
    options.application = "test";
    options.block = kBlock;
    options.staging = "1MiB";
    options.background = "inline";
    options.log = "info";
    return options;
  }

  Result<Session> try_open(Options options = SessionTest::options()) {
    options.on_log = [this](LogLevel, std::string_view text) {
      const std::lock_guard guard(log_mutex_);
      log_.emplace_back(text);
    };
    Seams seams = system_seams();
    seams.files = files_;
    seams.clock = &clock_;
    seams.environment.clear();
    seams.hash_threads = 1;
    seams.read_threads = 1;
    seams.host = host_;
    seams.pid = 4711;
    seams.make_worker = make_worker_;
    return open_session(
        seams,
        [](std::uint64_t, os::Clock&) -> Result<std::unique_ptr<ranks::Group>> {
          return ranks::make_solo_group();
        },
        std::move(options));
  }
  Session open(Options options = SessionTest::options()) {
    return must(try_open(std::move(options)));
  }

  /// A version that exists; its ledger balances.
  static Version take(Session& session) {
    const Version version = must(session.checkpoint());
    EXPECT_EQ(must(session.wait()), version);
    const Stats stats = session.stats();
    EXPECT_EQ(stats.last.version, version);
    EXPECT_TRUE(stats.last.balances());
    EXPECT_TRUE(stats.total.balances());
    const auto versions = session.versions();
    EXPECT_EQ(versions.empty() ? 0 : versions.front().version, version);
    for (const VersionInfo& info : versions) EXPECT_TRUE(info.ledger.balances());
    return version;
  }
  static Ledger take_ledger(Session& session) {
    take(session);
    return session.stats().last;
  }

  bool logged(std::string_view text) {
    const std::lock_guard guard(log_mutex_);
    return std::any_of(log_.begin(), log_.end(),
                       [&](const auto& line) { return line.find(text) != line.npos; });
  }

  /// Paths of files in memory whose name starts so.
  std::vector<std::string> files_named(std::string_view prefix) const {
    std::vector<std::string> found;
    for (const std::string& path : memory_.paths())
      if (path.substr(path.rfind('/') + 1).starts_with(prefix)) found.push_back(path);
    return found;
  }

  os::MemoryFiles memory_;
  os::Files* files_ = &memory_;
  FakeClock clock_;
  std::string host_ = "host-a";
  std::function<std::unique_ptr<Worker>()> make_worker_;
  std::mutex log_mutex_;
  std::vector<std::string> log_;
};

/// Fails with this code, and says all of these words.
template <class T>
void expect_error(const Result<T>& result, Code code, std::initializer_list<const char*> words) {
  ASSERT_FALSE(result) << "succeeded";
  EXPECT_EQ(result.error().code(), code) << result.error().message();
  for (const char* word : words)
    EXPECT_NE(result.error().message().find(word), std::string::npos)
        << "'" << word << "' is not in: " << result.error().message();
}

}  // namespace belay::session
