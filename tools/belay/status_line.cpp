// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/status_line.hpp"

#include "os/clock.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace belay::tool {
namespace {

constexpr std::uint64_t kPauseNs = 80'000'000;

/// A line that wraps could not be erased.
std::size_t columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 79;
  return size.ws_col - 1u;
}

}  // namespace

bool StatusLine::may_show() const {
  return draws_ && (!shown_ || os::system_clock().now_ns() - last_ns_ >= kPauseNs);
}

void StatusLine::show(const std::string& text) {
  if (text == last_ || !may_show()) return;
  std::fprintf(stderr, "\r\x1b[K%s", text.substr(0, columns()).c_str());
  std::fflush(stderr);
  shown_ = true;
  last_ns_ = os::system_clock().now_ns();
  last_ = text;
}

void StatusLine::clear() {
  if (!shown_) return;
  std::fprintf(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
  last_.clear();
}

}  // namespace belay::tool
