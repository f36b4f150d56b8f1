// SPDX-License-Identifier: Apache-2.0
#include "poisson.hpp"

#include <cmath>

Poisson::Poisson(long size)
    : size_(static_cast<std::size_t>(size)), rows_(job::part_of(size, job::ranks(), job::rank())) {
  for (std::size_t j = 0; j < size_; ++j)
    for (std::size_t k = 0; k < size_; ++k) {
      const double angle =
          2 * M_PI * static_cast<double>(j * k % size_) / static_cast<double>(size);
      waves_.push_back(std::cos(angle) + std::sin(angle));
    }
}

std::vector<double> Poisson::potential_of(const std::vector<double>& charge) const {
  Field waves = hartley(transposed(hartley(charge)));
  const double scale = static_cast<double>(size_) * static_cast<double>(size_);
  for (std::size_t cell = 0; cell < waves.size(); ++cell) {
    const std::size_t row = static_cast<std::size_t>(rows_.first) + cell / size_;
    const std::size_t column = cell % size_;
    const double divisor = scale * (stiffness(row) + stiffness(column));
    waves[cell] = row + column == 0 ? 0 : waves[cell] / divisor;
  }
  return hartley(transposed(hartley(waves)));
}

double Poisson::stiffness(std::size_t wave) const {
  return 2 - 2 * std::cos(2 * M_PI * static_cast<double>(wave) / static_cast<double>(size_));
}

/// Of each row. Done twice it gives back the row, `size` times as large.
Poisson::Field Poisson::hartley(const Field& field) const {
  Field result(field.size(), 0.0);
  for (std::size_t start = 0; start < field.size(); start += size_)
    for (std::size_t j = 0; j < size_; ++j) {
      const double* const waves = waves_.data() + j * size_;
      for (std::size_t k = 0; k < size_; ++k) result[start + k] += field[start + j] * waves[k];
    }
  return result;
}

/// Columns become rows: any two ranks swap the rectangles where the rows of one cross the columns
/// of the other.
Poisson::Field Poisson::transposed(const Field& field) const {
  const auto rows = static_cast<std::size_t>(rows_.count);
  std::vector<job::Part> parts;
  std::vector<int> counts, starts;
  Field sent, arrived(field.size()), result(field.size());
  for (int rank = 0; rank < job::ranks(); ++rank) {
    const job::Part part = job::part_of(static_cast<long>(size_), job::ranks(), rank);
    parts.push_back(part);
    counts.push_back(static_cast<int>(part.count * rows_.count));
    starts.push_back(static_cast<int>(part.first * rows_.count));
    for (long column = part.first; column < part.first + part.count; ++column)
      for (std::size_t row = 0; row < rows; ++row)
        sent.push_back(field[row * size_ + static_cast<std::size_t>(column)]);
  }
  MPI_Alltoallv(sent.data(), counts.data(), starts.data(), MPI_DOUBLE, arrived.data(),
                counts.data(), starts.data(), MPI_DOUBLE, MPI_COMM_WORLD);
  std::size_t next = 0;
  for (const job::Part& part : parts)
    for (std::size_t row = 0; row < rows; ++row)
      for (long column = part.first; column < part.first + part.count; ++column)
        result[row * size_ + static_cast<std::size_t>(column)] = arrived[next++];
  return result;
}
