// SPDX-License-Identifier: Apache-2.0
// What tests of levels and of the global tier share: threads that play ranks, each on a node of its
// own unless a test places them otherwise, over files in memory.
#pragma once

#include "session/one_thread_group_test.hpp"
#include "session/played_ranks_test.hpp"
#include "session/session_test.hpp"

#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

namespace belay::session {

/// What a rank has: a field of its own, and one that all share.
struct TieredState {
  std::uint64_t step = 0;
  std::vector<std::uint64_t> own;
  std::vector<std::uint64_t> shared;
  bool operator==(const TieredState&) const = default;

  static TieredState at(Rank rank, std::uint64_t step) {
    TieredState state{step, noise(kPerBlock * (24 + rank), 1000 * rank + 1),
                      noise(kPerBlock * 16, 7)};
    // A part changes with every step; the rest stays.
    for (std::size_t i = 0; i < state.own.size(); i += 6 * kPerBlock) state.own[i] = step;
    for (std::size_t i = 0; i < state.shared.size(); i += 8 * kPerBlock) state.shared[i] = step;
    return state;
  }
};

class TieredSessionTest : public testing::Test {
 protected:
  using Play = std::function<void(Rank, Session&, TieredState&)>;

  Options options(Rank rank) const {
    Options options;
    options.store = "/store";
    options.application = "test";
    options.block = kBlock;
    options.staging = "1MiB";
    options.background = background_;
    options.log = "info";
    options.levels = levels_;
    if (!global_.empty()) options.global = global_;
    options.node = std::to_string(places_[rank]);
    if (adjust_) adjust_(rank, options);
    return options;
  }

  Result<Session> try_open(Rank rank, std::unique_ptr<ranks::Group> group) {
    Options chosen = options(rank);
    chosen.on_log = [this](LogLevel, std::string_view text) {
      const std::lock_guard guard(log_mutex_);
      log_.emplace_back(text);
    };
    Seams seams = played_seams(files_of_ ? *files_of_(rank) : memory_);
    seams.clock = &clock_;
    seams.make_worker = make_worker_;
    seams.drain_bytes = drain_bytes_;
    if (one_thread_) group = std::make_unique<OneThreadGroup>(std::move(group));
    return open_played(seams, std::move(group), std::move(chosen));
  }

  /// Runs `work` on a thread for each rank; what it throws fails the test.
  void on_ranks(const std::function<void(Rank, std::unique_ptr<ranks::Group>)>& work) {
    play_ranks(static_cast<Rank>(places_.size()), patience_ns_, work);
  }
  void play(const Play& part) {
    on_ranks([&](Rank rank, std::unique_ptr<ranks::Group> group) {
      auto session = must(try_open(rank, std::move(group)));
      TieredState state;
      must(session.protect("step", state.step));
      must(session.protect("own", state.own));
      must(session.protect("shared", state.shared));
      part(rank, session, state);
      must(session.close());
    });
  }

  static void take(Rank rank, Session& session, TieredState& state, std::uint64_t step) {
    state = TieredState::at(rank, step);
    must(session.checkpoint());
    EXPECT_GT(must(session.wait()), 0u);
    EXPECT_TRUE(session.stats().last.balances());
  }
  /// Versions of these steps; what is there is restored first.
  void take_versions(std::uint64_t first, std::uint64_t last) {
    play([&](Rank rank, Session& session, TieredState& state) {
      if (session.latest()) must(session.restore());
      for (std::uint64_t step = first; step <= last; ++step) take(rank, session, state, step);
    });
  }
  void expect_restored(std::uint64_t step) {
    play([&](Rank rank, Session& session, TieredState& state) {
      must(session.restore());
      EXPECT_TRUE(state == TieredState::at(rank, step)) << "rank " << rank << ", " << state.step;
    });
  }

  /// Version numbers and levels, newest first, as "9 local, 8 replicas:2".
  static std::string listed(const Session& session) {
    std::string text;
    for (const VersionInfo& info : session.versions())
      text += (text.empty() ? "" : ", ") + std::to_string(info.version) + " " + info.level;
    return text;
  }
  bool logged(std::string_view text) {
    const std::lock_guard guard(log_mutex_);
    return std::any_of(log_.begin(), log_.end(),
                       [&](const auto& line) { return line.find(text) != line.npos; });
  }
  std::vector<std::string> paths_with(std::string_view part) const {
    std::vector<std::string> found;
    for (const std::string& path : memory_.paths())
      if (path.find(part) != path.npos) found.push_back(path);
    return found;
  }
  void lose(const std::string& directory) { must(memory_.erase(directory)); }
  std::uint64_t bytes_in(std::string_view part) const {
    std::uint64_t sum = 0;
    for (const std::string& path : paths_with(part)) sum += must(memory_.peek(path)).size();
    return sum;
  }

  os::MemoryFiles memory_;
  std::function<os::Files*(Rank)> files_of_;  ///< empty: the memory's
  FakeClock clock_;
  std::uint64_t patience_ns_ = 60'000'000'000;  ///< of ranks with a silent peer
  std::vector<unsigned> places_{0, 1, 2};       ///< of each rank: its node
  std::string levels_ = "local:1";
  std::string global_;
  std::string background_ = "inline";
  bool one_thread_ = false;                   ///< the background must not communicate
  std::optional<std::uint64_t> drain_bytes_;  ///< memory of aggregators; unset: that of staging
  std::function<void(Rank, Options&)> adjust_;
  std::function<std::unique_ptr<Worker>()> make_worker_;
  std::mutex log_mutex_;
  std::vector<std::string> log_;
};

}  // namespace belay::session
