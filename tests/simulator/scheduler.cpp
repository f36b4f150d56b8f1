// SPDX-License-Identifier: Apache-2.0
#include "simulator/scheduler.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace belay::simulator {

namespace {

void wait_for(sem_t& semaphore) {
  while (sem_wait(&semaphore) != 0 && errno == EINTR) continue;
}

}  // namespace

TaskThreads::Thread::Thread() {
  sem_init(&awake, 0, 0);
  thread = std::thread([this] { loop(); });
}

TaskThreads::Thread::~Thread() {
  stop = true;
  wake();
  thread.join();
  sem_destroy(&awake);
}

void TaskThreads::Thread::wake() { sem_post(&awake); }
void TaskThreads::Thread::wait() { wait_for(awake); }

void TaskThreads::Thread::loop() {
  for (;;) {
    wait();
    if (stop) return;
    // Moved out first: as soon as the body hands the baton on, the next body may be put in place.
    const auto run = std::move(body);
    run();
  }
}

TaskThreads::~TaskThreads() = default;

TaskThreads::Thread& TaskThreads::take() {
  if (idle_.empty()) {
    all_.push_back(std::make_unique<Thread>());
    return *all_.back();
  }
  Thread& thread = *idle_.back();
  idle_.pop_back();
  return thread;
}

Scheduler::Scheduler(std::uint64_t seed, std::uint64_t switch_in, TaskThreads& threads)
    : random_(seed), switch_in_(switch_in), threads_(&threads) {
  sem_init(&finished_, 0, 0);
}

Scheduler::~Scheduler() { sem_destroy(&finished_); }

void Scheduler::spawn(std::string name, std::function<void()> body) {
  auto task = std::make_unique<Task>();
  Task& added = *task;
  added.name = std::move(name);
  added.body = std::move(body);
  added.thread = &threads_->take();
  added.thread->body = [this, &added] { run_task(added); };
  tasks_.push_back(std::move(task));
}

void Scheduler::run() {
  if (tasks_.empty()) return;
  current_ = &choose();
  current_->thread->wake();
  wait_for(finished_);
}

void Scheduler::run_task(Task& task) {
  task.body();
  // What the body holds goes while this thread still has the baton.
  task.body = nullptr;
  threads_->give_back(*task.thread);
  std::erase_if(tasks_, [&](const auto& other) { return other.get() == &task; });
  if (tasks_.empty()) {
    current_ = nullptr;
    sem_post(&finished_);
    return;
  }
  current_ = &choose();
  ++switches_;
  current_->thread->wake();
}

void Scheduler::yield() {
  if (++yields_ > limit_) hang("no end after " + std::to_string(limit_) + " operations");
  if (tasks_.size() > 1 && random_.one_in(switch_in_)) hand_over_to(choose());
}

bool Scheduler::wait_until(const Condition& condition, std::uint64_t deadline_ns) {
  if (condition()) return true;
  if (deadline_ns <= now_ns_) return false;
  Task& self = *current_;
  self.condition = &condition;
  self.deadline_ns = deadline_ns;
  hand_over_to(choose());
  self.condition = nullptr;
  self.deadline_ns = kNever;
  return condition();
}

void Scheduler::hand_over_to(Task& next) {
  Task& self = *current_;
  if (&next == &self) return;
  current_ = &next;
  ++switches_;
  next.thread->wake();
  self.thread->wait();
}

bool Scheduler::can_go_on(const Task& task) const {
  return !task.condition || task.deadline_ns <= now_ns_ || (*task.condition)();
}

Scheduler::Task* Scheduler::choose_ready() {
  ready_.clear();
  for (const auto& task : tasks_)
    if (can_go_on(*task)) ready_.push_back(task.get());
  return ready_.empty() ? nullptr : ready_[random_.below(ready_.size())];
}

Scheduler::Task& Scheduler::choose() {
  if (Task* task = choose_ready()) return *task;
  std::uint64_t next_ns = kNever;
  for (const auto& task : tasks_) next_ns = std::min(next_ns, task->deadline_ns);
  if (next_ns == kNever)
    hang("every task waits for another:" + waiting());
  else
    now_ns_ = next_ns;
  if (Task* task = choose_ready()) return *task;
  std::fprintf(stderr, "the simulated processes cannot be ended:%s\n", waiting().c_str());
  std::abort();
}

void Scheduler::on_hang(std::uint64_t limit, std::function<void(const std::string&)> handler) {
  limit_ = limit;
  on_hang_ = std::move(handler);
}

void Scheduler::hang(const std::string& why) {
  if (const auto handler = std::exchange(on_hang_, nullptr)) {
    limit_ = limit_ == kNever ? kNever : 2 * limit_;
    handler(why);
    return;
  }
  std::fprintf(stderr, "hang: %s\n", why.c_str());
  std::abort();
}

std::string Scheduler::waiting() const {
  std::string names;
  for (const auto& task : tasks_) names += " " + task->name;
  return names;
}

}  // namespace belay::simulator
