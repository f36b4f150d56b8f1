// SPDX-License-Identifier: Apache-2.0
#include "capture/staging.hpp"

#include "base/try.hpp"

#include <algorithm>

namespace belay::capture {
namespace {

// Direct writes of 8 MiB reach the disk's speed; smaller ones do not, larger ones only wait longer.
constexpr std::size_t kBestBufferBytes = std::size_t{8} << 20;
constexpr std::size_t kLeastBuffers = 2;
constexpr std::size_t kPageBytes = 4096;

std::size_t choose_buffer_bytes(std::size_t limit_bytes, std::uint32_t block_bytes) {
  // Besides a block, a buffer may start with the rest of its predecessor's last page or a header.
  const std::size_t least = (block_bytes / kPageBytes + 3) * kPageBytes;
  const std::size_t wanted = std::min(kBestBufferBytes, limit_bytes / 4 / kPageBytes * kPageBytes);
  return std::max(least, wanted);
}

}  // namespace

Staging::Staging(std::size_t limit_bytes, std::uint32_t block_bytes, Allocate allocate)
    : buffer_bytes_(choose_buffer_bytes(limit_bytes, block_bytes)),
      most_buffers_(std::max(kLeastBuffers, limit_bytes / buffer_bytes_)),
      allocate_(std::move(allocate)) {}

Result<StagingBuffer*> Staging::try_acquire() {
  const std::lock_guard guard(mutex_);
  if (!free_.empty()) {
    StagingBuffer* buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  if (buffers_.size() >= most_buffers_) return nullptr;
  const std::size_t number = buffers_.size();
  auto memory =
      allocate_ ? allocate_(number, buffer_bytes_) : os::AlignedMemory::allocate(buffer_bytes_);
  if (!memory) {
    // With fewer buffers than allowed capture is slower, not wrong.
    if (buffers_.size() >= kLeastBuffers) return nullptr;
    return Unexpected(std::move(memory).error());
  }
  buffers_.push_back(std::make_unique<StagingBuffer>());
  buffers_.back()->number = number;
  buffers_.back()->memory = *std::move(memory);
  return buffers_.back().get();
}

void Staging::release(StagingBuffer* buffer) {
  buffer->used = 0;
  buffer->blocks.clear();
  buffer->regions.clear();
  const std::lock_guard guard(mutex_);
  free_.push_back(buffer);
}

std::size_t Staging::available() const {
  const std::lock_guard guard(mutex_);
  return free_.size() + (most_buffers_ - buffers_.size());
}

void Staging::grow(std::size_t limit_bytes) {
  const std::lock_guard guard(mutex_);
  most_buffers_ = std::max(most_buffers_, limit_bytes / buffer_bytes_);
}

std::size_t Staging::limit_bytes() const {
  const std::lock_guard guard(mutex_);
  return most_buffers_ * buffer_bytes_;
}

std::size_t Staging::allocated_bytes() const {
  const std::lock_guard guard(mutex_);
  std::size_t bytes = 0;
  for (const auto& buffer : buffers_)
    bytes += buffer->memory.size() + buffer->blocks.capacity() * sizeof(StagedBlock);
  return bytes;
}

}  // namespace belay::capture
