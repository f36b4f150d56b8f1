// SPDX-License-Identifier: Apache-2.0
#include "measure/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

/// What follows `key` on the line of a /proc file that starts with it; empty if there is none.
std::string line_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto start = line.find_first_not_of(" \t:", key.size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return {};
}

std::uint64_t kilobytes_of(const char* path, const std::string& key) {
  std::istringstream line(line_of(path, key));
  std::uint64_t kilobytes = 0;
  line >> kilobytes;
  return kilobytes * 1024;
}

/// The type of the mounted file system whose mount point is the longest prefix of `directory`.
std::string file_system_of(const fs::path& directory) {
  const std::string wanted = fs::weakly_canonical(directory).string() + "/";
  std::ifstream mounts("/proc/self/mounts");
  std::string device, point, type, rest, best_type = "unknown";
  std::size_t best = 0;
  while (mounts >> device >> point >> type && std::getline(mounts, rest)) {
    if (point != "/") point += "/";
    if (!wanted.starts_with(point) || point.size() < best) continue;
    best = point.size();
    best_type = type;
  }
  return best_type;
}

std::string date_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text, length};
}

}  // namespace

nlohmann::json describe_machine(const fs::path& directory) {
  utsname kernel{};
  uname(&kernel);
  return {{"processor", line_of("/proc/cpuinfo", "model name")},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory_bytes", kilobytes_of("/proc/meminfo", "MemTotal")},
          {"kernel", std::string(kernel.sysname) + " " + kernel.release},
          {"file_system", file_system_of(directory)},
          {"may_drop_caches", access("/proc/sys/vm/drop_caches", W_OK) == 0},
          {"date", date_now()}};
}

fs::path memory_backed(std::uint64_t bytes, const fs::path& otherwise) {
  const fs::path shared = "/dev/shm";
  std::error_code none;
  const bool fits = file_system_of(shared) == "tmpfs" && access(shared.c_str(), W_OK) == 0 &&
                    fs::space(shared, none).available >= bytes && available_memory_bytes() >= bytes;
  return fits ? shared : otherwise;
}

std::uint64_t available_memory_bytes() { return kilobytes_of("/proc/meminfo", "MemAvailable"); }

std::uint64_t available_disk_bytes(const fs::path& directory) {
  return fs::space(directory).available;
}

std::uint64_t memory_peak_bytes() { return kilobytes_of("/proc/self/status", "VmHWM"); }

void restart_memory_peak() { std::ofstream("/proc/self/clear_refs") << "5\n"; }

}  // namespace belay::bench
