// SPDX-License-Identifier: Apache-2.0
#include "codec/appraiser.hpp"

#include "codec/compressor.hpp"
#include "codec/leads.hpp"
#include "codec/planes.hpp"

#include <algorithm>

namespace belay::codec {
namespace {

// Nanoseconds for a byte on a core of about 2022. What a machine takes more or less for all of them
// makes no difference to who is faster.
constexpr double kShuffle = 0.12;
constexpr double kTerm = 0.03;  ///< for each term of a difference
constexpr double kLead = 0.42;  ///< taking numbers apart, for a byte of them
constexpr double kContext = 0.25;
constexpr double kConstant = 0.03;
constexpr double kStored = 0.14;
constexpr double kSymbols = 1.1;
constexpr double kQuietSymbols = 0.35;
constexpr double kSearch = 2.2;
constexpr double kQuietSearch = 0.25;

/// A plane that is no more than this part of itself is mostly runs.
constexpr double kQuietPlane = 0.12;
/// One that is more is noise.
constexpr double kNoise = 0.985;
/// Of the least by symbols, what a search may come to.
constexpr double kSearchPays = 0.98;

/// Of a plane, for each of its bytes.
Appraisal zstd_plane(std::span<const std::byte> plane, bool may_search, Workspace& workspace) {
  const double counted = coded_bytes(plane) / double(plane.size());
  if (counted == 0) return {0, kConstant};
  if (counted > kNoise && !may_search) return {1, kStored};
  if (counted > kQuietPlane && !may_search) return {counted, kSymbols};
  const auto to = workspace.trial(plane.size());
  const std::size_t bytes = Zstd(workspace, Zstd::Effort::fast).compress(plane, to);
  const double searched = bytes == 0 ? 1 : double(bytes) / double(plane.size());
  if (searched < counted * kSearchPays)
    return {searched, searched < kQuietPlane ? kQuietSearch : kSearch};
  if (counted > kNoise) return {1, kStored};
  return {counted, counted < kQuietPlane ? kQuietSymbols : kSymbols};
}

Appraisal lz4_plane(std::span<const std::byte> plane, Workspace& workspace) {
  const auto to = workspace.trial(plane.size());
  const std::size_t bytes = Lz4(workspace).compress(plane, to);
  const double part = bytes == 0 ? 1 : double(bytes) / double(plane.size());
  // What has no repetitions is skipped, and what has many is copied: it is what lies between that
  // takes time.
  if (part > kNoise) return {1, 0.1};
  return {part, std::min(0.06 + 3 * part, 1.3)};
}

double terms_ns(const Layout& layout) {
  return kTerm * double((std::size_t{1} << layout.differences.strides) - 1);
}

/// The mean of all planes.
template <class Appraise>
Appraisal of_planes(const Layout& layout, Piece sample, Workspace& workspace, Appraise appraise) {
  Appraisal sum = {0, 0};
  for_planes(layout, sample, workspace, [&](std::span<const std::byte> plane) {
    const Appraisal one = appraise(plane);
    sum.part += one.part;
    sum.ns += one.ns;
    return true;
  });
  const double planes = layout.record_bytes;
  const double transform = layout.is_plain() ? 0 : kShuffle + terms_ns(layout);
  return {sum.part / planes, sum.ns / planes + transform};
}

}  // namespace

Appraisal Appraiser::leads(Transform transform) {
  const Layout form = layout(transform);
  const double part = guess_leads(form, sample_, workspace_) / double(sample_.size());
  const double number = form.differences.number_bytes;
  const double coding = kSymbols / number;
  const double contexts = form.by_context ? kContext * 8 / number : 0;
  return {part, kLead * 8 / number + terms_ns(form) + coding + contexts};
}

Appraisal Appraiser::lz4_planes(Transform transform) {
  return of_planes(layout(transform), sample_, workspace_,
                   [&](auto plane) { return lz4_plane(plane, workspace_); });
}

Appraisal Appraiser::zstd_planes(Transform transform, bool may_search) {
  return of_planes(layout(transform), sample_, workspace_,
                   [&](auto plane) { return zstd_plane(plane, may_search, workspace_); });
}

}  // namespace belay::codec
