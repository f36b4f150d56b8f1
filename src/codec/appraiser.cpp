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

Appraisal& operator+=(Appraisal& sum, const Appraisal& one) {
  sum.part += one.part;
  sum.ns += one.ns;
  return sum;
}

/// What LZ4 makes of a plane, in the workspace's trial(); empty: no less than it.
Piece searched(Piece plane, Workspace& workspace) {
  const auto to = workspace.trial(plane.size());
  return to.first(Lz4(workspace).compress(plane, to));
}

/// For each byte of a plane of which LZ4 left this.
Appraisal by_lz4(Piece plane, Piece left) {
  const double part = left.empty() ? 1 : double(left.size()) / double(plane.size());
  // What has no repetitions is skipped, and what has many is copied: it is what lies between that
  // takes time.
  if (part > kNoise) return {1, 0.1};
  return {part, std::min(0.06 + 3 * part, 1.3)};
}

/// Zstandard, where it finds about what LZ4 does, and codes what is left by how often it is there.
PlaneAppraisals appraise(Piece plane, Workspace& workspace) {
  const double counted = coded_bytes(plane) / double(plane.size());
  const Appraisal constant = {0, kConstant};
  if (counted == 0) return {constant, constant, constant};
  const Piece left = searched(plane, workspace);
  const double found = left.empty() ? 1 : coded_bytes(left) / double(plane.size());
  const bool is_quiet = counted < kQuietPlane;
  Appraisal symbols = {counted, is_quiet ? kQuietSymbols : kSymbols};
  if (counted > kNoise) symbols = {1, kStored};
  const Appraisal search = found < counted * kSearchPays
                               ? Appraisal{found, found < kQuietPlane ? kQuietSearch : kSearch}
                               : symbols;
  return {by_lz4(plane, left), is_quiet ? search : symbols, search};
}

double terms_ns(const Layout& layout) {
  return kTerm * double((std::size_t{1} << layout.differences.strides) - 1);
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

Appraisal Appraiser::lz4() { return by_lz4(sample_, searched(sample_, workspace_)); }

PlaneAppraisals Appraiser::planes(Transform transform) {
  const Layout form = layout(transform);
  PlaneAppraisals sum = {{0, 0}, {0, 0}, {0, 0}};
  for_planes(form, sample_, workspace_, [&](Piece plane) {
    const PlaneAppraisals one = appraise(plane, workspace_);
    sum.lz4 += one.lz4;
    sum.zstd += one.zstd;
    sum.zstd_search += one.zstd_search;
    return true;
  });
  const double planes = form.record_bytes;
  const double transform_ns = form.is_plain() ? 0 : kShuffle + terms_ns(form);
  const auto mean = [&](const Appraisal& one) {
    return Appraisal{one.part / planes, one.ns / planes + transform_ns};
  };
  return {mean(sum.lz4), mean(sum.zstd), mean(sum.zstd_search)};
}

}  // namespace belay::codec
