// SPDX-License-Identifier: Apache-2.0
// An extent seen from afar: where something goes on in it, and samples from there.
#pragma once

#include "codec/codec.hpp"
#include "codec/quiet_groups.hpp"
#include "codec/workspace.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace belay::codec {

using Piece = std::span<const std::byte>;

/// Looks at some places of an extent, and knows which of them are not quiet: loud.
class Field {
 public:
  /// `elements` and `raw` outlive it. REQUIRES: raw is not empty.
  Field(const Elements& elements, Piece raw);

  const Elements& elements() const { return elements_; }
  Piece raw() const { return raw_; }
  /// Bytes between which pieces are cut. Elements may be larger: larger than the extent, even.
  std::size_t record() const { return record_; }
  double loud_part() const { return double(louds_) / kLooks; }
  double loud_bytes() const { return loud_part() * double(raw_.size()); }
  double quiet_bytes() const { return double(raw_.size()) - loud_bytes(); }
  bool is_loud_all_over() const { return louds_ > kLooks * 3 / 4; }

  /// About so many bytes, at most a quarter of all: pieces from loud places all over it, one after
  /// the other, since a field is not the same everywhere. They are large enough for some rows or
  /// planes, so that differences across them show. In the workspace's sample().
  std::span<std::byte> sample(double bytes, Workspace& workspace) const;
  /// The same without what is quiet in it.
  Piece loud_sample(double bytes, Workspace& workspace) const;
  /// All that is not quiet, one after the other; empty: it is more than `most`.
  Piece all_loud(std::size_t most, Workspace& workspace) const;

 private:
  static constexpr std::size_t kGroup = QuietGroups::kGroupBytes;
  static constexpr std::size_t kLooks = 256;

  std::size_t least_piece() const;

  const Elements& elements_;
  const Piece raw_;
  const std::size_t record_;
  const QuietGroups groups_;
  std::array<std::size_t, kLooks> loud_{};
  std::size_t louds_ = 0;
};

}  // namespace belay::codec
