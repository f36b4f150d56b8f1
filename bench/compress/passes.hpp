// SPDX-License-Identifier: Apache-2.0
// The compressors of Islam et al., "McrEngine" (SC 2012), which are no codecs of Belay: FPC for
// doubles, fpzip for floats, an LZ for all else, and gzip over what comes out of them.
#pragma once

#include "compress/checkpoints.hpp"

#include <span>
#include <string>

namespace belay::bench {

/// Bytes of one type, as a pass takes them.
struct Stream {
  ElementType type;
  Shape shape;  ///< empty: not known
  Bytes bytes;

  bool operator==(const Stream&) const = default;
};

/// Stateless. Errors end the program.
class Pass {
 public:
  virtual ~Pass() = default;
  virtual const char* name() const = 0;
  virtual bool takes(const ElementType& type) const = 0;
  virtual Bytes encode(const Stream& raw) const = 0;
  /// `raw` has everything but the contents of its bytes.
  virtual void decode(std::span<const std::byte> encoded, Stream& raw) const = 0;
};

const Pass& fpc();    ///< 64-bit words, with tables that fit the second-level cache
const Pass& fpzip();  ///< doubles and floats, in as many dimensions as are known
const Pass& lz();     ///< LZ4, for the paper's QuickLZ at its fastest
const Pass& gzip();   ///< level 6

/// The paper's choice by type; with `fpzip_for_doubles`, one that is slower and can be smaller.
const Pass& first_pass_for(const ElementType& type, bool fpzip_for_doubles);

}  // namespace belay::bench
