// SPDX-License-Identifier: Apache-2.0
// The encode stage: staged blocks become the extents of a segment.
#pragma once

#include <belay/result.hpp>

#include "capture/staging.hpp"
#include "os/memory.hpp"
#include "store/extent_writer.hpp"

#include <vector>

namespace belay::session {

/// What regions are compared by, so that neighbours share an extent and a codec: the name, or what
/// follows the last colon in it.
std::string_view variable_of(std::string_view region);

/// Of one segment. One thread.
class SegmentEncoding {
 public:
  /// Both must outlive it.
  SegmentEncoding(codec::Chooser& chooser, os::Clock& clock) : writer_(chooser, clock) {}

  /// Memory of its own for the file's writer.
  Result<void> lend_to(store::FileWriter& file);
  Result<void> write(store::FileWriter& file, const capture::StagingBuffer& buffer);
  const std::vector<format::Extent>& extents() const { return writer_.extents(); }
  std::uint64_t encoded_bytes() const { return writer_.encoded_bytes(); }
  /// Bytes per second, if enough was written to tell.
  std::optional<double> bandwidth() const {
    return store::bandwidth_of(writer_.encoded_bytes(), writer_.write_ns());
  }

 private:
  store::ExtentWriter writer_;
  os::AlignedMemory memory_;
};

}  // namespace belay::session
