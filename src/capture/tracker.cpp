// SPDX-License-Identifier: Apache-2.0
#include "capture/tracker.hpp"

namespace belay::capture {
namespace {

class NoTracker final : public Tracker {
 public:
  bool collect(std::string_view, std::span<const std::byte>, std::uint32_t,
               std::vector<bool>&) override {
    return false;
  }
};

}  // namespace

std::unique_ptr<Tracker> make_no_tracker() { return std::make_unique<NoTracker>(); }

}  // namespace belay::capture
