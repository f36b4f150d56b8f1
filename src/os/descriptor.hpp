// SPDX-License-Identifier: Apache-2.0
// A file descriptor with an owner, and calls that signals do not interrupt.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace belay::os {

/// Calls again for as long as a signal interrupts. errno is that of the last call.
template <class Call>
auto retry(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

/// Closed silently when destroyed; close() where the error matters.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  ~Descriptor() {
    if (valid()) ::close(number_);
  }

  bool valid() const { return number_ >= 0; }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }  ///< to another owner

  /// 0, or errno. The descriptor is gone in either case: trying again could close another one that
  /// got its number, and EINTR says only that the wait was cut short.
  int close() {
    if (::close(std::exchange(number_, -1)) == 0 || errno == EINTR) return 0;
    return errno;
  }

 private:
  int number_;
};

}  // namespace belay::os
