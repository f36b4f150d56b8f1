// SPDX-License-Identifier: Apache-2.0
// How many processors and how much memory the control groups of this process leave it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace belay::os {

/// The smallest CPU quota of this process's cgroup and those above it, in processors; unset without
/// a quota. Knows cgroup v2 and v1. `root` stands before /proc and /sys; empty but in tests.
std::optional<double> cgroup_processors(const std::string& root);

/// The smallest memory limit, likewise; unset without one.
std::optional<std::uint64_t> cgroup_memory_bytes(const std::string& root);

}  // namespace belay::os
