// SPDX-License-Identifier: Apache-2.0
// The records of an extent as planes of bytes, each compressed by itself: docs/format.md, "Planes".
#pragma once

#include "codec/compressor.hpp"
#include "codec/payload_layout.hpp"

#include <functional>

namespace belay::codec {

/// What grows at the front of a buffer of fixed size.
struct Filling {
  std::span<std::byte> to;
  std::size_t filled = 0;

  std::span<std::byte> room() const { return to.subspan(filled); }
  /// False: there is no room for it.
  bool append(std::span<const std::byte> bytes);
};

/// Appends one plane: its stored size, and it as it is, the one byte that it consists of, or
/// compressed. False: it does not fit. REQUIRES: it is not empty.
bool append_plane(Compressor& compressor, std::span<const std::byte> plane, Filling& filling);
/// Takes a plane from the front of `encoded`; false: it is damaged.
bool take_plane(Compressor& compressor, std::span<const std::byte>& encoded,
                std::span<std::byte> plane);

/// Bytes that an entropy coder needs that knows how often each byte is there.
double coded_bytes(std::span<const std::byte> plane);

/// Visits the planes of all whole records of `raw`, until one visit is false, which is returned.
bool for_planes(const Layout& layout, std::span<const std::byte> raw, Workspace& workspace,
                const std::function<bool(std::span<const std::byte> plane)>& visit);

/// All whole records of `raw`.
bool append_planes(const Layout& layout, std::span<const std::byte> raw, Filling& filling,
                   Workspace& workspace, Compressor& compressor);
bool take_planes(const Layout& layout, std::span<const std::byte>& encoded,
                 std::span<std::byte> raw, Workspace& workspace, Compressor& compressor);

}  // namespace belay::codec
