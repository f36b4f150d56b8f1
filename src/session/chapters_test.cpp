// SPDX-License-Identifier: Apache-2.0
// Ranks whose tables are larger than the memory of whoever writes their bundle: what went to the
// global tier in chapters comes back from it.
#include "session/tiered_session_test.hpp"

namespace belay::session {
namespace {

/// More blocks than a chapter has, and than are known ahead, with the least memory.
constexpr std::size_t kLarge = 700;

struct LargeState {
  std::vector<std::uint64_t> moving, still, zeros;
  bool operator==(const LargeState&) const = default;

  /// Some of it changes with every step; much is there again at other places.
  static LargeState at(Rank rank, std::uint64_t step) {
    LargeState state{noise(kPerBlock * kLarge, 1 + rank), noise(kPerBlock * kLarge, 50 + rank),
                     std::vector<std::uint64_t>(kPerBlock * 200)};
    for (std::size_t i = 0; i < kLarge; i += 1 + step % 3) state.moving[i * kPerBlock] = step;
    for (std::size_t i = 0; i < 100; ++i) state.still[i * kPerBlock + 1] = step;
    std::copy_n(state.still.begin() + 300 * kPerBlock, 50 * kPerBlock, state.moving.begin());
    state.zeros[150 * kPerBlock] = step;
    return state;
  }
};

class ChaptersTest : public TieredSessionTest, public testing::WithParamInterface<const char*> {
 protected:
  ChaptersTest() {
    levels_ = GetParam();
    global_ = "/pfs/global";
    background_ = "thread";
    places_ = {0, 0, 1};
    drain_bytes_ = 1;
    adjust_ = [](Rank, Options& options) { options.aggregate = 3; };
  }
  void on_sessions(const std::function<void(Rank, Session&, LargeState&)>& part) {
    on_ranks([&](Rank rank, std::unique_ptr<ranks::Group> group) {
      auto session = must(try_open(rank, std::move(group)));
      LargeState state;
      must(session.protect("moving", state.moving));
      must(session.protect("still", state.still));
      must(session.protect("zeros", state.zeros));
      part(rank, session, state);
      must(session.close());
    });
  }
};

TEST_P(ChaptersTest, ComeBackBitForBit) {
  const auto expect_restored_at = [](Rank rank, Session& session, LargeState& state,
                                     std::uint64_t step) {
    must(session.restore());
    EXPECT_TRUE(state == LargeState::at(rank, step)) << rank << " at " << step;
  };
  for (const std::uint64_t first : {1u, 4u})
    on_sessions([&](Rank rank, Session& session, LargeState& state) {
      if (first > 1) expect_restored_at(rank, session, state, first - 1);
      for (std::uint64_t step = first; step < first + 3; ++step) {
        state = LargeState::at(rank, step);
        must(session.checkpoint());
        must(session.wait());
      }
    });
  EXPECT_EQ(paths_with("/bundle-000002-0000000006-").size(), 3u) << "one for each rank";
  if (!paths_with("/store").empty()) lose("/store");
  on_sessions([&](Rank rank, Session& session, LargeState& state) {
    expect_restored_at(rank, session, state, 6);
  });
  EXPECT_FALSE(logged("written again"));
  EXPECT_FALSE(logged("tries again"));
}

INSTANTIATE_TEST_SUITE_P(Of, ChaptersTest,
                         testing::Values("local:1,global:1", "local:1,global:3", "global:1"));

}  // namespace
}  // namespace belay::session
