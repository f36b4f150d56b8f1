// SPDX-License-Identifier: Apache-2.0
// What things cost: a version, a restore, and the baselines beside them. Times run from the first
// rank's start to the last one's end; CPU times and bytes are sums over the ranks.
#pragma once

#include "measure/image.hpp"
#include "measure/team.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace belay::bench {

class Stopwatch {
 public:
  Stopwatch();
  void stop();
  /// Collective. REQUIRES: stopped.
  double elapsed_ms(Team& team) const;
  double cpu_ms(Team& team) const;  ///< of all threads

 private:
  double start_ms_;
  double start_cpu_ms_;
  double stop_ms_ = 0;
  double stop_cpu_ms_ = 0;
};

struct VersionCost {
  double blocking_ms = 0;  ///< checkpoint()
  double durable_ms = 0;   ///< checkpoint() and wait()
  double cpu_ms = 0;       ///< over both
  double written_bytes = 0;
};
/// Collective. Takes a version of what the session protects.
VersionCost take_version(Team& team, Session& session);

struct Baselines {
  double plain_write_ms = 0;  ///< write() of all the data to a new file, and fsync()
  double scan_ms = 0;         ///< reading all the data in memory once, one thread a rank
  double scan_cpu_ms = 0;
};
/// Collective. Every rank with its own file in `directory`, all at the same time. The file stays
/// until remove_plain_file().
Baselines measure_baselines(Team& team, Image& image, const std::filesystem::path& directory);
/// Collective. O_DIRECT read of that file, caches dropped.
double measure_direct_read(Team& team, const std::filesystem::path& directory);
void remove_plain_file(Team& team, const std::filesystem::path& directory);
/// The plain write alone, without a trace.
double measure_plain_write(Team& team, std::span<const std::span<const std::byte>> pieces,
                           const std::filesystem::path& directory);
double measure_plain_write(Team& team, Image& image, const std::filesystem::path& directory);

/// Makes the kernel forget the contents of files below `directory`; and of all files, if allowed
/// to.
void drop_caches(const std::filesystem::path& directory);

/// REQUIRES: not empty.
double median(std::vector<double> values);
double largest(const std::vector<double>& values);
/// The median of one member over several samples.
template <class Sample>
double median_of(const std::vector<Sample>& samples, double Sample::*member) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.*member);
  return median(std::move(values));
}

}  // namespace belay::bench
