// SPDX-License-Identifier: Apache-2.0
#include "os/cgroup.hpp"

#include <fstream>
#include <functional>
#include <sstream>

namespace belay::os {
namespace {

using ReadLimit = std::function<std::optional<double>(const std::string& directory)>;

/// Version 1 says "no limit" by a number near 2^63.
constexpr double kNoLimit = 9e18;

std::optional<double> quota_v2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");  // "max 100000" or "150000 100000"
  double quota = 0;
  double period = 0;
  if (file >> quota >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> quota_v1(const std::string& directory) {
  std::ifstream quota_file(directory + "/cpu.cfs_quota_us");  // -1: none
  std::ifstream period_file(directory + "/cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0)
    return quota / period;
  return std::nullopt;
}

bool contains(const std::string& controllers, const std::string& wanted) {
  std::istringstream list(controllers);
  for (std::string controller; std::getline(list, controller, ',');)
    if (controller == wanted) return true;
  return false;
}

std::optional<double> memory_limit(const std::string& directory, const char* name) {
  std::ifstream file(directory + "/" + name);  // "max" or a number
  double limit = 0;
  if (file >> limit && limit > 0 && limit < kNoLimit) return limit;
  return std::nullopt;
}

/// The smallest limit of the groups that `controller` puts this process in. `v2` and `v1` read one
/// from a group's directory.
std::optional<double> smallest_limit(const std::string& root, const std::string& controller,
                                     const ReadLimit& v2, const ReadLimit& v1) {
  std::optional<double> smallest;
  std::ifstream groups(root + "/proc/self/cgroup");  // lines "number:controllers:path"
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_v2 = controllers.empty();
    if (!is_v2 && !contains(controllers, controller)) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (is_v2 ? "" : "/" + controller);
    // Every group above limits too. Inside a container the path may be the host's, where there is
    // nothing to be found but at the mount itself.
    for (std::string path = line.substr(second + 1);; path.resize(path.find_last_of('/'))) {
      const auto limit = is_v2 ? v2(mount + path) : v1(mount + path);
      if (limit && (!smallest || *limit < *smallest)) smallest = limit;
      if (path.find('/') == std::string::npos) break;
    }
  }
  return smallest;
}

}  // namespace

std::optional<double> cgroup_processors(const std::string& root) {
  return smallest_limit(root, "cpu", quota_v2, quota_v1);
}

std::optional<std::uint64_t> cgroup_memory_bytes(const std::string& root) {
  const auto limit = smallest_limit(
      root, "memory",
      [](const std::string& directory) { return memory_limit(directory, "memory.max"); },
      [](const std::string& directory) {
        return memory_limit(directory, "memory.limit_in_bytes");
      });
  if (!limit) return std::nullopt;
  return static_cast<std::uint64_t>(*limit);
}

}  // namespace belay::os
