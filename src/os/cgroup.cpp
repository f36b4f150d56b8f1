// SPDX-License-Identifier: Apache-2.0
#include "os/cgroup.hpp"

#include <fstream>
#include <sstream>

namespace belay::os {
namespace {

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

}  // namespace

std::optional<double> cgroup_processors(const std::string& root) {
  std::optional<double> smallest;
  std::ifstream groups(root + "/proc/self/cgroup");  // lines "number:controllers:path"
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && !contains(controllers, "cpu")) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (v2 ? "" : "/cpu");
    // Every group above limits too. Inside a container the path may be the host's, where there is
    // nothing to be found but at the mount itself.
    for (std::string path = line.substr(second + 1);; path.resize(path.find_last_of('/'))) {
      const auto quota = v2 ? quota_v2(mount + path) : quota_v1(mount + path);
      if (quota && (!smallest || *quota < *smallest)) smallest = quota;
      if (path.find('/') == std::string::npos) break;
    }
  }
  return smallest;
}

}  // namespace belay::os
