// SPDX-License-Identifier: Apache-2.0
#include "simulator/sim_worker.hpp"

#include <deque>
#include <utility>

namespace belay::simulator {

namespace {

class SimWorker final : public session::Worker {
 public:
  SimWorker(World& world, Process& process) : world_(&world), process_(&process) {}
  ~SimWorker() override { SimWorker::wait_all(); }

  void submit(std::function<void()> job) override {
    jobs_.push_back(std::move(job));
    ++pending_;
    if (!std::exchange(running_, true))
      world_->scheduler().spawn(fmt::format("worker{}", process_->rank), [this] { work(); });
    world_->scheduler().yield();
  }

  bool pending() override {
    world_->scheduler().yield();
    return pending_ > 0;
  }
  void wait_one() override {
    const std::size_t before = pending_;
    world_->scheduler().wait_until([&] { return pending_ < before || pending_ == 0; });
  }
  void wait_all() override {
    world_->scheduler().wait_until([&] { return pending_ == 0 && !running_; });
  }

 private:
  void work() {
    while (!jobs_.empty()) {
      auto job = std::move(jobs_.front());
      jobs_.pop_front();
      job();
      job = nullptr;
      --pending_;
      world_->scheduler().yield();
    }
    running_ = false;
  }

  World* world_;
  Process* process_;
  std::deque<std::function<void()>> jobs_;
  std::size_t pending_ = 0;  ///< submitted and not ended
  bool running_ = false;     ///< a task works on them
};

}  // namespace

std::unique_ptr<session::Worker> make_sim_worker(World& world, Process& process) {
  return std::make_unique<SimWorker>(world, process);
}

}  // namespace belay::simulator
