// SPDX-License-Identifier: Apache-2.0
#include "os/host.hpp"

#include "os/cgroup.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>
#include <thread>

namespace belay::os {
namespace {

unsigned affinity_processors() {
  // The kernel refuses a set that is smaller than its own, whose size it does not tell.
  for (std::size_t processors = 1024; processors <= (1u << 20); processors *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(processors), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    if (!set) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(processors);
    if (::sched_getaffinity(0, bytes, set.get()) == 0)
      return static_cast<unsigned>(CPU_COUNT_S(bytes, set.get()));
    if (errno != EINVAL) break;
  }
  return std::thread::hardware_concurrency();
}

}  // namespace

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name.data();
  for (char& c : host)
    if (c <= ' ' || c > '~' || c == '/') c = '_';
  return host;
}

std::string program_name() {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink("/proc/self/exe", target.data(), target.size());
  if (length <= 0) return program_invocation_short_name;
  std::string_view path(target.data(), static_cast<std::size_t>(length));
  constexpr std::string_view kReplaced = " (deleted)";  // by a newer build, while this one runs
  if (path.ends_with(kReplaced)) path.remove_suffix(kReplaced.size());
  return std::string(path.substr(path.find_last_of('/') + 1));
}

std::uint64_t process_id() { return static_cast<std::uint64_t>(::getpid()); }

unsigned usable_processors() {
  unsigned processors = affinity_processors();
  if (const auto quota = cgroup_processors(""); quota && *quota < processors)
    processors = static_cast<unsigned>(std::ceil(*quota));
  return std::max(processors, 1u);
}

std::vector<std::pair<std::string, std::string>> environment(const std::string& prefix) {
  std::map<std::string, std::string> found;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(prefix) || equals == std::string_view::npos || equals < prefix.size())
      continue;
    found.emplace(text.substr(0, equals), text.substr(equals + 1));  // the first counts, as getenv
  }
  return {found.begin(), found.end()};
}

}  // namespace belay::os
