// SPDX-License-Identifier: Apache-2.0
// How many processors the control groups of this process leave it.
#pragma once

#include <optional>
#include <string>

namespace belay::os {

/// The smallest CPU quota of this process's cgroup and those above it, in processors; unset without
/// a quota. Knows cgroup v2 and v1. `root` stands before /proc and /sys; empty but in tests.
std::optional<double> cgroup_processors(const std::string& root);

}  // namespace belay::os
