// SPDX-License-Identifier: Apache-2.0
#include "store/carry.hpp"

#include <algorithm>
#include <numeric>

namespace belay::store {
namespace {

constexpr std::uint64_t kShareOfImage = 16;
// A segment's header, index and padding are neither live nor dead: without this much every small
// segment would look half dead.
constexpr std::uint64_t kOverheadBytes = 8192;

std::uint64_t payload_of(const SegmentRef& segment) {
  return segment.file_bytes - std::min(segment.file_bytes, kOverheadBytes);
}

std::vector<std::size_t> sorted_by(std::size_t count, const auto& less) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

/// Empties as many segments as are too many. The fewest live bytes go first, so each costs at most
/// the image divided by the number of segments.
void empty_surplus(CarryPlan& plan, const std::vector<std::uint64_t>& live, std::size_t most) {
  if (live.size() + 1 <= most) return;
  const auto order =
      sorted_by(live.size(), [&](std::size_t a, std::size_t b) { return live[a] < live[b]; });
  const std::size_t surplus = live.size() + 1 - most;
  for (std::size_t i = 0; i < surplus; ++i) plan[order[i]] = kCarryAll;
}

/// Frees the most bytes for each byte written: the smallest share of live bytes goes first.
void empty_deadest(CarryPlan& plan, const std::vector<SegmentRef>& segments,
                   const std::vector<std::uint64_t>& live, std::uint64_t budget) {
  const auto share = [&](std::size_t i) {
    const std::uint64_t payload = payload_of(segments[i]);
    return payload == 0 ? 1.0 : static_cast<double>(live[i]) / static_cast<double>(payload);
  };
  for (const std::size_t i :
       sorted_by(live.size(), [&](std::size_t a, std::size_t b) { return share(a) < share(b); })) {
    if (budget == 0) return;
    const std::uint64_t bytes = std::min(budget, live[i]);
    plan[i] = std::max(plan[i], bytes);
    budget -= bytes;
  }
}

}  // namespace

CarryPlan plan_carry(const std::vector<SegmentRef>& segments,
                     const std::vector<std::uint64_t>& live, const CarryRule& rule) {
  CarryPlan plan(segments.size(), 0);
  if (segments.empty()) return plan;
  empty_surplus(plan, live, rule.most_segments);
  std::uint64_t stored = 0;
  for (const SegmentRef& segment : segments) stored += payload_of(segment);
  const std::uint64_t alive = std::accumulate(live.begin(), live.end(), std::uint64_t{0});
  if (stored - std::min(stored, alive) > alive)
    empty_deadest(plan, segments, live, rule.image_bytes / kShareOfImage);
  return plan;
}

}  // namespace belay::store
