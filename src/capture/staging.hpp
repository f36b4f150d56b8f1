// SPDX-License-Identifier: Apache-2.0
// Bounded memory between capture and writing: blocks are gathered here, packed, in buffers that
// direct I/O can write as they are.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "os/memory.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
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
  std::size_t number = 0;  ///< in the order of their making
  os::AlignedMemory memory;
  std::size_t used = 0;
  std::vector<StagedBlock> blocks;
  /// What these are pieces of, by the number that they have there, if somebody wants to know.
  std::vector<std::pair<std::uint32_t, RegionRecord>> regions;

  std::size_t room() const { return memory.size() - used; }
};

/// Thread-safe: capture acquires, the worker releases.
class Staging {
 public:
  /// Gives the buffer of this number its memory.
  using Allocate = std::function<Result<os::AlignedMemory>(std::size_t number, std::size_t bytes)>;

  /// At least two buffers, so that one fills while another is written. Without `allocate` their
  /// memory is this process's own.
  Staging(std::size_t limit_bytes, std::uint32_t block_bytes, Allocate allocate = {});

  /// An empty buffer; nullptr if all are in use and the limit is reached.
  Result<StagingBuffer*> try_acquire();
  void release(StagingBuffer* buffer);
  /// So many buffers may be acquired, if the system has the memory.
  std::size_t available() const;
  /// Allows more, if `limit_bytes` is more than before.
  void grow(std::size_t limit_bytes);

  std::size_t buffer_bytes() const { return buffer_bytes_; }
  /// What all buffers together may have.
  std::size_t limit_bytes() const;
  std::size_t allocated_bytes() const;

 private:
  mutable std::mutex mutex_;
  std::size_t buffer_bytes_;
  std::size_t most_buffers_;
  Allocate allocate_;
  std::vector<std::unique_ptr<StagingBuffer>> buffers_;
  std::vector<StagingBuffer*> free_;
};

}  // namespace belay::capture
