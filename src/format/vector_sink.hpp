// SPDX-License-Identifier: Apache-2.0
// A sink that keeps what it is given.
#pragma once

#include "base/bytes.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace belay::format {

class VectorSink final : public ByteSink {
 public:
  explicit VectorSink(std::span<const std::byte> start = {}) : bytes_(start.begin(), start.end()) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    if (bytes.empty()) return {};
    const std::size_t end = bytes_.size();
    bytes_.resize(end + bytes.size());
    std::memcpy(bytes_.data() + end, bytes.data(), bytes.size());
    return {};
  }
  std::uint64_t offset() const override { return bytes_.size(); }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace belay::format
