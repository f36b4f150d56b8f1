// SPDX-License-Identifier: Apache-2.0
// What `belay bench` measures. Each figure is sampled once in every round, so that a disturbance
// hits all of them alike.
#pragma once

#include <belay/result.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace belay::tool {

struct Figure {
  enum class Unit { bytes_per_second, seconds };
  std::string name;  ///< promised to readers of the file
  std::string meaning;
  Unit unit = Unit::bytes_per_second;
  unsigned threads = 1;
  std::vector<double> samples = {};

  /// Below which the share `share` of the samples lies, between neighbours in proportion.
  /// REQUIRES: samples
  double quantile(double share) const;
  double median() const { return quantile(0.5); }
  /// The noise: how far the quartiles lie apart, as a share of the median.
  double spread() const { return (quantile(0.75) - quantile(0.25)) / median(); }
};

/// One figure with what takes another sample of it.
struct Measurement {
  Figure figure;
  std::function<Result<void>(Figure& figure)> sample;
};

struct BenchSizes {
  std::size_t memory_bytes = 0;
  std::size_t file_bytes = 0;
  std::uint64_t most_write_ns = 0;  ///< for one sample
};

/// Scans, hashes of every kind, copies. They share memory, which goes with the last of them.
Result<std::vector<Measurement>> memory_measurements(const BenchSizes& sizes);
/// Files of `directory`, which is left empty after each sample.
Result<std::vector<Measurement>> file_measurements(const std::string& directory,
                                                   const BenchSizes& sizes);

}  // namespace belay::tool
