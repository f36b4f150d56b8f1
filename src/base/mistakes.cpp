// SPDX-License-Identifier: Apache-2.0
#include "base/mistakes.hpp"

#ifdef BELAY_PLANT_MISTAKES

#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace belay {
namespace {

constexpr std::array<std::pair<std::string_view, Mistake>, 18> kNames{{
    {"skip_data_sync", Mistake::skip_data_sync},
    {"skip_directory_sync", Mistake::skip_directory_sync},
    {"vote_early", Mistake::vote_early},
    {"keep_failed", Mistake::keep_failed},
    {"forget_dirty", Mistake::forget_dirty},
    {"agree_on_maximum", Mistake::agree_on_maximum},
    {"reuse_version", Mistake::reuse_version},
    {"delete_early", Mistake::delete_early},
    {"skip_verification", Mistake::skip_verification},
    {"skip_copy_sync", Mistake::skip_copy_sync},
    {"one_copy_less", Mistake::one_copy_less},
    {"skip_healing", Mistake::skip_healing},
    {"drain_early", Mistake::drain_early},
    {"delete_needed", Mistake::delete_needed},
    {"remove_early", Mistake::remove_early},
    {"wrong_parity", Mistake::wrong_parity},
    {"one_shard_less", Mistake::one_shard_less},
    {"delete_member", Mistake::delete_member},
}};

Mistake from_environment() {
  const char* value = std::getenv("BELAY_MISTAKE");
  for (const auto& [name, mistake] : kNames)
    if (value != nullptr && name == value) return mistake;
  return Mistake::none;
}

std::atomic<Mistake>& chosen() {
  static std::atomic<Mistake> mistake = from_environment();
  return mistake;
}

}  // namespace

bool planted(Mistake mistake) { return chosen().load(std::memory_order_relaxed) == mistake; }
void plant(Mistake mistake) { chosen().store(mistake, std::memory_order_relaxed); }

}  // namespace belay

#endif
