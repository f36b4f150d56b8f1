// SPDX-License-Identifier: Apache-2.0
// Memory for direct I/O, and copies that do not disturb the caches.
#pragma once

#include <belay/result.hpp>

#include "os/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace belay::os {

/// Page-aligned, faulted-in memory, zeros at first. Move-only.
class AlignedMemory {
 public:
  AlignedMemory() = default;
  /// `bytes` is rounded up to whole pages. no_space if the system has none.
  static Result<AlignedMemory> allocate(std::size_t bytes);
  /// The same, but the system gets all of it back when it goes, however little it is, and no page
  /// has memory before it is touched.
  static Result<AlignedMemory> map(std::size_t bytes);
  /// So many bytes of a file that several processes map, from `offset` on: what one writes the
  /// others see. Both must be whole pages. The file grows if it must. no_space, io.
  static Result<AlignedMemory> map_shared(int descriptor, std::uint64_t offset, std::size_t bytes);
  AlignedMemory(AlignedMemory&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), mapped_(std::exchange(other.mapped_, false)) {}
  AlignedMemory& operator=(AlignedMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~AlignedMemory();

  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::span<std::byte> bytes_;
  bool mapped_ = false;  ///< else from the heap
};

/// A file in memory that has no name: it is shared by giving its descriptor to others.
Result<Descriptor> make_shared_file();

/// memcpy for data that will not be read again soon: where the processor can, it bypasses the cache
/// and so saves reading the destination first (twice as fast on cold data).
void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes);

/// Gives every page of this shared or private mapping memory, and keeps what is written there.
/// no_space if the file behind it, or the system, has none; without this, the first write would end
/// the process. Kernels before 5.14 cannot tell, and end it here.
Result<void> populate(std::span<std::byte> bytes);

}  // namespace belay::os
