// SPDX-License-Identifier: Apache-2.0
// The bytes of one region of a file, in one piece of memory for as long as capture needs them.
#pragma once

#include <belay/region.hpp>
#include <belay/result.hpp>

#include "files/file_bytes.hpp"
#include "files/layout.hpp"

#include <span>
#include <vector>

namespace belay::files {

/// Maps what lies in one piece and is large, and reads all else into memory that is used again. A
/// mapped file that is cut short kills by SIGBUS.
class RegionBytes {
 public:
  RegionBytes() = default;
  RegionBytes(const RegionBytes&) = delete;
  RegionBytes& operator=(const RegionBytes&) = delete;
  ~RegionBytes() { release(); }

  /// Valid until the next call.
  Result<std::span<const std::byte>> get(const SourceBytes& file, std::span<const Range> ranges);
  void release();

 private:
  bool map(const SourceBytes& file, const Range& range);

  std::vector<std::byte> buffer_;
  std::span<std::byte> mapped_;  ///< whole pages
  std::span<const std::byte> bytes_;
};

/// A region that is captured once and never restored.
class BytesAccess final : public RegionAccess {
 public:
  BytesAccess(std::span<const std::byte> bytes, ElementType type, Shape shape)
      : bytes_(bytes), type_(std::move(type)), shape_(std::move(shape)) {}
  ElementType type() const override { return type_; }
  Shape shape() const override { return shape_; }
  Result<std::span<const std::byte>> view() override { return bytes_; }
  Result<std::span<std::byte>> room(std::uint64_t bytes) override;

 private:
  std::span<const std::byte> bytes_;
  ElementType type_;
  Shape shape_;
};

}  // namespace belay::files
