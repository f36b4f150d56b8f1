// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/store/npy.hpp"

#include "files/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace belay::tool {
namespace {

constexpr std::size_t kMostDimensions = 32;  ///< of NumPy before 2.0
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMostDtypeBytes = 8000;  ///< numpy.load() wants no longer headers
constexpr std::size_t kPreludeBytes = 10;      ///< magic, version, length of the header

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
  if (type.kind == ElementKind::opaque && type.name == files::kFloat16 && type.bytes == 2)
    return "<f2";
  const Dtype& known = kDtypes[static_cast<std::size_t>(type.kind)];
  if (known.bytes != type.bytes)
    return fmt::format("|{}{}", type.name == files::kFixedText ? 'S' : 'V', type.bytes);
  std::string name = known.name;
  if (type.name == files::kBigEndian && name.front() == '<') name.front() = '>';
  return name;
}

std::string tuple_of(const std::vector<std::uint64_t>& extents) {
  return fmt::format("({}{})", fmt::join(extents, ", "), extents.size() == 1 ? "," : "");
}

std::string literal(const std::string& dtype) {
  return dtype.starts_with('[') ? dtype : fmt::format("'{}'", dtype);
}

/// As NumPy writes them: gaps are fields without a name. Empty: NumPy or we cannot say it.
std::string dtype_of(const std::vector<files::Field>& fields, std::uint64_t bytes) {
  std::string list;
  std::uint64_t end = 0;
  const auto fill_gap = [&](std::uint64_t to) {
    if (to > end) list += fmt::format("('', '|V{}'), ", to - end);
  };
  for (const files::Field& field : fields) {
    const files::ArrayType& array = field.array;
    const std::string one =
        field.fields.empty() ? dtype_of(array.type) : dtype_of(field.fields, array.type.bytes);
    const bool plain = std::all_of(field.name.begin(), field.name.end(), [](char c) {
      return c >= ' ' && c <= '~' && c != '\'' && c != '\\';
    });
    if (one.empty() || !plain) return {};
    fill_gap(field.offset);
    list += fmt::format("('{}', {}", field.name, literal(one));
    if (!array.shape.empty())
      list += ", " + tuple_of({array.shape.extents().begin(), array.shape.extents().end()});
    list += "), ";
    end = field.offset + array.bytes().value_or(0);
  }
  fill_gap(bytes);
  if (list.size() > kMostDtypeBytes) return {};
  list.resize(list.size() - 2);
  return "[" + list + "]";
}

/// Elements of the shape; nothing if they are more than any memory has.
bool fits(const Shape& shape, std::uint64_t element_bytes, std::uint64_t bytes) {
  std::uint64_t product = element_bytes;
  for (const std::uint64_t extent : shape.extents())
    if (__builtin_mul_overflow(product, extent, &product)) return false;
  return product == bytes && shape.dimensions() <= kMostDimensions;
}

}  // namespace

NpyLayout npy_layout(const RegionRecord& region, const std::vector<files::Field>& fields) {
  NpyLayout layout{.dtype = dtype_of(region.type), .shape = {}};
  if (const auto compound = fields.empty() ? "" : dtype_of(fields, region.type.bytes);
      !compound.empty())
    layout.dtype = compound;
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
  std::string text = fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}",
                                 literal(layout.dtype), tuple_of(layout.shape));
  const std::size_t unpadded = kPreludeBytes + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace belay::tool
