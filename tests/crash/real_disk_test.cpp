// SPDX-License-Identifier: Apache-2.0
// Sessions on real file systems that are full, almost full, out of inodes, or without direct I/O.
#include <belay/belay.hpp>

#include "crash/real_disk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

namespace belay::crash {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

/// What the simulated program protects; its content is a function of the step.
struct Program {
  std::uint64_t step = 0;
  std::vector<std::uint64_t> field;

  explicit Program(std::uint64_t bytes) : field(bytes / sizeof(std::uint64_t)) { advance(0); }
  void advance(std::uint64_t to) {
    step = to;
    for (std::size_t i = 0; i < field.size(); ++i) field[i] = (i + 1) * 0x9e3779b97f4a7c15 + step;
  }
  bool intact() const {
    Program expected(field.size() * sizeof(std::uint64_t));
    expected.advance(step);
    return field == expected.field;
  }
};

Options options_of(const std::string& store, const char* background) {
  Options options;
  options.store = store;
  options.application = "real_disk";
  options.node = "here";
  options.block = "4KiB";
  options.keep = 1;
  options.background = background;
  return options;
}

Result<Session> open_program(const std::string& store, Program& program,
                             const char* background = "thread") {
  auto session = open(options_of(store, background));
  if (!session) return session;
  if (auto done = session->protect("step", program.step); !done) return Unexpected(done.error());
  if (auto done = session->protect("field", program.field); !done) return Unexpected(done.error());
  return session;
}

void expect_no_space(const Error& error) {
  EXPECT_EQ(error.code(), Code::no_space) << error.message();
  EXPECT_NE(error.message().find("`store` elsewhere"), std::string::npos) << error.message();
}

void expect_figures(const Error& error) {
  expect_no_space(error);
  const bool bytes = error.message().find("(needs ") != std::string::npos &&
                     error.message().find(" free; ") != std::string::npos;
  EXPECT_TRUE(bytes || error.message().find("no inode is free") != std::string::npos)
      << error.message();
}

/// Takes one more step. True: its version exists.
bool take_step(Session& session, Program& program) {
  program.advance(program.step + 1);
  auto version = session.checkpoint();
  if (!version) expect_figures(version.error());
  auto existing = session.wait();
  if (!existing) expect_figures(existing.error());
  return version && existing && *existing == *version;
}

/// What a new start brings back; empty: a first start.
std::optional<std::uint64_t> restart(const std::string& store, std::uint64_t bytes) {
  Program program(bytes);
  auto session = open_program(store, program);
  EXPECT_TRUE(session) << session.error().message();
  if (!session || !session->latest()) return {};
  auto restored = session->restore();
  EXPECT_TRUE(restored) << restored.error().message();
  EXPECT_TRUE(program.intact()) << "step " << program.step;
  auto closed = session->close();
  EXPECT_TRUE(closed) << closed.error().message();
  return program.step;
}

// The least that each maker takes without complaint.
constexpr DiskKind kExt4{"ext4", "mkfs.ext4 -q -F -m 0", 16 * kMiB, ""};
constexpr DiskKind kXfs{"xfs", "mkfs.xfs -q -f", 320 * kMiB, ""};
constexpr DiskKind kBtrfs{"btrfs", "mkfs.btrfs -q -f -M", 64 * kMiB, ""};
constexpr DiskKind kTmpfs{"tmpfs", "", 0, "size=16m"};
constexpr DiskKind kRamfs{"ramfs", "", 0, ""};

class RealDiskTest : public testing::TestWithParam<DiskKind> {
 protected:
  void SetUp() override {
    std::string reason;
    disk_ = RealDisk::mount(GetParam(), reason);
    if (!disk_) GTEST_SKIP() << GetParam().name << ": " << reason;
  }
  std::unique_ptr<RealDisk> disk_;
};

using FullDisk = RealDiskTest;
using AnyDisk = RealDiskTest;

TEST_P(AnyDisk, BringsBackWhatWasSaved) {
  const std::string store = disk_->path("store");
  {
    Program program(2 * kMiB);
    auto session = open_program(store, program);
    ASSERT_TRUE(session) << session.error().message();
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(take_step(*session, program));
    EXPECT_TRUE(session->close());
  }
  EXPECT_EQ(restart(store, 2 * kMiB), 4u);
}

TEST_P(FullDisk, FailsTheVersionAndNothingElse) {
  const std::string store = disk_->path("store");
  Program program(2 * kMiB);
  std::uint64_t saved = 0;
  {
    // Inline: else old files that go in the background would make room at any time.
    auto session = open_program(store, program, "inline");
    ASSERT_TRUE(session) << session.error().message();
    ASSERT_TRUE(take_step(*session, program));
    disk_->leave_free(256 << 10);
    EXPECT_FALSE(take_step(*session, program));
    EXPECT_FALSE(take_step(*session, program)) << "the disk is still full";
    EXPECT_EQ(session->latest(), 1u);
    EXPECT_EQ(session->stats().failed, 2u);
    disk_->free_all();
    EXPECT_TRUE(take_step(*session, program)) << "there is space again";
    saved = program.step;
    disk_->leave_free(256 << 10);
    if (take_step(*session, program)) saved = program.step;  // xfs may find room after all
    (void)session->close();
  }
  disk_->free_all();
  EXPECT_EQ(restart(store, 2 * kMiB), saved);
}

TEST_P(FullDisk, LetsAProgramStartAgainOrSaysWhyNot) {
  const std::string store = disk_->path("store");
  Program program(kMiB);
  {
    auto session = open_program(store, program);
    ASSERT_TRUE(session) << session.error().message();
    ASSERT_TRUE(take_step(*session, program));
    ASSERT_TRUE(session->close());
  }
  disk_->leave_free(0);
  Program other(kMiB);
  if (auto session = open_program(store, other)) {
    auto restored = session->restore();
    EXPECT_TRUE(restored) << restored.error().message();
    EXPECT_TRUE(other.step == 1 && other.intact());
  } else {
    expect_no_space(session.error());
  }
  disk_->free_all();
  EXPECT_EQ(restart(store, kMiB), 1u);
}

// The disk fills up at every point of a version: in the data, the index, the manifest, a directory.
TEST_P(FullDisk, AtAnyPointOfAVersionLeavesTheOneBefore) {
  const std::string store = disk_->path("store");
  Program program(64 << 10);
  std::uint64_t saved = 0;
  int failures = 0;
  {
    auto session = open_program(store, program);
    ASSERT_TRUE(session) << session.error().message();
    ASSERT_TRUE(take_step(*session, program));
    saved = program.step;
    for (std::uint64_t room = 0; room <= 32; ++room) {
      disk_->leave_free(room * 4096);
      const bool exists = take_step(*session, program);
      if (exists) saved = program.step;
      failures += exists ? 0 : 1;
    }
    disk_->free_all();
    EXPECT_TRUE(take_step(*session, program));
    saved = program.step;
  }
  EXPECT_GT(failures, 8) << "the disk was hardly ever full";
  disk_->free_all();
  EXPECT_EQ(restart(store, 64 << 10), saved);
}

// The same for the first version of a store, which leaves the mark that one has existed.
TEST_P(FullDisk, AtAnyPointOfTheFirstVersionLeavesThatOrNone) {
  int existing = 0;
  int failures = 0;
  // File systems keep different amounts of what they call free for themselves.
  for (std::uint64_t room = 0; existing < 2 && room < 1024; room += std::max(room / 4, 1ul)) {
    const std::string store = disk_->path("store");
    std::filesystem::remove_all(store);
    Program program(64 << 10);
    bool exists = false;
    {
      disk_->leave_free(room * 4096);
      auto session = open_program(store, program);
      if (session)
        exists = take_step(*session, program);
      else
        expect_no_space(session.error());
    }
    ++(exists ? existing : failures);
    disk_->free_all();
    const auto found = restart(store, 64 << 10);
    EXPECT_EQ(found.value_or(1), 1u) << room;
    EXPECT_TRUE(found || !exists) << room;
  }
  EXPECT_GT(failures, 4) << "the disk was hardly ever full";
  EXPECT_GT(existing, 0) << "the disk was always full";
}

class FewInodes : public testing::Test {};

TEST_F(FewInodes, FailTheVersionAndSaySo) {
  bool told = false;
  for (int inodes = 3; inodes <= 14; ++inodes) {
    const std::string options = "size=16m,nr_inodes=" + std::to_string(inodes);
    std::string reason;
    auto disk = RealDisk::mount({"tmpfs", "", 0, options.c_str()}, reason);
    if (!disk) GTEST_SKIP() << reason;
    const std::string store = disk->path("store");
    Program program(64 << 10);
    std::uint64_t saved = 0;
    if (auto session = open_program(store, program)) {
      for (int i = 0; i < 3; ++i) {
        program.advance(program.step + 1);
        auto version = session->checkpoint();
        auto existing = session->wait();
        if (version && existing) {
          saved = program.step;
          continue;
        }
        const Error& error = version ? existing.error() : version.error();
        expect_figures(error);
        told = told || error.message().find("no inode is free") != std::string::npos;
      }
      ASSERT_TRUE(disk->remount("nr_inodes=1000"));
      EXPECT_TRUE(take_step(*session, program)) << inodes;
      saved = program.step;
    } else {
      EXPECT_EQ(session.error().code(), Code::no_space) << session.error().message();
      ASSERT_TRUE(disk->remount("nr_inodes=1000"));
    }
    EXPECT_EQ(restart(store, 64 << 10).value_or(0), saved) << inodes;
  }
  EXPECT_TRUE(told);
}

std::string name_of_disk(const testing::TestParamInfo<DiskKind>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(On, FullDisk, testing::Values(kExt4, kXfs, kBtrfs, kTmpfs), name_of_disk);
INSTANTIATE_TEST_SUITE_P(On, AnyDisk, testing::Values(kExt4, kXfs, kBtrfs, kTmpfs, kRamfs),
                         name_of_disk);

}  // namespace
}  // namespace belay::crash
