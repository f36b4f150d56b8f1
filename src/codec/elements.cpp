// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.hpp"

#include <algorithm>

namespace belay::codec {
namespace {

using Number = Elements::Number;

struct Numbers {
  Number number = Number::none;
  std::uint32_t parts = 1;
};

Numbers numbers_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::i8:
    case ElementKind::i16:
    case ElementKind::i32:
    case ElementKind::i64:
    case ElementKind::u8:
    case ElementKind::u16:
    case ElementKind::u32:
    case ElementKind::u64:
      return {Number::integer, 1};
    case ElementKind::f32:
    case ElementKind::f64:
      return {Number::floating, 1};
    case ElementKind::c64:
    case ElementKind::c128:
      return {Number::floating, 2};
    case ElementKind::bytes:
    case ElementKind::opaque:
    case ElementKind::serialized:
      break;
  }
  return {};
}

}  // namespace

Elements elements_of(const ElementType& type, const Shape& shape) {
  const auto [number, parts] = numbers_of(type.kind);
  Elements elements{.number = number, .bytes = std::max(type.bytes / parts, 1u), .parts = parts};
  elements.big_endian = number != Number::none && type.name == kBigEndian;
  const auto extents = shape.extents();
  elements.dimensions = static_cast<std::uint32_t>(std::min(extents.size(), elements.shape.size()));
  const std::size_t folded = extents.size() - elements.dimensions;
  std::copy(extents.begin() + static_cast<std::ptrdiff_t>(folded), extents.end(),
            elements.shape.begin());
  for (const std::uint64_t extent : extents.first(folded))
    if (__builtin_mul_overflow(elements.shape[0], extent, &elements.shape[0]))
      elements.shape[0] = ~std::uint64_t{0};
  return elements;
}

}  // namespace belay::codec
