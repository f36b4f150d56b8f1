// SPDX-License-Identifier: Apache-2.0
#include "redundancy/stripe_rebuild.hpp"

#include "base/try.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace belay::redundancy {
namespace {

constexpr std::size_t kLeastRowBytes = 4096;
constexpr std::size_t kMostRowBytes = std::size_t{1} << 20;

using Flags = std::vector<bool>;  ///< by position of a codeword: is it lost?

Result<void> check_range(const StripeLayout& layout, const StripePart& wanted, const Range& range) {
  if (wanted.place >= layout.nodes() ||
      (!wanted.is_member() && wanted.shard >= layout.scheme().shards))
    return fail(Code::invalid_argument, "rebuild: {} is not in a stripe of {} nodes with {}",
                name_of(wanted), layout.nodes(), name_of(layout.scheme()));
  const std::uint64_t bytes = layout.bytes_of(wanted);
  if (range.offset <= bytes && range.length <= bytes - range.offset) return {};
  return fail(Code::invalid_argument, "rebuild: {} has {} bytes, not {} at {}", name_of(wanted),
              bytes, range.length, range.offset);
}

Result<void> check_places(const StripeLayout& layout, std::span<const std::uint32_t> lost) {
  for (const std::uint32_t place : lost)
    if (place >= layout.nodes())
      return fail(Code::invalid_argument, "rebuild: node {} is not in a set of {} nodes", place,
                  layout.nodes());
  return {};
}

Flags lost_positions(const StripeLayout& layout, std::uint32_t codeword,
                     std::span<const std::uint32_t> lost) {
  Flags flags(layout.scheme().width());
  for (std::uint32_t position = 0; position < flags.size(); ++position) {
    const std::uint32_t place = layout.part_at(codeword, position).place;
    flags[position] = std::ranges::find(lost, place) != lost.end();
  }
  return flags;
}

Unexpected too_few_left(const StripeLayout& layout, const StripePart& wanted, const Range& range,
                        std::uint32_t codeword, const Flags& lost) {
  std::vector<std::uint32_t> places;
  for (std::uint32_t position = 0; position < lost.size(); ++position)
    if (lost[position]) places.push_back(layout.part_at(codeword, position).place);
  std::ranges::sort(places);
  return fail(
      Code::not_found,
      "rebuild: {}, bytes {} to {}: lost or damaged on nodes {} of the set, and {} rebuilds "
      "{} at most; bring one of them back, or use another version or tier",
      name_of(wanted), range.offset, range.end(), fmt::join(places, ", "), name_of(layout.scheme()),
      layout.scheme().shards);
}

/// The step for the first bytes of `range`, which lies in one piece of `wanted`. It ends where a
/// lost member does, since from there on that member is known to be zeros.
Result<RebuildStep> plan_step(const StripeLayout& layout, const StripePart& wanted,
                              const StripeLayout::Piece& piece, const Range& range, Flags lost) {
  const std::uint32_t k = layout.scheme().members, width = layout.scheme().width();
  const std::uint64_t from = range.offset - piece.range.offset;
  std::uint64_t until = from + range.length;
  lost[piece.position] = true;
  RebuildStep step{piece.codeword, piece.position, range, {}, {}};
  std::size_t unknown = 0;
  for (std::uint32_t position = 0; position < k; ++position) {
    const std::uint64_t end = layout.range_at(piece.codeword, position).length;
    if (!lost[position] || end <= from) {
      step.known.push_back(position);
    } else {
      ++unknown;
      until = std::min(until, end);
    }
  }
  for (std::uint32_t position = k; position < width && unknown > 0; ++position)
    if (!lost[position]) {
      step.known.push_back(position);
      --unknown;
    }
  if (unknown > 0) return too_few_left(layout, wanted, range, piece.codeword, lost);

  step.target.length = until - from;
  for (const std::uint32_t position : step.known) {
    const Range whole = layout.range_at(piece.codeword, position);
    const std::uint64_t begin = std::min(from, whole.length), end = std::min(until, whole.length);
    step.sources.push_back(
        {layout.part_at(piece.codeword, position), {whole.offset + begin, end - begin}});
  }
  return step;
}

Range first_of(const Range& range, std::uint64_t end, std::uint64_t most) {
  return {range.offset, std::min({range.length, end - range.offset, most})};
}

Range rest_of(const Range& range, std::uint64_t done) {
  return {range.offset + done, range.length - done};
}

bool is_damage(Code code) {
  return code == Code::io || code == Code::corruption || code == Code::not_found;
}

}  // namespace

