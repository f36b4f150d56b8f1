// SPDX-License-Identifier: Apache-2.0
// Versions whose blocks are on several nodes: nodes are lost, damaged and swapped, and the state
// comes back.
#include "session/played_ranks_test.hpp"
#include "session/session_test.hpp"

#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace belay::session {
namespace {

constexpr std::uint64_t kPatienceNs = 60'000'000'000;

/// What a rank has: a field of its own, one that all share, one that pairs share.
struct State {
  std::uint64_t step = 0;
  std::vector<std::uint64_t> own;
  std::vector<std::uint64_t> shared;
  std::vector<std::uint64_t> paired;
  bool operator==(const State&) const = default;
};

State state_at(Rank rank, std::uint64_t step) {
  State state{step, noise(700 + 100 * rank + 13 * step, 1000 * rank + 1), noise(900, 7),
              noise(640, 50 + rank / 2)};
  // The last rank has nothing of its own, only what others have too.
  if (rank == 3) state.own = state.shared;
  // A part changes with every step; the rest stays.
  for (std::size_t i = 0; i < state.own.size(); i += 5 * kPerBlock) state.own[i] = step;
  for (std::size_t i = 0; i < state.shared.size(); i += 3 * kPerBlock) state.shared[i] = step;
  return state;
}

struct Setting {
  friend void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.name; }

  const char* name;
  Rank ranks;
  const char* ranks_per_node;
  const char* redundancy;
  const char* dedup;
  unsigned losses;  ///< nodes that may be lost
  const char* background = "inline";
};

class ReplicasTest : public testing::TestWithParam<Setting> {
 protected:
  Options options(Rank rank, const std::vector<Rank>& places) const {
    Options options;
    options.store = "/store";
    options.application = "test";
    options.block = kBlock;
    options.staging = "1MiB";
    options.background = GetParam().background;
    options.redundancy = GetParam().redundancy;
    options.dedup = GetParam().dedup;
    const auto per_node = static_cast<Rank>(std::stoul(GetParam().ranks_per_node));
    options.node = std::to_string(places[rank] / per_node);
    return options;
  }
  std::vector<Rank> usual_places() const {
    std::vector<Rank> places(GetParam().ranks);
    for (Rank rank = 0; rank < places.size(); ++rank) places[rank] = rank;
    return places;
  }

  /// Runs `play_rank` for each rank; what it throws fails the test.
  void play(const std::function<void(Rank, Session&)>& play_rank, const std::vector<Rank>& places) {
    play_ranks(GetParam().ranks, kPatienceNs, [&](Rank rank, std::unique_ptr<ranks::Group> group) {
      auto session = must(try_open(std::move(group), options(rank, places)));
      play_rank(rank, session);
    });
  }
  void play(const std::function<void(Rank, Session&)>& play_rank) {
    play(play_rank, usual_places());
  }

  Result<Session> try_open(std::unique_ptr<ranks::Group> group, Options options) {
    Seams seams = played_seams(memory_);
    seams.clock = &clock_;
    return open_played(seams, std::move(group), std::move(options));
  }

  static void protect(Session& session, State& state) {
    must(session.protect("step", state.step));
    must(session.protect("own", state.own));
    must(session.protect("shared", state.shared));
    must(session.protect("paired", state.paired));
  }
  /// Versions of steps first to last.
  void take_versions(std::uint64_t first, std::uint64_t last) {
    play([&](Rank rank, Session& session) {
      State state;
      protect(session, state);
      if (session.latest()) must(session.restore());
      for (std::uint64_t step = first; step <= last; ++step) {
        state = state_at(rank, step);
        must(session.checkpoint());
        EXPECT_GT(must(session.wait()), 0u);
        EXPECT_TRUE(session.stats().last.balances());
      }
      must(session.close());
    });
  }
  void expect_restored(std::uint64_t step, const std::vector<Rank>& places) {
    play(
        [&](Rank rank, Session& session) {
          State state;
          protect(session, state);
          must(session.restore());
          EXPECT_TRUE(state == state_at(rank, step)) << "rank " << rank << ", step " << state.step;
          must(session.close());
        },
        places);
  }
  void expect_restored(std::uint64_t step) { expect_restored(step, usual_places()); }

