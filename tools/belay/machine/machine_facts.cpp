// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/machine/machine_facts.hpp"

#include "os/cgroup.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace belay::tool {
namespace {

/// What follows `key` on the line of a /proc file that starts with it; empty if there is none.
std::string value_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto start = line.find_first_not_of(" \t:", key.size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return {};
}

std::uint64_t kilobytes_of(const std::string& key) {
  std::istringstream value(value_of("/proc/meminfo", key));
  std::uint64_t kilobytes = 0;
  value >> kilobytes;
  return kilobytes * 1024;
}

}  // namespace

std::string kernel_release() {
  utsname kernel{};
  ::uname(&kernel);
  return std::string(kernel.sysname) + " " + kernel.release;
}

std::string processor_model() { return value_of("/proc/cpuinfo", "model name"); }

std::string widest_vectors() {
#if defined(__x86_64__)
  // As xxh_x86dispatch.h chooses.
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE2";
#elif defined(__aarch64__)
  return "NEON";
#else
  return "as compiled";
#endif
}

std::uint64_t total_memory_bytes() { return kilobytes_of("MemTotal"); }

std::uint64_t available_memory_bytes() {
  const std::uint64_t available = kilobytes_of("MemAvailable");
  return std::min(available, os::cgroup_memory_bytes("").value_or(available));
}

}  // namespace belay::tool
