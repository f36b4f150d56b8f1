// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/progress.hpp"

#include "base/settings.hpp"

#include <fmt/format.h>

namespace belay::tool {
namespace {

constexpr std::size_t kBarWidth = 30;

}  // namespace

Progress::Progress(std::string label, bool draws)
    : label_(std::move(label)), line_(draws), started_(std::chrono::steady_clock::now()) {}

void Progress::update(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  if (!line_.may_show()) return;
  const double share =
      total_bytes == 0 ? 1 : static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
  const auto filled = static_cast<std::size_t>(share * kBarWidth);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  const auto rate =
      static_cast<std::uint64_t>(seconds > 0 ? static_cast<double>(done_bytes) / seconds : 0);
  line_.show(fmt::format("{} [{}{}] {:3.0f} %  {} of {}, {}/s", label_, std::string(filled, '#'),
                         std::string(kBarWidth - filled, '.'), 100 * share,
                         format_bytes(done_bytes), format_bytes(total_bytes), format_bytes(rate)));
}

}  // namespace belay::tool