  std::vector<std::string> nodes() const {
    std::set<std::string> found;
    for (const std::string& path : memory_.paths()) {
      const std::size_t begin = path.find("/node-");
      if (begin != path.npos) found.insert(path.substr(0, path.find('/', begin + 1)));
    }
    return {found.begin(), found.end()};
  }
  void lose(const std::string& node) {
    for (const std::string& path : memory_.paths())
      if (path.starts_with(node + "/")) must(memory_.remove(path));
  }
  /// Every way to lose `count` of the nodes.
  static std::vector<std::vector<std::string>> subsets(const std::vector<std::string>& nodes,
                                                       unsigned count) {
    std::vector<std::vector<std::string>> all;
    for (unsigned mask = 0; mask < 1u << nodes.size(); ++mask) {
      if (static_cast<unsigned>(__builtin_popcount(mask)) != count) continue;
      auto& subset = all.emplace_back();
      for (std::size_t i = 0; i < nodes.size(); ++i)
        if ((mask >> i & 1) != 0) subset.push_back(nodes[i]);
    }
    return all;
  }
  std::map<std::string, std::vector<std::byte>> contents() {
    std::map<std::string, std::vector<std::byte>> all;
    for (const std::string& path : memory_.paths()) {
      const auto file = must(memory_.open(path, false));
      std::vector<std::byte> bytes(must(file->size()));
      EXPECT_EQ(must(file->read(0, bytes)), bytes.size());
      all[path] = std::move(bytes);
    }
    return all;
  }
  void put_back(const std::map<std::string, std::vector<std::byte>>& all) {
    for (const std::string& path : memory_.paths()) EXPECT_TRUE(memory_.remove(path));
    for (const auto& [path, bytes] : all) {
      const auto file = must(memory_.create(path, false));
      must(file->write(0, bytes));
    }
  }

  os::MemoryFiles memory_;
  FakeClock clock_;
};

TEST_P(ReplicasTest, ComeBackWithoutAnyLoss) {
  take_versions(1, 4);
  expect_restored(4);
}

TEST_P(ReplicasTest, ComeBackAfterEveryLossThatTheyShallSurvive) {
  take_versions(1, 3);
  const auto before = contents();
  for (const auto& lost : subsets(nodes(), GetParam().losses)) {
    put_back(before);
    for (const std::string& node : lost) lose(node);
    expect_restored(3);
    // What was lost is put back by the restore: the next loss is survived again.
    const auto all = nodes();
    for (unsigned i = 0; i < GetParam().losses; ++i) lose(all[all.size() - 1 - i]);
    expect_restored(3);
    if (HasFailure()) return;
  }
}

TEST_P(ReplicasTest, SayWhatIsMissingAfterOneLossMore) {
  take_versions(1, 2);
  const auto all = nodes();
  for (unsigned i = 0; i <= GetParam().losses; ++i) lose(all[i]);
  play([&](Rank, Session& session) {
    State state;
    protect(session, state);
    EXPECT_TRUE(session.latest());
    const auto restored = session.restore();
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().code(), Code::corruption) << restored.error().message();
    must(session.close());
  });
}

TEST_P(ReplicasTest, ComeBackOnOtherNodes) {
  take_versions(1, 3);
  std::vector<Rank> places = usual_places();
  std::rotate(places.begin(), places.begin() + 1, places.end());
  expect_restored(3, places);
  std::reverse(places.begin(), places.end());
  expect_restored(3, places);
}

