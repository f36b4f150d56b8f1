// SPDX-License-Identifier: Apache-2.0
// Facts about this process and machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace belay::os {

/// Printable ASCII without spaces and '/', since it becomes a part of names of files: whatever else
/// the system calls this host by is replaced by '_'.
std::string host_name();
std::string program_name();  ///< the executable's file name
std::uint64_t process_id();
/// Processors that this process may run on: affinity and the cgroup's quota.
unsigned usable_processors();
/// Variables of the environment whose names start with `prefix`, sorted.
std::vector<std::pair<std::string, std::string>> environment(const std::string& prefix);

}  // namespace belay::os
