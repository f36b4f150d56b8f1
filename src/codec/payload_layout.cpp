// SPDX-License-Identifier: Apache-2.0
#include "codec/payload_layout.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <cstring>

namespace belay::codec {
namespace {

constexpr std::uint32_t kMostRecordBytes = 255;
/// Rows as short as this are vectors of a few components, not a dimension of a field.
constexpr std::uint64_t kMostComponents = 8;

bool is_width(std::uint32_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

/// What a record is shuffled by.
std::uint32_t record_for(const Elements& elements) {
  const std::uint64_t bytes = std::uint64_t{elements.bytes} * std::max(elements.parts, 1u);
  if (bytes >= 1 && bytes <= kMostRecordBytes) return static_cast<std::uint32_t>(bytes);
  for (const std::uint32_t width : {8u, 4u, 2u})
    if (bytes > 0 && bytes % width == 0) return width;
  return 1;
}

/// Strides that a difference can have: of elements, rows, planes and so on, ascending.
Differences strides_of(const Elements& elements, std::uint64_t numbers) {
  Differences all{.number_bytes = elements.bytes, .big_endian = elements.big_endian};
  std::uint64_t stride = std::max(elements.parts, 1u);
  std::size_t dimensions = std::min<std::size_t>(elements.dimensions, elements.shape.size());
  if (dimensions > 1 && elements.shape[dimensions - 1] <= kMostComponents)
    stride *= std::max<std::uint64_t>(elements.shape[--dimensions], 1);
  for (; stride < numbers && all.strides < kMostStrides; --dimensions) {
    if (all.strides == 0 || stride > all.stride[all.strides - 1])
      all.stride[all.strides++] = stride;
    if (dimensions <= 1) break;
    const std::uint64_t extent = std::max<std::uint64_t>(elements.shape[dimensions - 1], 1);
    if (extent > numbers / stride) break;
    stride *= extent;
  }
  return all;
}

/// How often a transform takes the difference with the same stride.
std::uint32_t repetitions(Transform transform) {
  switch (transform) {
    case Transform::delta1:
    case Transform::context:
      return 1;
    case Transform::delta2:
      return 2;
    case Transform::delta3:
      return 3;
    default:
      return 0;
  }
}

bool strides_fit(Transform transform, const Differences& differences) {
  const std::span stride = std::span(differences.stride).first(differences.strides);
  const auto out_of_place = [&](std::uint64_t a, std::uint64_t b) {
    return transform == Transform::lorenzo ? a >= b : a != b;
  };
  return std::adjacent_find(stride.begin(), stride.end(), out_of_place) == stride.end() &&
         (transform == Transform::lorenzo || stride.empty() ||
          stride.size() == repetitions(transform));
}

bool is_sound(Transform transform, const Layout& layout, std::size_t raw_bytes) {
  const Differences& differences = layout.differences;
  if (layout.record_bytes == 0 || (transform == Transform::none && layout.record_bytes != 1))
    return false;
  if (differences.strides == 0) return differences == Differences{};
  if (!is_width(differences.number_bytes) || layout.record_bytes % differences.number_bytes != 0)
    return false;
  const std::uint64_t numbers =
      raw_bytes / layout.record_bytes * (layout.record_bytes / differences.number_bytes);
  for (std::size_t i = 0; i < differences.strides; ++i)
    if (differences.stride[i] == 0 || differences.stride[i] >= numbers) return false;
  return strides_fit(transform, differences);
}

}  // namespace

Layout layout_for(Transform transform, const Elements& elements, std::size_t raw_bytes) {
  Layout layout;
  if (transform == Transform::none) return layout;
  layout.record_bytes = record_for(elements);
  if (transform == Transform::shuffle || elements.number == Elements::Number::none ||
      !is_width(elements.bytes) || layout.record_bytes % elements.bytes != 0)
    return layout;
  const std::uint64_t records = raw_bytes / layout.record_bytes;
  Differences strides = strides_of(elements, records * (layout.record_bytes / elements.bytes));
  if (strides.strides == 0) return layout;
  if (transform != Transform::lorenzo) {
    const std::uint64_t nearest = strides.stride[0];
    strides.strides = repetitions(transform);
    strides.stride = {};
    std::fill_n(strides.stride.begin(), strides.strides, nearest);
  }
  layout.differences = strides;
  layout.by_context = transform == Transform::context;
  return layout;
}

void encode_layout(const Layout& layout, std::byte* to) {
  const Differences& differences = layout.differences;
  to[0] = static_cast<std::byte>(layout.record_bytes);
  to[1] = static_cast<std::byte>(differences.number_bytes);
  to[2] = static_cast<std::byte>(differences.big_endian);
  to[3] = static_cast<std::byte>(differences.strides);
  std::memcpy(to + 4, differences.stride.data(), 8 * std::size_t{differences.strides});
}

Result<Layout> decode_layout(Transform transform, std::span<const std::byte> encoded,
                             std::size_t raw_bytes) {
  if (encoded.size() < 4) return fail(Code::corruption, "the header is cut short");
  Layout layout;
  Differences& differences = layout.differences;
  layout.record_bytes = std::to_integer<std::uint32_t>(encoded[0]);
  differences.number_bytes = std::to_integer<std::uint32_t>(encoded[1]);
  differences.big_endian = encoded[2] == std::byte{1};
  differences.strides = std::to_integer<std::uint32_t>(encoded[3]);
  if (encoded[2] > std::byte{1} || differences.strides > kMostStrides)
    return fail(Code::corruption, "the header is damaged");
  if (encoded.size() < layout.header_bytes())
    return fail(Code::corruption, "the header is cut short");
  std::memcpy(differences.stride.data(), encoded.data() + 4, 8 * std::size_t{differences.strides});
  layout.by_context = transform == Transform::context && differences.strides > 0;
  if (!is_sound(transform, layout, raw_bytes))
    return fail(Code::corruption, "the header is not that of {} raw bytes", raw_bytes);
  return layout;
}

}  // namespace belay::codec