Result<std::vector<RebuildStep>> plan_rebuild(const StripeLayout& layout, const StripePart& wanted,
                                              const Range& range,
                                              std::span<const std::uint32_t> lost) {
  BELAY_TRY(check_range(layout, wanted, range));
  BELAY_TRY(check_places(layout, lost));
  std::vector<RebuildStep> steps;
  for (Range rest = range; rest.length > 0; rest = rest_of(rest, steps.back().target.length)) {
    const auto piece = layout.piece_with(wanted, rest.offset);
    BELAY_ASSIGN(auto step,
                 plan_step(layout, wanted, piece, first_of(rest, piece.range.end(), rest.length),
                           lost_positions(layout, piece.codeword, lost)));
    steps.push_back(std::move(step));
  }
  return steps;
}

StripeRebuilder::StripeRebuilder(const StripeLayout& layout, std::vector<std::uint32_t> lost,
                                 Reader read, ErasureCode code, SkewedRows rows)
    : layout_(&layout),
      lost_(std::move(lost)),
      read_(std::move(read)),
      code_(std::move(code)),
      rows_(std::move(rows)) {}

Result<StripeRebuilder> StripeRebuilder::make(const StripeLayout& layout,
                                              std::vector<std::uint32_t> lost, Reader read,
                                              std::size_t memory_bytes) {
  BELAY_TRY(check_places(layout, lost));
  BELAY_ASSIGN(auto code, ErasureCode::make(layout.scheme()));
  const std::size_t members = layout.scheme().members;
  const std::size_t row_bytes = std::clamp(memory_bytes / members / kLeastRowBytes * kLeastRowBytes,
                                           kLeastRowBytes, kMostRowBytes);
  BELAY_ASSIGN(auto rows, within("rebuild", SkewedRows::allocate(members, row_bytes)));
  return StripeRebuilder(layout, std::move(lost), std::move(read), std::move(code),
                         std::move(rows));
}

Result<void> StripeRebuilder::rebuild(const StripePart& wanted, std::uint64_t offset,
                                      MutableBytes into) {
  BELAY_TRY(check_range(*layout_, wanted, {offset, into.size()}));
  damage_.reset();
  while (!into.empty()) {
    const Range range = first_of(
        {offset, into.size()}, layout_->piece_with(wanted, offset).range.end(), rows_.row_bytes());
    BELAY_TRY(rebuild_piece(wanted, range, into.first(range.length)));
    into = into.subspan(range.length);
    offset += range.length;
  }
  return {};
}

Result<void> StripeRebuilder::rebuild_piece(const StripePart& wanted, const Range& range,
                                            MutableBytes into) {
  const auto piece = layout_->piece_with(wanted, range.offset);
  Flags lost = lost_positions(*layout_, piece.codeword, lost_);
  for (Range rest = range; rest.length > 0;) {
    const auto step = plan_step(*layout_, wanted, piece, rest, lost);
    if (!step && damage_)
      return fail(Code::not_found, "{} (first damage: {})", step.error().message(),
                  damage_->message());
    if (!step) return Unexpected(step.error());
    BELAY_ASSIGN(const auto damaged, read_sources(*step));
    if (damaged) {
      lost[*damaged] = true;
      continue;
    }
    BELAY_TRY(multiply(*step, into.first(step->target.length)));
    into = into.subspan(step->target.length);
    rest = rest_of(rest, step->target.length);
  }
  return {};
}

Result<std::optional<std::size_t>> StripeRebuilder::read_sources(const RebuildStep& step) {
  for (std::size_t i = 0; i < step.sources.size(); ++i) {
    const auto& [part, range] = step.sources[i];
    if (range.length == 0) continue;
    auto got = within(name_of(part), read_(part, range.offset, rows_[i].first(range.length)));
    if (got) continue;
    if (!is_damage(got.error().code())) return Unexpected(std::move(got).error());
    if (!damage_) damage_ = std::move(got).error();
    return std::optional<std::size_t>(step.known[i]);
  }
  return std::optional<std::size_t>();
}

Result<void> StripeRebuilder::multiply(const RebuildStep& step, MutableBytes into) {
  if (!matrix_ || matrix_position_ != step.position || matrix_known_ != step.known) {
    BELAY_ASSIGN(matrix_, code_.rebuild_matrix(std::span(&step.position, 1), step.known));
    matrix_position_ = step.position;
    matrix_known_ = step.known;
  }
  std::vector<Bytes> inputs;
  for (std::size_t i = 0; i < step.sources.size(); ++i)
    inputs.push_back(rows_[i].first(step.sources[i].range.length));
  matrix_->multiply(inputs, std::span(&into, 1));
  return {};
}

}  // namespace belay::redundancy