TEST_P(ReplicasTest, ComeBackWithDamagedFiles) {
  take_versions(1, 3);
  if (GetParam().losses == 0) return;
  for (const std::string& path : memory_.paths()) {
    if (!path.starts_with(nodes().front() + "/")) continue;
    if (path.find("/segment-") == path.npos && path.find("/manifest-") == path.npos) continue;
    const auto file = must(memory_.open(path, false));
    std::vector<std::byte> bytes(must(file->size()));
    must(file->read(0, bytes));
    for (std::size_t i = 200; i < bytes.size(); i += 700) bytes[i] ^= std::byte{4};
    EXPECT_TRUE(memory_.remove(path));
    must(must(memory_.create(path, false))->write(0, bytes));
  }
  expect_restored(3);
}

TEST_P(ReplicasTest, CountWhatWentToOthersAndWhatWasKeptForThem) {
  std::mutex mutex;
  std::uint64_t written = 0, sent = 0, kept = 0;
  play([&](Rank rank, Session& session) {
    State state = state_at(rank, 1);
    protect(session, state);
    must(session.checkpoint());
    must(session.close());
    const std::lock_guard lock(mutex);
    written += session.stats().total.written_bytes;
    sent += session.stats().sent_bytes;
    kept += session.stats().kept_bytes;
  });
  if (std::string_view(GetParam().redundancy).starts_with("erasure")) {
    EXPECT_LE(kept, sent) << "members go once, and parity is not more";
    EXPECT_GT(kept, 0u);
    return;
  }
  EXPECT_EQ(sent, kept);
  // Natural copies save some of it.
  EXPECT_LE(sent, written * GetParam().losses);
  EXPECT_GE(sent, written * GetParam().losses / 4);
}

TEST_P(ReplicasTest, SurviveManyVersionsWithCarryAndRetention) {
  take_versions(1, 12);
  take_versions(13, 24);
  const auto all = nodes();
  for (unsigned i = 0; i < GetParam().losses; ++i) lose(all[i]);
  expect_restored(24);
  // Nothing of versions that nobody counts on is left.
  std::set<std::string> versions;
  for (const std::string& path : memory_.paths())
    if (const std::size_t at = path.find("/manifest-"); at != path.npos)
      versions.insert(path.substr(at + 10, 17));
  EXPECT_LE(versions.size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(
    Of, ReplicasTest,
    testing::Values(Setting{"TwoReplicasCollective", 4, "1", "replicas:2", "collective", 1},
                    Setting{"TwoReplicasLocal", 4, "1", "replicas:2", "local", 1},
                    Setting{"TwoReplicasNone", 3, "1", "replicas:2", "none", 1},
                    Setting{"ThreeReplicas", 5, "1", "replicas:3", "collective", 2},
                    Setting{"ThreeReplicasUnshuffled", 5, "1", "replicas:3",
                            "collective-unshuffled", 2},
                    Setting{"TwoRanksOnANode", 6, "2", "replicas:2", "collective", 1},
                    Setting{"InBackground", 4, "1", "replicas:2", "collective", 1, "thread"},
                    Setting{"ThreeInBackground", 5, "1", "replicas:3", "collective", 2, "thread"},
                    Setting{"WithoutDedupInBackground", 3, "1", "replicas:2", "none", 1, "thread"},
                    Setting{"UnevenNodes", 5, "2", "replicas:2", "collective", 1},
                    Setting{"CollectiveWithoutReplicas", 4, "1", "none", "collective", 0},
                    Setting{"ThreeAndOne", 4, "1", "erasure:3+1", "local", 1},
                    Setting{"ThreeAndOneNatural", 5, "1", "erasure:3+1", "collective", 1},
                    Setting{"TwoAndTwo", 5, "1", "erasure:2+2", "collective", 2},
                    Setting{"TwoAndTwoWithoutDedup", 4, "1", "erasure:2+2", "none", 2},
                    Setting{"StripesOfUnevenNodes", 7, "2", "erasure:2+1", "collective", 1},
                    Setting{"OneAndOne", 3, "1", "erasure:1+1", "collective", 1}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

}  // namespace
}  // namespace belay::session
