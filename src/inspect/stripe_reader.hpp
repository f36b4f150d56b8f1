// SPDX-License-Identifier: Apache-2.0
// Bytes of one part of a stripe, rebuilt from the files of the others.
#pragma once

#include <belay/result.hpp>

#include "fingerprint/hasher.hpp"
#include "inspect/stripes.hpp"
#include "redundancy/stripe_rebuild.hpp"
#include "store/segment_file.hpp"
#include "store/shard_file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace belay::inspect {

/// One thread.
class StripeReader {
 public:
  /// Opens all other files that may be needed, so that they stay readable. The view, whose stripe
  /// it is, must outlive this.
  static Result<std::unique_ptr<StripeReader>> make(const StoreView& view, const StripeView& stripe,
                                                    const redundancy::StripePart& wanted);
  StripeReader(const StripeReader&) = delete;
  StripeReader& operator=(const StripeReader&) = delete;

  /// Bytes of the wanted part, from others that were verified; its own file is never looked at.
  /// not_found if too few are left.
  Result<void> read(std::uint64_t offset, std::span<std::byte> into);
  /// The ranges of the wanted part that too few files are left for, as far as opening tells.
  std::vector<redundancy::Range> lost_ranges() const;

 private:
  struct Part {
    std::optional<store::SegmentFile> segment;
    std::unique_ptr<fingerprint::Hasher> hasher;
    std::optional<store::ShardFile> shard;
    std::optional<Error> lost;
  };
  using Place = std::pair<std::uint32_t, std::uint32_t>;

  StripeReader(const StripeView& stripe, const redundancy::StripePart& wanted)
      : stripe_(stripe), wanted_(wanted) {}
  std::vector<redundancy::StripeLayout::Piece> pieces() const;
  static Place place_of(const redundancy::StripePart& part) { return {part.place, part.shard}; }
  Part open(const StoreView& view, const redundancy::StripePart& part) const;
  Result<void> read_part(const redundancy::StripePart& part, std::uint64_t offset,
                         std::span<std::byte> into);

  const StripeView& stripe_;
  redundancy::StripePart wanted_;
  std::map<Place, Part> parts_;
  std::optional<redundancy::StripeRebuilder> rebuilder_;
};

}  // namespace belay::inspect
