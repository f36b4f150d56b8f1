// SPDX-License-Identifier: Apache-2.0
#include "files/region_bytes.hpp"

#include "base/try.hpp"

#include <sys/mman.h>

namespace belay::files {
namespace {

constexpr std::uint64_t kLeastMappedBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

}  // namespace

bool RegionBytes::map(const SourceBytes& file, const Range& range) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t before = range.offset % page;
  void* const memory = ::mmap(nullptr, range.length + before, PROT_READ, MAP_PRIVATE,
                              file.descriptor(), static_cast<off_t>(range.offset - before));
  if (memory == MAP_FAILED) return false;
  mapped_ = {static_cast<std::byte*>(memory), range.length + before};
  (void)::madvise(memory, mapped_.size(), MADV_SEQUENTIAL);  // a hint
  bytes_ = mapped_.subspan(before);
  return true;
}

Result<std::span<const std::byte>> RegionBytes::get(const SourceBytes& file,
                                                    std::span<const Range> ranges) {
  release();
  if (ranges.size() == 1 && ranges[0].length >= kLeastMappedBytes && map(file, ranges[0]))
    return bytes_;
  return within_memory([&]() -> Result<std::span<const std::byte>> {
    buffer_.resize(bytes_of(ranges));
    std::span<std::byte> to(buffer_);
    for (const Range& range : ranges) {
      BELAY_TRY(file.read(range.offset, to.first(range.length)));
      to = to.subspan(range.length);
    }
    return std::span<const std::byte>(buffer_);
  });
}

void RegionBytes::release() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
  mapped_ = {};
  if (buffer_.capacity() > kMostKeptBytes) buffer_ = {};
}

Result<std::span<std::byte>> BytesAccess::room(std::uint64_t) {
  return fail(Code::invalid_argument, "files are brought back by unpack, not by restore");
}

}  // namespace belay::files
