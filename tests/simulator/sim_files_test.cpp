// SPDX-License-Identifier: Apache-2.0
#include "simulator/sim_files.hpp"

#include "os/memory_files.hpp"

#include <gtest/gtest.h>

#include <array>

namespace belay::simulator {
namespace {

constexpr std::array<std::byte, 4096> kPage{};

/// Runs `body` as rank 0 of two over one disk.
void as_rank(std::vector<Kill> kills, os::MemoryFiles& disk,
             const std::function<void(World&, os::Files&)>& body) {
  TaskThreads threads;
  World world(1, 2, threads, false);
  world.start_run(2, std::move(kills));
  const auto files = make_sim_files(world, world.process(0), disk);
  world.scheduler().spawn("rank", [&] { body(world, *files); });
  world.scheduler().run();
}

TEST(SimFiles, AKilledProcessLeavesTheDiskAlone) {
  os::MemoryFiles disk;
  as_rank({}, disk, [&](World& world, os::Files& files) {
    auto file = files.create("/a", false);
    ASSERT_TRUE(file);
    world.kill(world.process(0));
    EXPECT_EQ((*file)->write(0, kPage).error().code(), Code::io);
    EXPECT_EQ(files.create("/b", false).error().code(), Code::io);
    EXPECT_EQ(files.remove("/a").error().code(), Code::io);
  });
  EXPECT_EQ(disk.paths(), (std::vector<std::string>{"/a"}));
  EXPECT_EQ(disk.total_bytes(), 0u);
}

TEST(SimFiles, AKillReleasesTheLocksOfItsProcess) {
  os::MemoryFiles disk;
  as_rank({}, disk, [&](World& world, os::Files& files) {
    const auto lock = files.lock("/lock", "me");
    ASSERT_TRUE(lock);
    const auto other = make_sim_files(world, world.process(1), disk);
    EXPECT_EQ(other->lock("/lock", "you").error().code(), Code::busy);
    world.kill(world.process(0));
    EXPECT_TRUE(other->lock("/lock", "you"));
  });
}

TEST(SimFiles, AKillStrikesBeforeOrAfterItsOperation) {
  for (const Manner manner : {Manner::before, Manner::after}) {
    os::MemoryFiles disk;
    as_rank({{Rank{0}, 2, manner}}, disk, [&](World& world, os::Files& files) {
      EXPECT_TRUE(files.create("/a", false));
      EXPECT_FALSE(files.create("/b", false));
      EXPECT_FALSE(files.create("/c", false));
      EXPECT_TRUE(world.process(0).killed);
    });
    EXPECT_EQ(disk.paths().size(), manner == Manner::before ? 1u : 2u);
  }
}

}  // namespace
}  // namespace belay::simulator
