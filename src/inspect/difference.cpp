// SPDX-License-Identifier: Apache-2.0
#include "inspect/difference.hpp"

#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

namespace belay::inspect {
namespace {

template <class T>
bool has_nan(const T& value) {
  return std::isnan(value);
}
template <class T>
bool has_nan(const std::complex<T>& value) {
  return std::isnan(value.real()) || std::isnan(value.imag());
}

double distance(double a, double b) { return std::abs(a - b); }

/// In double precision, as the figure is given; infinities of the same sign do not differ.
template <class T>
double distance(const std::complex<T>& a, const std::complex<T>& b) {
  const auto part = [](double x, double y) { return x == y ? 0.0 : x - y; };
  return std::hypot(part(a.real(), b.real()), part(a.imag(), b.imag()));
}

}  // namespace

std::uint32_t numeric_bytes(ElementKind kind) {
  constexpr std::uint32_t kBytes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16, 0, 0};
  return kBytes[static_cast<std::size_t>(kind)];
}

DifferenceMeter::DifferenceMeter(ElementKind kind, std::uint64_t elements) : kind_(kind) {
  difference_.elements = elements;
  if (kind >= ElementKind::f32) difference_.largest = 0.0;
}

template <class T>
void DifferenceMeter::add_one(const T& a, const T& b, std::uint64_t index) {
  ++difference_.differing;
  const auto note = [&](auto apart) {
    auto& largest = std::get<decltype(apart)>(difference_.largest);
    if (difference_.largest_at && apart <= largest) return;
    largest = apart;
    difference_.largest_at = index;
  };
  if constexpr (std::is_integral_v<T>) {
    const std::uint64_t apart = a > b
                                    ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)
                                    : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
    whole_sum_ += apart;
    note(apart);
  } else {
    if (has_nan(a) || has_nan(b)) {
      ++difference_.nan;
      return;
    }
    const double apart = distance(a, b);
    sum_ += apart;
    note(apart);
  }
}

template <class T>
void DifferenceMeter::add_as(std::span<const std::byte> a, std::span<const std::byte> b,
                             std::uint64_t first) {
  const std::size_t count = a.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* x = a.data() + i * sizeof(T);
    const std::byte* y = b.data() + i * sizeof(T);
    if (std::memcmp(x, y, sizeof(T)) == 0) continue;
    T left;
    T right;
    std::memcpy(&left, x, sizeof(T));
    std::memcpy(&right, y, sizeof(T));
    add_one(left, right, first + i);
  }
}

void DifferenceMeter::add(std::span<const std::byte> a, std::span<const std::byte> b,
                          std::uint64_t first) {
  switch (kind_) {
    case ElementKind::i8:
      return add_as<std::int8_t>(a, b, first);
    case ElementKind::i16:
      return add_as<std::int16_t>(a, b, first);
    case ElementKind::i32:
      return add_as<std::int32_t>(a, b, first);
    case ElementKind::i64:
      return add_as<std::int64_t>(a, b, first);
    case ElementKind::u8:
      return add_as<std::uint8_t>(a, b, first);
    case ElementKind::u16:
      return add_as<std::uint16_t>(a, b, first);
    case ElementKind::u32:
      return add_as<std::uint32_t>(a, b, first);
    case ElementKind::u64:
      return add_as<std::uint64_t>(a, b, first);
    case ElementKind::f32:
      return add_as<float>(a, b, first);
    case ElementKind::f64:
      return add_as<double>(a, b, first);
    case ElementKind::c64:
      return add_as<std::complex<float>>(a, b, first);
    case ElementKind::c128:
      return add_as<std::complex<double>>(a, b, first);
    case ElementKind::bytes:
    case ElementKind::opaque:
    case ElementKind::serialized:
      break;
  }
}

Difference DifferenceMeter::finish() const {
  Difference result = difference_;
  const auto count = static_cast<long double>(result.elements - result.nan);
  const long double sum =
      std::holds_alternative<double>(result.largest) ? sum_ : static_cast<long double>(whole_sum_);
  result.mean = count > 0 ? static_cast<double>(sum / count) : 0;
  return result;
}

}  // namespace belay::inspect
