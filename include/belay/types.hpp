// SPDX-License-Identifier: Apache-2.0
// Element types and shapes of regions.
#pragma once

#include <belay/api.h>

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace belay {

using Version = std::uint64_t;

/// What a region's elements are. The values are part of the file format.
enum class ElementKind : std::uint8_t {
  bytes = 0,
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  u8 = 5,
  u16 = 6,
  u32 = 7,
  u64 = 8,
  f32 = 9,
  f64 = 10,
  c64 = 11,   ///< std::complex<float>
  c128 = 12,  ///< std::complex<double>
  opaque = 13,
  serialized = 14,  ///< what a save function wrote
};

BELAY_API const char* name_of(ElementKind kind);

struct ElementType {
  ElementKind kind = ElementKind::bytes;
  std::uint32_t bytes = 1;  ///< size of one element
  std::string name;         ///< of an opaque type, where the user gave one

  bool operator==(const ElementType&) const = default;
};

/// Specialise it to name a type of your own in manifests and tools:
///   template <> struct belay::TypeName<Particle> { static constexpr const char* value =
///   "Particle"; };
/// The name is part of the region's type: restoring under another name is an error.
template <class T>
struct TypeName {
  static constexpr const char* value = "";
};

namespace detail {
template <class T>
constexpr ElementKind kind_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, std::byte>)
    return ElementKind::bytes;
  else if constexpr (std::is_same_v<U, std::complex<float>>)
    return ElementKind::c64;
  else if constexpr (std::is_same_v<U, std::complex<double>>)
    return ElementKind::c128;
  else if constexpr (std::is_same_v<U, float>)
    return ElementKind::f32;
  else if constexpr (std::is_same_v<U, double>)
    return ElementKind::f64;
  else if constexpr (std::is_same_v<U, bool>)
    return ElementKind::u8;
  else if constexpr (std::is_integral_v<U> && sizeof(U) <= 8) {
    constexpr int width = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
    constexpr auto first = std::is_signed_v<U> ? ElementKind::i8 : ElementKind::u8;
    return static_cast<ElementKind>(static_cast<int>(first) + width);
  } else
    return ElementKind::opaque;
}
}  // namespace detail

template <class T>
ElementType element_type() {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<std::remove_cv_t<T>, std::byte>)
    return element_type<std::underlying_type_t<T>>();
  else
    return {detail::kind_of<T>(), static_cast<std::uint32_t>(sizeof(T)),
            TypeName<std::remove_cv_t<T>>::value};
}

/// The extents of an array, slowest first. Takes any integers: `{rows, cols}`.
class Shape {
 public:
  Shape() = default;
  template <std::integral... N>
  requires(sizeof...(N) > 0) Shape(N... extents)
      : extents_{static_cast<std::uint64_t>(extents)...} {}
  explicit Shape(std::vector<std::uint64_t> extents) : extents_(std::move(extents)) {}

  bool empty() const { return extents_.empty(); }
  std::size_t dimensions() const { return extents_.size(); }
  std::span<const std::uint64_t> extents() const { return extents_; }
  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::uint64_t> extents_;
};

}  // namespace belay
