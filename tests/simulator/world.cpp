// SPDX-License-Identifier: Apache-2.0
#include "simulator/world.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace belay::simulator {

World::World(std::uint64_t seed, std::uint64_t switch_in, TaskThreads& threads, bool verbose)
    : random_(sub_seed(seed, 1)),
      scheduler_(sub_seed(seed, 2), switch_in, threads),
      verbose_(verbose) {}

void World::start_run(Rank ranks, std::vector<Kill> kills) {
  for (auto& process : processes_) former_.push_back(std::move(process));
  processes_.clear();
  ++job_;
  for (Rank rank = 0; rank < ranks; ++rank) {
    processes_.push_back(std::make_unique<Process>());
    processes_.back()->rank = rank;
    processes_.back()->job = job_;
  }
  kills_ = std::move(kills);
  points_ = 0;
}

const Kill* World::due_kill(const Process& process) const {
  if (process.job != job_) return nullptr;
  for (const Kill& kill : kills_)
    if (kill.rank ? *kill.rank == process.rank && process.points >= kill.point
                  : points_ >= kill.point)
      return &kill;
  return nullptr;
}

Fate World::point(Process& process) {
  scheduler_.advance(1'000 + random_.below(20'000));
  scheduler_.yield();
  if (process.stalled_until_ns > scheduler_.now_ns())
    scheduler_.wait_until([&] { return process.killed; }, process.stalled_until_ns);
  if (process.killed) return Fate::fails;
  ++process.points;
  ++points_;
  const Kill* kill = due_kill(process);
  if (!kill) return Fate::completes;
  striking_ = *kill;
  kills_.erase(kills_.begin() + (kill - kills_.data()));
  if (striking_->manner == Manner::after) return Fate::last;
  if (striking_->manner == Manner::torn) return Fate::torn_last;
  strike();
  return Fate::fails;
}

void World::strike() {
  const auto kill_now = std::exchange(striking_, std::nullopt);
  if (!kill_now) return;
  if (kill_now->rank)
    kill(*processes_[*kill_now->rank]);
  else
    kill_all();
}

void World::kill(Process& process) {
  if (std::exchange(process.killed, true)) return;
  trace("rank {} of job {} is killed", process.rank, process.job);
  note(process.rank + 1000);
  for (auto* lock : std::exchange(process.locks, {})) lock->reset();
}

void World::kill_all() {
  for (const auto& process : processes_) kill(*process);
}

void World::kill_stragglers() {
  for (const auto& process : former_) kill(*process);
}

void World::write_trace(const std::string& line) {
  std::printf("%12.6f ms  %s\n", static_cast<double>(scheduler_.now_ns()) * 1e-6, line.c_str());
}

}  // namespace belay::simulator
