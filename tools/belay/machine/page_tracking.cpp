// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/machine/page_tracking.hpp"

#include "base/try.hpp"
#include "os/descriptor.hpp"
#include "os/errno.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace belay::tool {
namespace {

// Of Linux 6.7; the headers of Debian 12 are older.
constexpr std::uint64_t kWriteProtectUnpopulated = 1 << 13;
constexpr std::uint64_t kWriteProtectAsync = 1 << 15;
constexpr int kUserModeOnly = 1;
constexpr std::uint64_t kPageIsWritten = 1 << 1;
constexpr std::uint64_t kProtectMatching = 1 << 0;
constexpr std::uint64_t kCheckAsync = 1 << 1;

struct PageRegion {
  std::uint64_t start, end, categories;
};
struct ScanArguments {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
      category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArguments);

Unexpected refused(const char* operation) {
  return Unexpected(os::error_of(errno, operation, "this kernel"));
}

struct Mapping {
  explicit Mapping(std::size_t size)
      : bytes(size),
        address(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  }
  ~Mapping() {
    if (address != MAP_FAILED) ::munmap(address, bytes);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::size_t bytes;
  void* address;
};

/// Written pages as ranges, and protected again.
Result<int> collect(const os::Descriptor& pagemap, const Mapping& memory, PageRegion& first) {
  const auto start = reinterpret_cast<std::uint64_t>(memory.address);
  ScanArguments arguments{};
  arguments.size = sizeof arguments;
  arguments.flags = kProtectMatching | kCheckAsync;
  arguments.start = start;
  arguments.end = start + memory.bytes;
  arguments.vec = reinterpret_cast<std::uint64_t>(&first);
  arguments.vec_len = 1;
  arguments.category_mask = kPageIsWritten;
  arguments.return_mask = kPageIsWritten;
  const int found = ::ioctl(pagemap.number(), kPagemapScan, &arguments);
  if (found < 0) return refused("PAGEMAP_SCAN by");
  return found;
}

}  // namespace

Result<void> try_page_tracking() {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const Mapping memory(2 * page);
  if (memory.address == MAP_FAILED) return refused("map memory by");
  const os::Descriptor uffd(
      static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly)));
  if (!uffd.valid()) return refused("userfaultfd by");
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kWriteProtectAsync | kWriteProtectUnpopulated;
  if (::ioctl(uffd.number(), UFFDIO_API, &api) != 0)
    return refused("asynchronous write-protection by");
  uffdio_register range{};
  range.range.start = reinterpret_cast<std::uint64_t>(memory.address);
  range.range.len = memory.bytes;
  range.mode = UFFDIO_REGISTER_MODE_WP;
  if (::ioctl(uffd.number(), UFFDIO_REGISTER, &range) != 0) return refused("register memory by");
  const os::Descriptor pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!pagemap.valid()) return refused("open /proc/self/pagemap by");
  PageRegion written{};
  BELAY_TRY(collect(pagemap, memory, written));
  volatile char* const second = static_cast<char*>(memory.address) + page;
  *second = 1;
  BELAY_ASSIGN(const int found, collect(pagemap, memory, written));
  if (found != 1 || written.start != range.range.start + page)
    return fail(Code::unsupported, "this kernel did not notice that a page was written");
  return {};
}

}  // namespace belay::tool
