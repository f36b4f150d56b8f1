// SPDX-License-Identifier: Apache-2.0
// What goes wrong while ranks share a version: none of it may look like success.
#include "os/faulty_files.hpp"
#include "session/one_thread_group_test.hpp"
#include "session/played_ranks_test.hpp"
#include "session/session_test.hpp"

#include <cerrno>

namespace belay::session {
namespace {

constexpr Rank kFailing = 4;
constexpr std::uint64_t kPatienceNs = 60'000'000'000;

/// A group that calls a test before it opens a window. The exchange stays inside checkpoint().
class WatchedGroup final : public OneThreadGroup {
 public:
  using BeforeWindow = std::function<Result<void>()>;
  WatchedGroup(std::unique_ptr<Group> group, BeforeWindow before)
      : OneThreadGroup(std::move(group)), before_window_(std::move(before)) {}

  Result<std::unique_ptr<ranks::Window>> open_window(std::uint64_t bytes) override {
    if (auto allowed = before_window_(); !allowed) return Unexpected(allowed.error());
    return OneThreadGroup::open_window(bytes);
  }

 private:
  BeforeWindow before_window_;
};

class SharedFailuresTest : public testing::Test {
 protected:
  Session open(Rank rank, std::unique_ptr<ranks::Group> group, const char* redundancy) {
    Options options;
    options.store = "/store";
    options.application = "test";
    options.block = kBlock;
    options.staging = "1MiB";
    options.background = "inline";
    options.redundancy = redundancy;
    options.node = std::to_string(rank);
    Seams seams = played_seams(files_);
    seams.clock = &clock_;
    return must(open_played(seams, std::move(group), std::move(options)));
  }
  /// Of so many blocks one changes after it was fingerprinted.
  void expect_that_a_change_is_noticed(std::size_t blocks);
  static std::vector<std::uint64_t> numbers_of(Rank rank) { return noise(40 * kPerBlock, rank); }
  void lose(const std::string& node) {
    for (const std::string& path : memory_.paths())
      if (path.starts_with("/store/node-" + node + "/")) must(memory_.remove(path));
  }

  os::MemoryFiles memory_;
  std::function<bool(const std::string&)> fails_;  ///< a rename to this; set while no rank runs
  os::FaultyFiles files_{memory_, [this](const os::Operation& operation) {
                           const bool hit = operation.kind == os::Operation::Kind::rename &&
                                            fails_ && fails_(operation.path);
                           return os::Action{.error = hit ? EIO : 0};
                         }};
  FakeClock clock_;
};

TEST_F(SharedFailuresTest, AVersionOfWhichAKeptManifestHasNoNameIsNotPromised) {
  // Somebody keeps the manifest of rank 0, and cannot give it its name.
  fails_ = [](const std::string& path) {
    return path.ends_with("/manifest-000001-0000000001-000000") &&
           !path.starts_with("/store/node-0/");
  };
  play_ranks(kFailing, kPatienceNs, [&](Rank rank, std::unique_ptr<ranks::Group> group) {
    auto session = open(rank, std::move(group), "replicas:2");
    auto numbers = numbers_of(rank);
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    EXPECT_EQ(session.wait().error().code(), Code::io);
    EXPECT_EQ(session.stats().failed, 1u);
    EXPECT_TRUE(session.versions().empty());
    must(session.checkpoint());
    EXPECT_EQ(must(session.wait()), 2u);
    must(session.close());
  });
  lose("0");
  play_ranks(kFailing, kPatienceNs, [&](Rank rank, std::unique_ptr<ranks::Group> group) {
    auto session = open(rank, std::move(group), "replicas:2");
    std::vector<std::uint64_t> numbers;
    must(session.protect("numbers", numbers));
    EXPECT_EQ(must(session.restore()), 2u);
    EXPECT_EQ(numbers, numbers_of(rank));
    must(session.close());
  });
}

void SharedFailuresTest::expect_that_a_change_is_noticed(std::size_t blocks) {
  play_ranks(kFailing, kPatienceNs, [&](Rank rank, std::unique_ptr<ranks::Group> group) {
    auto numbers = noise(blocks * kPerBlock, rank);
    auto session = open(rank,
                        std::make_unique<WatchedGroup>(std::move(group),
                                                       [&]() -> Result<void> {
                                                         if (rank == 2) ++numbers[5];
                                                         return {};
                                                       }),
                        "erasure:2+2");
    must(session.protect("numbers", numbers));
    // Fingerprints are known by now, and what is staged after the exchange does not fit them.
    (void)session.checkpoint();
    const auto ended = session.wait();
    ASSERT_FALSE(ended);
    if (rank == 2) {
      EXPECT_EQ(ended.error().code(), Code::invalid_argument);
      EXPECT_NE(ended.error().message().find("region 'numbers' changed during checkpoint()"),
                std::string::npos)
          << ended.error().message();
    }
    EXPECT_TRUE(session.versions().empty());
    must(session.close());
  });
}

TEST_F(SharedFailuresTest, MemoryThatChangesBeforeItIsSentForParityFailsTheVersion) {
  expect_that_a_change_is_noticed(40);
}

TEST_F(SharedFailuresTest, MemoryThatChangesFailsTheVersionOnATierInMemoryToo) {
  memory_.set_in_memory(true);
  expect_that_a_change_is_noticed(3000);  // several pieces
}

TEST_F(SharedFailuresTest, WithoutSharedMemoryForWindowsMessagesDo) {
  const auto refuse = []() -> Result<void> {
    return Unexpected(Error(Code::no_space, "no shared memory"));
  };
  for (const char* redundancy : {"replicas:2", "erasure:2+1"}) {
    play_ranks(kFailing, kPatienceNs, [&](Rank rank, std::unique_ptr<ranks::Group> group) {
      auto session =
          open(rank, std::make_unique<WatchedGroup>(std::move(group), refuse), redundancy);
      auto numbers = numbers_of(rank);
      must(session.protect("numbers", numbers));
      must(session.checkpoint());
      EXPECT_GT(must(session.wait()), 0u);
      must(session.close());
    });
    lose("3");
    play_ranks(kFailing, kPatienceNs, [&](Rank rank, std::unique_ptr<ranks::Group> group) {
      auto session = open(rank, std::move(group), redundancy);
      std::vector<std::uint64_t> numbers;
      must(session.protect("numbers", numbers));
      must(session.restore());
      EXPECT_EQ(numbers, numbers_of(rank)) << redundancy;
      must(session.close());
    });
  }
}

}  // namespace
}  // namespace belay::session
