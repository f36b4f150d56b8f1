// SPDX-License-Identifier: Apache-2.0
// A child process that does a part of the work and tells in messages how it goes.
#pragma once

#include <belay/result.hpp>

#include "os/descriptor.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace belay::files {

/// Killed and waited for when destroyed. Dies with the thread that started it.
class Child {
 public:
  /// Forks; the child runs `work` with a descriptor for send_message(), and ends. REQUIRES: this
  /// process has one thread.
  static Result<Child> start(const std::function<void(int out)>& work);
  Child(Child&&) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  /// The next message. not_found: there are no more, the child has ended or died. busy: nothing
  /// came within this time. corruption: it is longer than `most_bytes`.
  Result<std::vector<std::byte>> receive(std::uint64_t patience_ns, std::uint64_t most_bytes);
  int descriptor() const { return in_.number(); }  ///< for poll(): readable, or at its end

  /// How it ended, as waitpid() tells. Waits for that.
  int wait();

 private:
  Child(pid_t pid, os::Descriptor in) : pid_(pid), in_(std::move(in)) {}
  Result<void> receive(std::span<std::byte> to, std::uint64_t deadline_ns);

  pid_t pid_;  ///< -1: waited for
  int status_ = 0;
  os::Descriptor in_;
};

/// In a child, before it reads what may be hostile: it writes no files, and takes no more memory
/// than this beyond what it starts with.
void confine(std::uint64_t memory_bytes);

/// False if nobody listens any more.
bool send_message(int out, std::span<const std::byte> message);

}  // namespace belay::files
