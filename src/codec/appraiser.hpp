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

class Appraiser {
 public:
  /// `elements` and `sample` outlive it. REQUIRES: sample is not empty.
  Appraiser(const Elements& elements, Piece sample, Workspace& workspace)
      : elements_(elements), sample_(sample), workspace_(workspace) {}

  /// As leads and bits. REQUIRES: has_strides().
  Appraisal leads(Transform transform);
  /// As planes, by LZ4 or by Zstandard, which only `may_search` for what is there again.
  Appraisal lz4_planes(Transform transform);
  Appraisal zstd_planes(Transform transform, bool may_search);

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
