// SPDX-License-Identifier: Apache-2.0
// Reads every block of a segment and compares it with its fingerprint: large reads ahead on one
// thread, fingerprints on all.
#pragma once

#include <belay/result.hpp>

#include "os/memory.hpp"
#include "os/parallel.hpp"
#include "store/segment_file.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace belay::inspect {

/// Its buffers serve for one segment after the other, so that memory does not grow with the store.
class SegmentAudit {
 public:
  using Advance = std::function<void(std::uint64_t bytes)>;

  static Result<SegmentAudit> make(unsigned threads);

  /// The blocks whose content is not what their fingerprint names, in the order of the file.
  /// `advance` is told of bytes as they are done. unsupported: the hash is not known here.
  /// REQUIRES: segment.sort_blocks() was not called.
  Result<std::vector<store::StoredBlock>> find_bad_blocks(store::SegmentFile& segment,
                                                          const Advance& advance);

 private:
  struct Chunk;
  SegmentAudit() = default;

  std::vector<os::AlignedMemory> buffers_;
  std::unique_ptr<os::Parallel> parallel_;
};

}  // namespace belay::inspect
