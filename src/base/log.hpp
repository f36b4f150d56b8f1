// SPDX-License-Identifier: Apache-2.0
// Messages to the user's callback. The library itself never prints.
#pragma once

#include <belay/options.hpp>

#include <fmt/format.h>

#include <mutex>
#include <utility>

namespace belay {

/// Thread-safe: background work reports here too.
class Log {
 public:
  Log() = default;
  Log(LogLevel level, LogCallback callback) : level_(level), callback_(std::move(callback)) {}

  template <class... Args>
  void write(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
    if (!callback_ || level > level_) return;
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    const std::lock_guard guard(mutex_);
    try {
      callback_(level, text);
    } catch (...) {  // a callback of the user's must not take the program down
    }
  }
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::warn, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::info, format, std::forward<Args>(args)...);
  }

 private:
  LogLevel level_ = LogLevel::warn;
  LogCallback callback_;
  std::mutex mutex_;
};

}  // namespace belay
