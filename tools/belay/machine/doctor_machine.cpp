// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/try.hpp"
#include "os/cgroup.hpp"
#include "os/host.hpp"
#include "tools/belay/machine/doctor.hpp"
#include "tools/belay/machine/machine_facts.hpp"
#include "tools/belay/machine/page_tracking.hpp"

#include <algorithm>
#include <fstream>
#include <thread>

namespace belay::tool {
namespace {

constexpr std::uint64_t kScarceMemoryBytes = 512 << 20;
constexpr std::uint64_t kUsualMaps = 65530;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Finding look_at_page_tracking() {
  if (const auto tried = try_page_tracking(); !tried)
    return {"page_tracking", Health::warn, tried.error().message(),
            "nothing must be done: all protected memory is hashed for each version. Linux 6.7 or "
            "later can tell written pages (in a container, allow userfaultfd)"};
  return {"page_tracking", Health::ok, "userfaultfd write-protection and PAGEMAP_SCAN work"};
}

Finding look_at_maps() {
  std::ifstream file("/proc/sys/vm/max_map_count");
  std::uint64_t most = 0;
  if (!(file >> most)) return {"max_map_count", Health::ok, "unknown"};
  Finding finding{"max_map_count", Health::ok, fmt::format("{} mappings", most)};
  if (most < kUsualMaps) {
    finding.health = Health::warn;
    finding.fix =
        fmt::format("sysctl vm.max_map_count={} (large programs may run out)", kUsualMaps);
  }
  return finding;
}

Finding look_at_huge_pages() {
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']');
  if (open == line.npos || close == line.npos || close < open)
    return {"huge_pages", Health::ok, "this kernel has no transparent huge pages"};
  return {"huge_pages", Health::ok, "transparent: " + line.substr(open + 1, close - open - 1)};
}

Finding look_at_processors() {
  const unsigned online = std::thread::hardware_concurrency();
  const unsigned usable = os::usable_processors();
  std::string found = fmt::format("{} usable of {}", usable, online);
  if (const auto quota = os::cgroup_processors(""))
    found += fmt::format(" (control group: {:.2g})", *quota);
  return {"processors", Health::ok, found};
}

Finding look_at_memory() {
  const std::uint64_t available = available_memory_bytes();
  std::string found = fmt::format("{} available of {}", format_bytes(available),
                                  format_bytes(total_memory_bytes()));
  if (const auto limit = os::cgroup_memory_bytes(""))
    found += fmt::format(" (control group: {})", format_bytes(*limit));
  Finding finding{"memory", Health::ok, found};
  if (available < kScarceMemoryBytes) {
    finding.health = Health::warn;
    finding.fix =
        "staging takes 25% of the protected memory, 64 MiB at least: set BELAY_STAGING, or "
        "use fewer ranks on this node";
  }
  return finding;
}

}  // namespace

Findings examine_machine() {
  return {{"kernel", Health::ok, kernel_release()},
          look_at_page_tracking(),
          look_at_maps(),
          look_at_huge_pages(),
          {"vectors", Health::ok, widest_vectors() + " (used by the hash)"},
          look_at_processors(),
          look_at_memory()};
}

}  // namespace belay::tool
