// SPDX-License-Identifier: Apache-2.0
// How far numbers in two arrays lie apart.
#pragma once

#include <belay/types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

namespace belay::inspect {

/// Elements of which all bits are equal do not differ, NaNs included. Of the others, those where
/// either is NaN (for complex numbers: either part) have no distance: they count as `nan` and
/// neither for the largest nor for the mean. Infinity is infinitely far from anything else.
struct Difference {
  std::uint64_t elements = 0;   ///< compared
  std::uint64_t differing = 0;  ///< not equal bit by bit
  std::uint64_t nan = 0;        ///< of these, without a distance
  /// The largest distance, exact for integers; complex numbers: its absolute value.
  std::variant<std::uint64_t, double> largest = std::uint64_t{0};
  std::optional<std::uint64_t> largest_at;  ///< index of the first of the largest
  double mean = 0;                          ///< over all elements but those of `nan`
};

/// The size of one number of this kind; 0 if it is not one of numbers.
std::uint32_t numeric_bytes(ElementKind kind);

/// Is fed pieces of two arrays of the same numeric type. Parts that are known to be equal need not
/// be fed.
class DifferenceMeter {
 public:
  /// REQUIRES: numeric_bytes(kind) > 0; `elements` are compared in all.
  DifferenceMeter(ElementKind kind, std::uint64_t elements);
  /// Whole elements, the first of which has the index `first`. REQUIRES: equal sizes.
  void add(std::span<const std::byte> a, std::span<const std::byte> b, std::uint64_t first);
  Difference finish() const;

 private:
  template <class T>
  void add_as(std::span<const std::byte> a, std::span<const std::byte> b, std::uint64_t first);
  template <class T>
  void add_one(const T& a, const T& b, std::uint64_t index);

  ElementKind kind_;
  Difference difference_;
  unsigned __int128 whole_sum_ = 0;  ///< of integers: exact
  long double sum_ = 0;
};

}  // namespace belay::inspect
