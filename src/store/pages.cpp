// SPDX-License-Identifier: Apache-2.0
#include "store/pages.hpp"

#include "base/try.hpp"

namespace belay::store {

Result<Pages> read_pages(os::File& file, std::uint64_t begin, std::uint64_t end) {
  constexpr std::uint64_t kPage = os::kDirectAlignment;
  const bool exact = file.decodes();
  const std::uint64_t first = exact ? begin : begin / kPage * kPage;
  const std::uint64_t last = exact ? end : (end + kPage - 1) / kPage * kPage;
  Pages pages;
  BELAY_ASSIGN(pages.memory_, os::AlignedMemory::allocate(last - first));
  BELAY_ASSIGN(const std::size_t got, file.read(first, pages.memory_.bytes().first(last - first)));
  if (first + got < end)
    return fail(Code::corruption, "ends at byte {}, before byte {}", first + got, end);
  pages.skip_ = begin - first;
  pages.length_ = end - begin;
  return pages;
}

}  // namespace belay::store
