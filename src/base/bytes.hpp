// SPDX-License-Identifier: Apache-2.0
// Where encoded bytes go.
#pragma once

#include <belay/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace belay {

/// Takes bytes in order. Encoders write to it so that nothing large is built in memory first.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Result<void> append(std::span<const std::byte> bytes) = 0;
  virtual std::uint64_t offset() const = 0;  ///< bytes appended so far
};

}  // namespace belay
