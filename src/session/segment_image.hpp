// SPDX-License-Identifier: Apache-2.0
// What a rank gives to its stripe: its segment as it will be written, without the gap of natural
// blocks, from wherever its parts lie.
#pragma once

#include <belay/result.hpp>

#include "format/segment.hpp"
#include "session/copy_exchange.hpp"
#include "session/version_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace belay::session {

class SegmentImage {
 public:
  /// The blocks must stay as they are while the image is used.
  static Result<SegmentImage> make(const format::SegmentHeader& header, const VersionPlan& plan,
                                   std::span<const BroughtBlock> brought);

  std::uint64_t bytes() const { return ends_.back(); }
  /// A range of it. REQUIRES: it is in bounds.
  std::vector<std::span<const std::byte>> pieces(std::uint64_t offset, std::uint64_t length) const;

 private:
  SegmentImage() = default;
  void add(std::span<const std::byte> part);

  std::vector<std::byte> header_;
  std::vector<std::byte> end_;  ///< index, padding, footer
  std::vector<std::span<const std::byte>> parts_;
  std::vector<std::uint64_t> ends_;  ///< of the parts
};

}  // namespace belay::session
