// SPDX-License-Identifier: Apache-2.0
// Little-endian fields, one after the other.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "base/try.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belay::format {

static_assert(std::endian::native == std::endian::little,
              "fields are copied as they lie in memory: the format is little-endian");

/// Of files that a single node can read, and of all run records.
inline constexpr std::uint32_t kFirstFormat = 1;
/// Of files that speak of copies, of blocks elsewhere, or of blocks that are absent.
inline constexpr std::uint32_t kCopiesFormat = 2;
inline constexpr std::uint32_t kCodecsFormat = 3;
inline constexpr std::size_t kMagicBytes = 8;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Appends fields to a buffer that it does not own.
class WireWriter {
 public:
  explicit WireWriter(std::vector<std::byte>& buffer) : buffer_(&buffer) {}

  template <std::integral T>
  void field(T value) {
    bytes(std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  void pair(std::uint64_t low, std::uint64_t high) {
    field(low);
    field(high);
  }
  void text(std::string_view text) { bytes(std::as_bytes(std::span(text.data(), text.size()))); }
  void zeros(std::size_t count) { buffer_->resize(buffer_->size() + count); }
  void bytes(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const std::size_t end = buffer_->size();
    buffer_->resize(end + bytes.size());
    std::memcpy(buffer_->data() + end, bytes.data(), bytes.size());
  }
  void start(std::string_view magic, std::uint32_t format) {
    text(magic);
    field(format);
  }
  /// The length of a name. REQUIRES: it is not longer than kMaxNameBytes.
  void length(std::string_view name) {
    assert(name.size() <= kMaxNameBytes);
    field(static_cast<std::uint8_t>(name.size()));
  }

 private:
  std::vector<std::byte>* buffer_;
};

/// Takes fields from bytes that may be hostile. Reading past the end yields zeros and sets
/// failed().
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> source) : source_(source), left_(source) {}

  bool failed() const { return failed_; }
  std::size_t remaining() const { return left_.size(); }
  std::size_t offset() const { return source_.size() - left_.size(); }

  template <std::integral T>
  T field() {
    T value{};
    const auto from = bytes(sizeof(T));
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof(T));
    return value;
  }
  std::string text(std::size_t count) {
    const auto from = bytes(count);
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  /// Empty if there are not so many left.
  std::span<const std::byte> bytes(std::size_t count) {
    if (count > left_.size()) {
      failed_ = true;
      left_ = {};
      return {};
    }
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  /// Skips `count` bytes; false unless all of them are there and zero.
  bool zeros(std::size_t count) {
    const auto skipped = bytes(count);
    return skipped.size() == count &&
           std::all_of(skipped.begin(), skipped.end(),
                       [](std::byte byte) { return byte == std::byte{}; });
  }

 private:
  std::span<const std::byte> source_;
  std::span<const std::byte> left_;
  bool failed_ = false;
};

/// Takes magic and format version and judges both, before anything else is believed. The version.
Result<std::uint32_t> get_start(WireReader& reader, std::string_view magic);

// What every file says about its origin: store, seed, run, version, rank, ranks (48 bytes).
void put_origin(WireWriter& writer, const Origin& origin);
Origin get_origin(WireReader& reader);

/// What headers of segments and manifests have in common must make sense.
Result<void> check_header(Code code, const Origin& origin, HashKind hash,
                          std::uint32_t block_bytes);

/// The failure of a checksum over `what`.
Unexpected damaged(std::string_view what);

}  // namespace belay::format
