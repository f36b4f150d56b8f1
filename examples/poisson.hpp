// SPDX-License-Identifier: Apache-2.0
// The potential of charges on a square mesh that repeats itself in both directions.
#pragma once

#include "job.hpp"

#include <cstddef>
#include <vector>

/// The ranks share the square by rows: this one has job::part_of(size, ranks, rank).
class Poisson {
 public:
  explicit Poisson(long size);

  /// Collective. Solves the five-point Laplace equation exactly but for rounding: the waves in the
  /// charge, found by Hartley transforms along both axes, are each divided by what the Laplacian
  /// makes of them. The mean of the charge does not count.
  std::vector<double> potential_of(const std::vector<double>& charge) const;

 private:
  using Field = std::vector<double>;  ///< this rank's rows

  double stiffness(std::size_t wave) const;
  Field hartley(const Field& field) const;
  Field transposed(const Field& field) const;

  std::size_t size_;
  job::Part rows_;
  std::vector<double> waves_;  ///< cos + sin of every wave at every cell, size x size
};
