// SPDX-License-Identifier: Apache-2.0
#include "os/memory.hpp"

#include "os/paged_vector.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace belay::os {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Less than this comes from the heap: a mapping, and a fault for each of its pages, would cost more
// than to fill it with zeros.
constexpr std::size_t kWorthMapping = std::size_t{512} << 10;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers do not know

#if defined(__x86_64__)
constexpr std::size_t kLineBytes = 64;

__attribute__((target("avx"))) void stream_lines(std::byte* to, const std::byte* from,
                                                 std::size_t lines) {
  for (; lines > 0; --lines, to += kLineBytes, from += kLineBytes) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), first);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 32), second);
  }
  _mm_sfence();
}

bool can_stream() {
  static const bool can = __builtin_cpu_supports("avx");
  return can;
}
#endif

void* take_from_heap(std::size_t bytes) {
  void* const place = std::aligned_alloc(kPageBytes, bytes);
  if (place != nullptr) std::memset(place, 0, bytes);
  return place;
}

void* map_pages(std::size_t bytes) {
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (bytes % kHugePageBytes == 0) ::madvise(mapped, bytes, MADV_HUGEPAGE);  // only an advice
  for (std::size_t at = 0; at < bytes; at += kPageBytes)
    static_cast<std::byte*>(mapped)[at] = std::byte{0};
  return mapped;
}

}  // namespace

void* take_pages(std::size_t bytes) {
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return mapped;
}

void give_pages(void* pages, std::size_t bytes) noexcept { ::munmap(pages, bytes); }

Result<AlignedMemory> AlignedMemory::allocate(std::size_t bytes) {
  const std::size_t unit = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  void* const place = rounded < kWorthMapping ? take_from_heap(rounded) : map_pages(rounded);
  if (place == nullptr)
    return Unexpected(Error(Code::no_space, "staging: no memory for " + std::to_string(rounded) +
                                                " bytes: " + std::strerror(errno) +
                                                " (lower `staging` or free memory)"));
  AlignedMemory memory;
  memory.bytes_ = {static_cast<std::byte*>(place), rounded};
  memory.mapped_ = rounded >= kWorthMapping;
  return memory;
}

Result<AlignedMemory> AlignedMemory::map(std::size_t bytes) {
  const std::size_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  AlignedMemory memory;
  try {
    memory.bytes_ = {static_cast<std::byte*>(take_pages(rounded)), rounded};
  } catch (const std::bad_alloc&) {
    return Unexpected(Error(Code::no_space, "no memory for " + std::to_string(rounded) + " bytes"));
  }
  memory.mapped_ = true;
  return memory;
}

Result<AlignedMemory> AlignedMemory::map_shared(int descriptor, std::uint64_t offset,
                                                std::size_t bytes) {
  const auto refuse = [&](const char* call, int error) {
    return Unexpected(Error(error == ENOSPC || error == ENOMEM ? Code::no_space : Code::io,
                            std::string("staging: ") + call + " " + std::to_string(bytes) +
                                " shared bytes: " + std::strerror(error) +
                                " (lower `staging` or free memory)"));
  };
  // Without its pages the first write to the mapping would end the process.
  if (retry([&] {
        return ::fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
      }) != 0)
    return refuse("fallocate", errno);
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                        static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) return refuse("mmap", errno);
  AlignedMemory memory;
  memory.bytes_ = {static_cast<std::byte*>(mapped), bytes};
  memory.mapped_ = true;
  return memory;
}

Result<Descriptor> make_shared_file() {
  Descriptor made(::memfd_create("belay-staging", MFD_CLOEXEC));
  if (!made.valid())
    return Unexpected(
        Error(Code::io, std::string("staging: memfd_create: ") + std::strerror(errno)));
  return made;
}

AlignedMemory::~AlignedMemory() {
  if (mapped_)
    ::munmap(bytes_.data(), bytes_.size());
  else
    std::free(bytes_.data());
}

Result<void> populate(std::span<std::byte> bytes) {
  if (bytes.empty()) return {};
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) / kPageBytes * kPageBytes;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  void* const pages = reinterpret_cast<void*>(first);
  for (;;) {
    if (::madvise(pages, end - first, kPopulateWrite) == 0) return {};
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) break;
    return Unexpected(Error(Code::no_space, "no memory for " + std::to_string(bytes.size()) +
                                                " bytes: " + std::strerror(errno)));
  }
  for (std::size_t at = 0; at < bytes.size(); at += kPageBytes) {
    auto* byte = reinterpret_cast<volatile std::byte*>(&bytes[at]);
    *byte = *byte;
  }
  auto* last = reinterpret_cast<volatile std::byte*>(&bytes.back());
  *last = *last;
  return {};
}

void copy_past_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  constexpr std::size_t kWorthwhile = 1024;
  if (bytes >= kWorthwhile && can_stream()) {
    const std::size_t head =
        (kLineBytes - reinterpret_cast<std::uintptr_t>(to) % kLineBytes) % kLineBytes;
    std::memcpy(to, from, head);
    const std::size_t lines = (bytes - head) / kLineBytes;
    stream_lines(to + head, from + head, lines);
    const std::size_t done = head + lines * kLineBytes;
    std::memcpy(to + done, from + done, bytes - done);
    return;
  }
#endif
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace belay::os
