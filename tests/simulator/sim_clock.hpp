// SPDX-License-Identifier: Apache-2.0
// The clock of one simulated process: virtual time.
#pragma once

#include "os/clock.hpp"
#include "simulator/world.hpp"

namespace belay::simulator {

class SimClock final : public os::Clock {
 public:
  SimClock(World& world, Process& process) : world_(&world), process_(&process) {}

  /// Looking at it takes a microsecond, so that no two looks give the same time.
  std::uint64_t now_ns() override {
    world_->scheduler().advance(1'000);
    return world_->scheduler().now_ns();
  }
  std::int64_t wall_ns() override { return kEpoch + static_cast<std::int64_t>(now_ns()); }
  void sleep_ns(std::uint64_t ns) override {
    Scheduler& scheduler = world_->scheduler();
    scheduler.yield();
    scheduler.wait_until([this] { return process_->killed; }, scheduler.now_ns() + ns);
  }

 private:
  static constexpr std::int64_t kEpoch = 1'700'000'000'000'000'000;
  World* world_;
  Process* process_;
};

}  // namespace belay::simulator
