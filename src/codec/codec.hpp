// SPDX-License-Identifier: Apache-2.0
// Making extents smaller: a codec turns the bytes of an extent into fewer and back. All pass
// tests/conformance/codec_conformance.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace belay::codec {

/// What an encoder may assume about bytes, so that it can do better. A wrong description costs
/// ratio, never data: what decode() needs of it is in the encoded bytes.
struct Elements {
  enum class Number : std::uint8_t { none, integer, floating };

  Number number = Number::none;
  std::uint32_t bytes = 1;  ///< of one number, or of a record that is none
  std::uint32_t parts = 1;  ///< numbers in an element: 2 if it is complex
  bool big_endian = false;
  /// Shape of the array that the bytes are a piece of, slowest first, in elements. The piece may
  /// begin anywhere. Arrays of more dimensions have the slowest ones folded.
  std::uint32_t dimensions = 0;
  std::array<std::uint64_t, 4> shape{};

  bool operator==(const Elements&) const = default;
};

/// Numbers of a type with this name lie with their highest byte first.
inline constexpr std::string_view kBigEndian = "big-endian";
Elements elements_of(const ElementType& type, const Shape& shape);

/// Memory and contexts of libraries, used again and again by one thread.
class Workspace;

/// Thread-safe. Like any container, it throws std::bad_alloc where memory ends.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual CodecId id() const = 0;
  virtual std::string_view name() const = 0;  ///< as options give it

  /// Fills the front of `to`, and says how much of it. Unset: it does not fit.
  virtual std::optional<std::size_t> encode(const Elements& elements,
                                            std::span<const std::byte> raw, std::span<std::byte> to,
                                            Workspace& workspace) const = 0;
  /// Fills all of `raw`, or says what is wrong with the bytes: corruption. Takes memory in
  /// proportion to `raw`, whatever they say.
  virtual Result<void> decode(std::span<const std::byte> encoded, std::span<std::byte> raw,
                              Workspace& workspace) const = 0;
};

/// The registry: every codec that a build knows, in the order of their ids.
std::span<const Codec* const> all_codecs();
/// nullptr: unknown, or read from a file of a later format.
const Codec* codec_of(CodecId id);
const Codec* codec_named(std::string_view name);

}  // namespace belay::codec
