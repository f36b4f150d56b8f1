// SPDX-License-Identifier: Apache-2.0
// Matrices over GF(2^8) that multiply byte strings: the kernel of encoding and of rebuilding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace belay::redundancy {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

/// A matrix over GF(2^8) = GF(2)[x] / (x^8 + x^4 + x^3 + x^2 + 1). Strings may have any length and
/// any address; a first row of ones runs as XOR where addresses are multiples of 32, which is
/// several times faster. Immutable, so any number of threads may use one. Results depend on the
/// coefficients only, not on the processor.
class ByteMatrix {
 public:
  /// `coefficients` row by row. REQUIRES: rows * columns of them; neither is 0 or above 255.
  ByteMatrix(std::size_t rows, std::size_t columns, std::vector<std::uint8_t> coefficients);

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }

  /// outputs[r] = sum over c of coefficient(r, c) * inputs[c], byte by byte. An input that is
  /// shorter than the outputs counts as zeros beyond its end; one that is longer is cut.
  /// REQUIRES: one input for each column, one output for each row, outputs of equal length; no
  /// output overlaps any other string.
  void multiply(std::span<const Bytes> inputs, std::span<const MutableBytes> outputs) const;

  /// outputs[r] += coefficient(r, column) * input, byte by byte. Over all columns, in any order and
  /// from outputs of zeros, this comes to multiply(). REQUIRES: outputs as above, none shorter than
  /// `input`.
  void add(std::size_t column, Bytes input, std::span<const MutableBytes> outputs) const;

 private:
  void multiply_range(std::span<const std::size_t> active, std::span<const Bytes> inputs,
                      std::span<const MutableBytes> outputs, std::size_t from,
                      std::size_t until) const;

  std::size_t rows_;
  std::size_t columns_;
  bool starts_with_xor_;              ///< the first row is ones
  std::vector<std::uint8_t> tables_;  ///< ISA-L's products, 32 bytes for each coefficient
};

}  // namespace belay::redundancy
