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
  static constexpr std::size_t kLooks = 256;
  static constexpr std::size_t kCloseLooks = 1024;  ///< for what is nearly all quiet

  /// `elements` and `raw` outlive it. REQUIRES: raw is not empty, at most kCloseLooks.
  Field(const Elements& elements, Piece raw, std::size_t looks = kLooks);

  const Elements& elements() const { return elements_; }
  Piece raw() const { return raw_; }
  /// Bytes between which pieces are cut. Elements may be larger: larger than the extent, even.
  std::size_t record() const { return record_; }
  std::size_t looks() const { return looks_; }
  std::size_t louds() const { return louds_; }
  double loud_part() const { return double(louds_) / double(looks_); }
  double loud_bytes() const { return loud_part() * double(raw_.size()); }
  double quiet_bytes() const { return double(raw_.size()) - loud_bytes(); }
  bool is_loud_all_over() const { return louds_ > looks_ * 3 / 4; }

  /// About so many bytes, at most a quarter of all: pieces from loud places all over it, one after
  /// the other, since a field is not the same everywhere. In the workspace's sample().
  std::span<std::byte> sample(double bytes, Workspace& workspace) const;
  /// The same without what is quiet in it.
  Piece loud_sample(double bytes, Workspace& workspace) const;
  /// All that is not quiet, one after the other; empty: it is more than `most`.
  Piece all_loud(std::size_t most, Workspace& workspace) const;
  /// Some rows, or planes, from a loud place, so that differences across them show. Empty: there is
  /// but one dimension.
  Piece rows() const;

 private:
  static constexpr std::size_t kGroup = QuietGroups::kGroupBytes;
  /// So many bytes. REQUIRES: whole records, and no more than there are.
  Piece around(std::size_t place, std::size_t bytes) const;

  const Elements& elements_;
  const Piece raw_;
  const std::size_t record_;
  const QuietGroups groups_;
  const std::size_t looks_;
  std::array<std::size_t, kCloseLooks> loud_;
  std::size_t louds_ = 0;
};

}  // namespace belay::codec
