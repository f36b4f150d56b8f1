// SPDX-License-Identifier: Apache-2.0
// Buffers that are read side by side.
#pragma once

#include "os/memory.hpp"
#include "redundancy/byte_matrix.hpp"

#include <cstddef>
#include <utility>

namespace belay::redundancy {

/// Rows of equal length, each beginning at a cache line. Rows at distances of a power of two would
/// compete for the same lines of the caches, which halves the speed of the kernels; so each is
/// moved on by 69 lines, an odd number, against the one before.
class SkewedRows {
 public:
  /// no_space if there is no memory.
  static Result<SkewedRows> allocate(std::size_t rows, std::size_t row_bytes) {
    const std::size_t stride = (row_bytes + kPageBytes - 1) / kPageBytes * kPageBytes + kSkewBytes;
    auto memory = os::AlignedMemory::allocate(rows * stride);
    if (!memory) return Unexpected(std::move(memory).error());
    return SkewedRows(*std::move(memory), row_bytes, stride);
  }

  SkewedRows() = default;  ///< no rows
  std::size_t row_bytes() const { return row_bytes_; }
  MutableBytes operator[](std::size_t row) {
    return memory_.bytes().subspan(row * stride_, row_bytes_);
  }
  Bytes operator[](std::size_t row) const {
    return memory_.bytes().subspan(row * stride_, row_bytes_);
  }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kSkewBytes = std::size_t{69} * 64;

  SkewedRows(os::AlignedMemory memory, std::size_t row_bytes, std::size_t stride)
      : memory_(std::move(memory)), row_bytes_(row_bytes), stride_(stride) {}

  os::AlignedMemory memory_;
  std::size_t row_bytes_ = 0;
  std::size_t stride_ = 0;
};

}  // namespace belay::redundancy
