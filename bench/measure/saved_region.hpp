// SPDX-License-Identifier: Apache-2.0
// A region of whatever type its application gave it, as bytes that a benchmark owns.
#pragma once

#include <belay/belay.hpp>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace belay::bench {

using Bytes = std::vector<std::byte>;
using Arrays = std::map<std::string, Bytes>;  ///< the contents of regions by name

/// REQUIRES: `bytes` outlives the session.
class SavedRegion final : public RegionAccess {
 public:
  SavedRegion(ElementType type, Bytes& bytes) : type_(std::move(type)), bytes_(&bytes) {}
  ElementType type() const override { return type_; }
  Shape shape() const override { return Shape(bytes_->size() / type_.bytes); }
  Result<std::span<const std::byte>> view() override { return std::span<const std::byte>(*bytes_); }
  Result<std::span<std::byte>> room(std::uint64_t bytes) override {
    bytes_->resize(bytes);
    return std::span<std::byte>(*bytes_);
  }

 private:
  ElementType type_;
  Bytes* bytes_;
};

inline std::uint64_t total_bytes(const Arrays& arrays) {
  std::uint64_t total = 0;
  for (const auto& [name, bytes] : arrays) total += bytes.size();
  return total;
}

}  // namespace belay::bench
