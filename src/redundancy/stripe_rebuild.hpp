// SPDX-License-Identifier: Apache-2.0
// Bytes of lost parts of a stripe from what is left: planned, and carried out over any reader.
#pragma once

#include "redundancy/erasure_code.hpp"
#include "redundancy/skewed_rows.hpp"
#include "redundancy/stripe_layout.hpp"

#include <belay/result.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace belay::redundancy {

/// How a range of a part is rebuilt: read the sources, and multiply them by
/// ErasureCode::rebuild_matrix({position}, known).
struct RebuildStep {
  struct Source {
    StripePart part;
    Range range;  ///< may be shorter than the target: zeros follow. Length 0: nothing to read

    bool operator==(const Source&) const = default;
  };

  std::uint32_t codeword = 0;
  std::uint32_t position = 0;  ///< of the target
  Range target;                ///< bytes of the wanted part
  std::vector<std::uint32_t> known;
  std::vector<Source> sources;  ///< one for each of `known`
};

/// The steps that rebuild `range` of `wanted`, front to back, when the nodes at the places `lost`
/// are gone. `wanted` itself counts as gone anyhow. Where a lost member has no bytes it is known to
/// be zeros, so that at times more than m losses are survived. invalid_argument if a place, part or
/// range is not in the layout; not_found, with the places that are lost, if too few are left.
Result<std::vector<RebuildStep>> plan_rebuild(const StripeLayout& layout, const StripePart& wanted,
                                              const Range& range,
                                              std::span<const std::uint32_t> lost);

/// Rebuilds ranges of any part, in memory that does not grow with the range, and reads only what
/// the range needs: k times its length at most.
class StripeRebuilder {
 public:
  /// Reads bytes of a part that is not lost, all or an error. It must verify them, since wrong
  /// bytes would rebuild to wrong bytes. After io, corruption or not_found the same range is taken
  /// from other parts, if enough are left; any other error ends the rebuild.
  using Reader =
      std::function<Result<void>(const StripePart& part, std::uint64_t offset, MutableBytes into)>;

  static constexpr std::size_t kDefaultMemory = std::size_t{2} << 20;

  /// `memory_bytes` bounds the buffers (4 KiB for each member of the scheme at least): what is read
  /// at once. The layout must outlive this. invalid_argument if a place in `lost` is not in it;
  /// no_space if there is no memory.
  static Result<StripeRebuilder> make(const StripeLayout& layout, std::vector<std::uint32_t> lost,
                                      Reader read, std::size_t memory_bytes = kDefaultMemory);

  /// `into` = the bytes of `wanted` from `offset` on. Errors as plan_rebuild(), and the reader's.
  Result<void> rebuild(const StripePart& wanted, std::uint64_t offset, MutableBytes into);

 private:
  StripeRebuilder(const StripeLayout& layout, std::vector<std::uint32_t> lost, Reader read,
                  ErasureCode code, SkewedRows rows);
  Result<void> rebuild_piece(const StripePart& wanted, const Range& range, MutableBytes into);
  /// The position of a source that cannot be read, or none: all are in rows_.
  Result<std::optional<std::size_t>> read_sources(const RebuildStep& step);
  Result<void> multiply(const RebuildStep& step, MutableBytes into);

  const StripeLayout* layout_;
  std::vector<std::uint32_t> lost_;
  Reader read_;
  ErasureCode code_;
  SkewedRows rows_;
  std::optional<Error> damage_;  ///< the first that the reader told of, for the message

  // The matrix of the last step, which mostly serves the next one too.
  std::uint32_t matrix_position_ = 0;
  std::vector<std::uint32_t> matrix_known_;
  std::optional<ByteMatrix> matrix_;
};

}  // namespace belay::redundancy
