// SPDX-License-Identifier: Apache-2.0
// Where damaged files go: nothing that may still be worth something is destroyed.
#pragma once

#include <belay/result.hpp>

#include "os/files.hpp"

#include <string>

namespace belay::inspect {

inline constexpr const char* kQuarantineName = "quarantine";

/// Moves a file of a node's directory to `quarantine/` in it, where no job looks, under a name that
/// is free there. Durable in there; the directory that it leaves is for the caller to sync.
Result<void> move_to_quarantine(os::Files& files, const std::string& directory,
                                const std::string& file);

}  // namespace belay::inspect
