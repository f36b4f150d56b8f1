// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/store/npy.hpp"

#include "files/layout.hpp"

#include <fmt/format.h>

#include <vector>

namespace belay::tool {
namespace {

constexpr std::size_t kMostDimensions = 32;  ///< of NumPy before 2.0
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPreludeBytes = 10;  ///< magic, version, length of the header

struct Dtype {
  const char* name;
  std::uint32_t bytes;
};

/// By ElementKind; an empty name: no number.
constexpr Dtype kDtypes[] = {
    {"|u1", 1}, {"|i1", 1}, {"<i2", 2},   {"<i4", 4}, {"<i8", 8},
    {"|u1", 1}, {"<u2", 2}, {"<u4", 4},   {"<u8", 8}, {"<f4", 4},
    {"<f8", 8}, {"<c8", 8}, {"<c16", 16}, {"", 0},    {"|u1", 1},
};

std::string dtype_of(const ElementType& type) {
  const Dtype& known = kDtypes[static_cast<std::size_t>(type.kind)];
  if (known.bytes != type.bytes)
    return fmt::format("|{}{}", type.name == files::kFixedText ? 'S' : 'V', type.bytes);
  std::string name = known.name;
  if (type.name == files::kBigEndian && name.front() == '<') name.front() = '>';
  return name;
}

/// Elements of the shape; nothing if they are more than any memory has.
bool fits(const Shape& shape, std::uint64_t element_bytes, std::uint64_t bytes) {
  std::uint64_t product = element_bytes;
  for (const std::uint64_t extent : shape.extents())
    if (__builtin_mul_overflow(product, extent, &product)) return false;
  return product == bytes && shape.dimensions() <= kMostDimensions;
}

}  // namespace

NpyLayout npy_layout(const RegionRecord& region) {
  NpyLayout layout{.dtype = dtype_of(region.type), .shape = {}};
  if (fits(region.shape, region.type.bytes, region.bytes)) {
    layout.shape.assign(region.shape.extents().begin(), region.shape.extents().end());
    return layout;
  }
  layout.flattened = true;
  const bool whole = region.bytes % region.type.bytes == 0;
  if (!whole) layout.dtype = "|u1";
  layout.shape = {whole ? region.bytes / region.type.bytes : region.bytes};
  return layout;
}

std::string npy_header(const NpyLayout& layout) {
  const std::string comma = layout.shape.size() == 1 ? "," : "";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 layout.dtype, fmt::join(layout.shape, ", "), comma);
  const std::size_t unpadded = kPreludeBytes + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace belay::tool
