// SPDX-License-Identifier: Apache-2.0
// What codecs would make of an extent, told from a small sample of it without a clock: most of it
// is how often each byte is there in a plane or among leads, and what a core takes for bytes of
// that kind.
#pragma once

#include "codec/field.hpp"
#include "codec/payload_layout.hpp"
#include "codec/workspace.hpp"

namespace belay::codec {

/// For each raw byte that is not quiet.
struct Appraisal {
  double part = 1;  ///< encoded bytes
  double ns = 0;    ///< to encode it
};

/// As planes, of which each is compressed.
struct PlaneAppraisals {
  Appraisal lz4;
  Appraisal zstd;         ///< that searches only what is mostly runs
  Appraisal zstd_search;  ///< that searches where it pays for what is there again
};

class Appraiser {
 public:
  /// `elements` and `sample` outlive it. REQUIRES: sample is not empty.
  Appraiser(const Elements& elements, Piece sample, Workspace& workspace)
      : elements_(elements), sample_(sample), workspace_(workspace) {}

  /// As leads and bits. REQUIRES: has_strides().
  Appraisal leads(Transform transform);
  PlaneAppraisals planes(Transform transform);
  /// As it is, by LZ4.
  Appraisal lz4();

  std::uint32_t strides(Transform transform) const { return layout(transform).differences.strides; }
  bool has_strides() const { return strides(Transform::delta1) > 0; }

 private:
  Layout layout(Transform transform) const {
    return layout_for(transform, elements_, sample_.size());
  }

  const Elements& elements_;
  const Piece sample_;
  Workspace& workspace_;
};

}  // namespace belay::codec
