// SPDX-License-Identifier: Apache-2.0
// Bounded memory between capture and writing: blocks are gathered here, packed, in buffers that
// direct I/O can write as they are.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "os/memory.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace belay::capture {

/// A block as it was copied; `region` indexes the manifest's regions.
struct StagedBlock {
  Fingerprint fingerprint;
  std::uint32_t offset = 0;  ///< in the buffer
  std::uint32_t length = 0;
  std::uint32_t region = 0;
};

struct StagingBuffer {
  os::AlignedMemory memory;
  std::size_t used = 0;
  std::vector<StagedBlock> blocks;

  std::size_t room() const { return memory.size() - used; }
};

/// Thread-safe: capture acquires, the worker releases.
class Staging {
 public:
  /// At least two buffers, so that one fills while another is written.
  Staging(std::size_t limit_bytes, std::uint32_t block_bytes);

  /// An empty buffer; nullptr if all are in use and the limit is reached.
  Result<StagingBuffer*> try_acquire();
  void release(StagingBuffer* buffer);
  /// So many buffers may be acquired, if the system has the memory.
  std::size_t available() const;
  /// Allows more, if `limit_bytes` is more than before.
  void grow(std::size_t limit_bytes);

  std::size_t buffer_bytes() const { return buffer_bytes_; }
  std::size_t allocated_bytes() const;

 private:
  mutable std::mutex mutex_;
  std::size_t buffer_bytes_;
  std::size_t most_buffers_;
  std::vector<std::unique_ptr<StagingBuffer>> buffers_;
  std::vector<StagingBuffer*> free_;
};

}  // namespace belay::capture
