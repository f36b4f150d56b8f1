// SPDX-License-Identifier: Apache-2.0
// Vectors whose memory the system gets back when they go. malloc keeps much of what is freed, so
// that large tables which come and go would add up to far more than there is at any one time.
#pragma once

#include <cstddef>
#include <vector>

namespace belay::os {

/// Whole pages from the system; throws std::bad_alloc.
void* take_pages(std::size_t bytes);
void give_pages(void* pages, std::size_t bytes) noexcept;

/// Little comes from the heap as always.
template <class T>
class PageAllocator {
 public:
  using value_type = T;
  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    return static_cast<T*>(bytes < kWorthPages ? ::operator new(bytes) : take_pages(bytes));
  }
  void deallocate(T* place, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kWorthPages) return ::operator delete(place);
    give_pages(place, bytes);
  }
  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }

 private:
  static_assert(alignof(T) <= alignof(std::max_align_t));
  static constexpr std::size_t kWorthPages = std::size_t{32} << 10;
};

template <class T>
using PagedVector = std::vector<T, PageAllocator<T>>;

}  // namespace belay::os
