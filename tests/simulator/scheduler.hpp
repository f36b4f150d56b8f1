// SPDX-License-Identifier: Apache-2.0
// Many tasks, one baton: tasks are real threads of which exactly one runs at a time, and the seed
// decides which. So whatever they do to each other is repeated by the seed, and nothing that they
// share needs a lock.
#pragma once

#include "simulator/sim_random.hpp"

#include <semaphore.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace belay::simulator {

/// Threads that tasks run on, kept from one scheduler to the next since starting one is slow.
class TaskThreads {
 public:
  TaskThreads() = default;
  ~TaskThreads();  ///< REQUIRES: no task is running.
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

 private:
  friend class Scheduler;
  struct Thread {
    Thread();
    ~Thread();
    void loop();
    void wake();
    void wait();

    sem_t awake;
    bool stop = false;
    std::function<void()> body;
    std::thread thread;
  };
  Thread& take();
  void give_back(Thread& thread) { idle_.push_back(&thread); }

  std::vector<std::unique_ptr<Thread>> all_;
  std::vector<Thread*> idle_;
};

/// Members but run() are called by tasks, or while none runs.
class Scheduler {
 public:
  using Condition = std::function<bool()>;
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  /// `switch_in`: at a yield another task goes on in one of so many cases.
  Scheduler(std::uint64_t seed, std::uint64_t switch_in, TaskThreads& threads);
  ~Scheduler();

  /// A new task, which starts when the seed says so.
  void spawn(std::string name, std::function<void()> body);
  /// Runs all tasks to their ends. Not called by a task.
  void run();

  /// A point where another task may go on.
  void yield();
  /// Waits for the condition, or until the virtual time `deadline_ns`; says whether the condition
  /// holds. Conditions are looked at whenever the baton is handed on, and change nothing.
  bool wait_until(const Condition& condition, std::uint64_t deadline_ns = kNever);

  /// Virtual time. It jumps to the next deadline when no task can go on.
  std::uint64_t now_ns() const { return now_ns_; }
  void advance(std::uint64_t ns) { now_ns_ += ns; }

  /// Called when tasks are left, none can go on and none has a deadline, or when they have gone on
  /// for `limit` yields. It must make their conditions true so that they come to an end; if they
  /// still do not, the program aborts.
  void on_hang(std::uint64_t limit, std::function<void(const std::string& why)> handler);

  /// Of the task that runs.
  const std::string& task_name() const { return current_->name; }
  std::uint64_t switches() const { return switches_; }

 private:
  struct Task {
    std::string name;
    std::function<void()> body;
    TaskThreads::Thread* thread = nullptr;
    const Condition* condition = nullptr;  ///< null: it can go on
    std::uint64_t deadline_ns = kNever;
  };

  void run_task(Task& task);
  bool can_go_on(const Task& task) const;
  /// The seed's choice among the tasks that can go on, after time has jumped if it must.
  Task& choose();
  Task* choose_ready();
  void hand_over_to(Task& next);
  void hang(const std::string& why);
  std::string waiting() const;

  SimRandom random_;
  std::uint64_t switch_in_;
  TaskThreads* threads_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<Task*> ready_;
  Task* current_ = nullptr;
  sem_t finished_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t yields_ = 0;
  std::uint64_t limit_ = kNever;
  std::function<void(const std::string&)> on_hang_;
};

}  // namespace belay::simulator
