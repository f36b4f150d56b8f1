// SPDX-License-Identifier: Apache-2.0
#include "measure/cost.hpp"

#include "measure/must.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kChunkBytes = 16 << 20;
constexpr std::size_t kDirectAlignment = 4096;

using Pieces = std::span<const std::span<const std::byte>>;

double now_ms(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

[[noreturn]] void die_of_errno(const char* what, const fs::path& path) {
  die(fmt::format("{} {}: {}", what, path.string(), std::strerror(errno)));
}

// The compiler makes the widest loop of it that the processor runs.
__attribute__((target_clones("avx512f", "avx2", "default"))) std::uint64_t scan(
    const std::uint64_t* words, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

void plain_write(const fs::path& path, Pieces pieces) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) die_of_errno("create", path);
  for (std::span<const std::byte> bytes : pieces)
    while (!bytes.empty()) {
      const ssize_t done = ::write(file, bytes.data(), std::min(bytes.size(), kChunkBytes));
      if (done < 0) die_of_errno("write", path);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  if (::fsync(file) != 0) die_of_errno("fsync", path);
  if (::close(file) != 0) die_of_errno("close", path);
}

int open_direct(const fs::path& path) {
  int file = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (file < 0 && errno == EINVAL) file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) die_of_errno("open", path);
  return file;
}

void direct_read(const fs::path& path, std::span<std::byte> buffer) {
  const int file = open_direct(path);
  ssize_t got = 0;
  do {
    got = ::read(file, buffer.data(), buffer.size());
    if (got < 0) die_of_errno("read", path);
  } while (got > 0);
  ::close(file);
}

struct AlignedBuffer {
  AlignedBuffer() : memory(std::aligned_alloc(kDirectAlignment, kChunkBytes)) {
    if (!memory) die("no memory for a buffer");
    std::memset(memory, 0, kChunkBytes);
  }
  ~AlignedBuffer() { std::free(memory); }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(memory), kChunkBytes}; }
  void* memory;
};

fs::path baseline_file(Team& team, const fs::path& directory) {
  return directory / fmt::format("plain-{}", team.rank());
}

double timed_plain_write(Team& team, Pieces pieces, const fs::path& file) {
  team.barrier();
  Stopwatch watch;
  plain_write(file, pieces);
  watch.stop();
  return watch.elapsed_ms(team);
}

double timed_plain_write(Team& team, Image& image, const fs::path& file) {
  const std::span<const std::byte> whole = image.bytes();
  return timed_plain_write(team, Pieces(&whole, 1), file);
}

}  // namespace

Stopwatch::Stopwatch()
    : start_ms_(now_ms(CLOCK_MONOTONIC)), start_cpu_ms_(now_ms(CLOCK_PROCESS_CPUTIME_ID)) {}

void Stopwatch::stop() {
  stop_ms_ = now_ms(CLOCK_MONOTONIC);
  stop_cpu_ms_ = now_ms(CLOCK_PROCESS_CPUTIME_ID);
}

// All ranks are on one machine and read one clock. With more ranks than cores some leave a barrier
// late, so the longest of their own times would be too short.
double Stopwatch::elapsed_ms(Team& team) const { return team.max(stop_ms_) + team.max(-start_ms_); }

double Stopwatch::cpu_ms(Team& team) const { return team.sum(stop_cpu_ms_ - start_cpu_ms_); }

VersionCost take_version(Team& team, Session& session) {
  team.barrier();
  Stopwatch blocking, durable;
  const Version version = must("checkpoint", session.checkpoint());
  blocking.stop();
  const Version existing = must("wait", session.wait());
  durable.stop();
  if (existing != version)
    die(fmt::format("version {} was taken, but {} is the newest", version, existing));
  const Stats stats = session.stats();
  if (!stats.last.balances())
    die(fmt::format("the ledger of version {} does not balance", version));
  return {blocking.elapsed_ms(team), durable.elapsed_ms(team), durable.cpu_ms(team),
          team.sum(static_cast<double>(stats.last.file_bytes))};
}

double measure_plain_write(Team& team, Pieces pieces, const fs::path& directory) {
  const fs::path file = baseline_file(team, directory);
  const double result = timed_plain_write(team, pieces, file);
  fs::remove(file);
  return result;
}

double measure_plain_write(Team& team, Image& image, const fs::path& directory) {
  const std::span<const std::byte> whole = image.bytes();
  return measure_plain_write(team, Pieces(&whole, 1), directory);
}

Baselines measure_baselines(Team& team, Image& image, const fs::path& directory) {
  remove_plain_file(team, directory);  // of the time before
  Baselines result;
  result.plain_write_ms = timed_plain_write(team, image, baseline_file(team, directory));

  team.barrier();
  Stopwatch scanning;
  const volatile std::uint64_t kept = scan(image.words().data(), image.words().size());
  scanning.stop();
  static_cast<void>(kept);
  result.scan_cpu_ms = scanning.cpu_ms(team);
  result.scan_ms = scanning.elapsed_ms(team);
  return result;
}

double measure_direct_read(Team& team, const fs::path& directory) {
  const AlignedBuffer buffer;
  if (team.rank() == 0) drop_caches(directory);
  team.barrier();
  Stopwatch reading;
  direct_read(baseline_file(team, directory), buffer.bytes());
  reading.stop();
  return reading.elapsed_ms(team);
}

void remove_plain_file(Team& team, const fs::path& directory) {
  fs::remove(baseline_file(team, directory));
}

void drop_caches(const fs::path& directory) {
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    const int file = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) die_of_errno("open", entry.path());
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
  // Without the privilege the advice above must do.
  std::ofstream("/proc/sys/vm/drop_caches") << "3\n";
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

}  // namespace belay::bench
