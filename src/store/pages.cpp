// SPDX-License-Identifier: Apache-2.0
#include "store/pages.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <cstring>

namespace belay::store {

namespace {

constexpr std::uint64_t kPage = os::kDirectAlignment;
constexpr std::uint64_t kMostAtOnce = std::uint64_t{1} << 20;
constexpr std::uint64_t kWorthMapping = std::uint64_t{32} << 10;

}  // namespace

Result<void> PageReader::read(os::File& file, std::uint64_t begin, std::span<std::byte> into) {
  if (file.decodes()) {
    BELAY_ASSIGN(const std::size_t got, file.read(begin, into));
    if (got < into.size())
      return fail(Code::corruption, "ends at byte {}, before byte {}", begin + got,
                  begin + into.size());
    return {};
  }
  while (!into.empty()) {
    const std::uint64_t first = begin / kPage * kPage;
    const std::uint64_t end = std::min(begin + into.size(), first + kMostAtOnce);
    const std::uint64_t bytes = (end - first + kPage - 1) / kPage * kPage;
    if (memory_.size() < bytes) {
      memory_ = {};
      BELAY_ASSIGN(memory_, os::AlignedMemory::allocate(bytes));
    }
    BELAY_ASSIGN(const std::size_t got, file.read(first, memory_.bytes().first(bytes)));
    if (first + got < end)
      return fail(Code::corruption, "ends at byte {}, before byte {}", first + got, end);
    std::memcpy(into.data(), memory_.bytes().data() + (begin - first), end - begin);
    into = into.subspan(end - begin);
    begin = end;
  }
  return {};
}

Result<Pages> read_pages(os::File& file, std::uint64_t begin, std::uint64_t end) {
  const bool exact = file.decodes();
  const std::uint64_t first = exact ? begin : begin / kPage * kPage;
  const std::uint64_t last = exact ? end : (end + kPage - 1) / kPage * kPage;
  Pages pages;
  // Much of it is a table that goes soon.
  BELAY_ASSIGN(pages.memory_, last - first < kWorthMapping
                                  ? os::AlignedMemory::allocate(last - first)
                                  : os::AlignedMemory::map(last - first));
  BELAY_ASSIGN(const std::size_t got, file.read(first, pages.memory_.bytes().first(last - first)));
  if (first + got < end)
    return fail(Code::corruption, "ends at byte {}, before byte {}", first + got, end);
  pages.skip_ = begin - first;
  pages.length_ = end - begin;
  return pages;
}

}  // namespace belay::store
