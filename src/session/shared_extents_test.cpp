// SPDX-License-Identifier: Apache-2.0
// A restart from the global tier reads what many ranks share once.
#include "os/faulty_files.hpp"
#include "session/tiered_session_test.hpp"

#include <array>
#include <atomic>
#include <cerrno>

namespace belay::session {
namespace {

constexpr Rank kRanks = 8;
constexpr std::uint64_t kPages = 12 * 4096;  ///< of a restart, for each rank: headers and tables

/// Small fields that compress well, of which the last one is the same on all ranks.
using Fields = std::array<std::vector<std::uint64_t>, 3>;

Fields fields_of(Rank rank) {
  Fields fields;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::uint64_t seed = i + 1 < fields.size() ? 100 * rank + i : 1;
    fields[i] = noise(std::size_t{16} << 10, seed);
    for (std::uint64_t& value : fields[i]) value &= 0xffffffff;
  }
  return fields;
}

class SharedExtentsTest : public TieredSessionTest {
 protected:
  SharedExtentsTest() {
    levels_ = "local:1,global:1";
    global_ = "/pfs/global";
    places_.assign(kRanks, 0);
    adjust_ = [](Rank, Options& options) {
      options.block = "16KiB";
      options.staging = "16MiB";  // for extents of several ranks
      options.codec = "shuffle-zstd";
    };
    files_of_ = [this](Rank rank) -> os::Files* { return rank == 1 ? &second_ : &counted_; };
  }

  void play_fields(const std::function<void(Rank, Session&, Fields&)>& part) {
    on_ranks([&](Rank rank, std::unique_ptr<ranks::Group> group) {
      auto session = must(try_open(rank, std::move(group)));
      Fields fields;
      for (std::size_t i = 0; i < fields.size(); ++i)
        must(session.protect("field " + std::to_string(i), fields[i]));
      part(rank, session, fields);
      must(session.close());
    });
  }
  /// Reads about as much as the one bundle that there is.
  void expect_restored_by_one_reading() {
    ASSERT_EQ(paths_with("/bundle-").size(), 1u);
    const std::uint64_t bundle = bytes_in("/bundle-");
    ASSERT_GT(bundle, 2 * kRanks * kPages) << "the test would measure headers";
    expect_all_restored();
    EXPECT_GT(read_bytes_.load(), bundle / 2);
    EXPECT_LT(read_bytes_.load(), bundle + kRanks * kPages);
  }
  void take_and_lose_nodes() {
    play_fields([](Rank rank, Session& session, Fields& fields) {
      fields = fields_of(rank);
      must(session.checkpoint());
      must(session.wait());
    });
    lose("/store");
  }
  void expect_all_restored() {
    play_fields([this](Rank rank, Session& session, Fields& fields) {
      counting_ = true;
      must(session.restore());
      EXPECT_TRUE(fields == fields_of(rank)) << "rank " << rank;
    });
  }

  os::Action look_at(const os::Operation& operation, bool second) {
    const bool of_bundle = operation.path.find("/bundle-") != operation.path.npos;
    if (!counting_ || !of_bundle || operation.kind != os::Operation::Kind::read) return {};
    read_bytes_ += operation.bytes;
    const bool large = operation.bytes > 4 * 4096;
    return {second && large && failures_.fetch_sub(1) > 0 ? EIO : 0};
  }

  std::atomic<bool> counting_ = false;
  std::atomic<std::uint64_t> read_bytes_ = 0;
  std::atomic<int> failures_ = 0;  ///< that large reads of rank 1 still have to come
  os::FaultyFiles counted_{
      memory_, [this](const os::Operation& operation) { return look_at(operation, false); }};
  os::FaultyFiles second_{
      memory_, [this](const os::Operation& operation) { return look_at(operation, true); }};
};

TEST_F(SharedExtentsTest, AreReadByOneRankForAll) {
  take_and_lose_nodes();
  expect_restored_by_one_reading();
}

TEST_F(SharedExtentsTest, AreReadByOneRankForAllNodes) {
  for (Rank rank = 0; rank < kRanks; ++rank) places_[rank] = rank;
  background_ = "thread";
  take_and_lose_nodes();
  expect_restored_by_one_reading();
}

TEST_F(SharedExtentsTest, AreReadByThoseWhoWantThemIfTheOneCannot) {
  take_and_lose_nodes();
  failures_ = 1;
  expect_all_restored();
  EXPECT_LE(failures_, 0) << "rank 1 has read for others";
}

TEST_F(SharedExtentsTest, GiveNothingWrongIfTheyAreDamaged) {
  take_and_lose_nodes();
  for (const std::string& path : paths_with("/bundle-"))
    must(memory_.flip(path, 8 * (must(memory_.touch(path)) / 2)));
  play_fields([&](Rank, Session& session, Fields&) {
    EXPECT_EQ(session.latest(), Version{1});
    expect_error(session.restore(), Code::corruption, {"no version"});
  });
  EXPECT_TRUE(logged("is damaged"));
}

TEST_F(SharedExtentsTest, ComeToRanksThatWantOnlySomeRegions) {
  take_and_lose_nodes();
  play_fields([](Rank rank, Session& session, Fields& fields) {
    RestoreOptions options;
    if (rank % 2 == 0) options.regions = {"field 1"};
    must(session.restore(options));
    EXPECT_EQ(fields[1], fields_of(rank)[1]);
    EXPECT_EQ(fields[0].empty(), rank % 2 == 0);
  });
}

}  // namespace
}  // namespace belay::session
