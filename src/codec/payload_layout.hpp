// SPDX-License-Identifier: Apache-2.0
// How the bytes of an extent are taken apart before they are compressed, and the header that says
// so: docs/format.md, "Codecs".
#pragma once

#include <belay/result.hpp>

#include "codec/codec.hpp"
#include "codec/residuals.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace belay::codec {

/// Which transforms a codec makes before it compresses.
enum class Transform { none, shuffle, delta1, delta2, delta3, lorenzo, context };

struct Layout {
  std::uint32_t record_bytes = 1;  ///< 1 to 255
  Differences differences;         ///< no strides: the bytes as they are
  bool by_context = false;         ///< residuals are what Contexts makes of the stride

  bool operator==(const Layout&) const = default;

  std::size_t header_bytes() const { return 4 + 8 * std::size_t{differences.strides}; }
  /// Planes are the bytes themselves.
  bool is_plain() const { return record_bytes == 1 && differences.strides == 0; }
};

/// The layout that suits these elements. Any description will do.
Layout layout_for(Transform transform, const Elements& elements, std::size_t raw_bytes);

/// REQUIRES: room for header_bytes().
void encode_layout(const Layout& layout, std::byte* to);
/// corruption: not the header of a layout that `transform` has for so many bytes.
Result<Layout> decode_layout(Transform transform, std::span<const std::byte> encoded,
                             std::size_t raw_bytes);

}  // namespace belay::codec
