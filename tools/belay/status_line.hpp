// SPDX-License-Identifier: Apache-2.0
// One line on a terminal that says what is going on, and goes away when it is over.
#pragma once

#include <cstdint>
#include <string>

namespace belay::tool {

/// Draws on standard error, if it may; else does nothing.
class StatusLine {
 public:
  explicit StatusLine(bool draws) : draws_(draws) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Is it time to replace the line? At most some ten times a second.
  bool may_show() const;
  /// Replaces the line, if it may.
  void show(const std::string& text);
  void clear();

 private:
  const bool draws_;
  bool shown_ = false;
  std::uint64_t last_ns_ = 0;
  std::string last_;
};

}  // namespace belay::tool
