// SPDX-License-Identifier: Apache-2.0
#include "codec/contexts.hpp"

#include "codec/number_loops.hpp"

#include <algorithm>
#include <bit>

namespace belay::codec {
namespace {

constexpr unsigned kLeastTableBits = 8;
/// What the second cache holds beside an extent on its way.
constexpr unsigned kMostTableBits = 16;
constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;

/// About as many places as numbers.
unsigned table_bits_for(std::uint64_t numbers) {
  const auto bits = static_cast<unsigned>(std::bit_width(numbers));
  return std::clamp(bits, kLeastTableBits, kMostTableBits);
}

/// What came after differences that begin alike.
template <class T>
class Memory {
 public:
  Memory(std::byte* table, unsigned bits) : table_(reinterpret_cast<T*>(table)), bits_(bits) {}

  /// The lowest bits are noise, and would make every context a new one.
  BELAY_INLINE T& after(T difference) const {
    return table_[std::uint64_t{static_cast<T>(difference >> 3 * sizeof(T))} * kSpread >>
                  (64 - bits_)];
  }

 private:
  T* const table_;
  const unsigned bits_;
};

template <class T>
BELAY_INLINE T folded(T value) {
  return static_cast<T>(static_cast<T>(value << 1) ^
                        static_cast<T>(-(value >> (8 * sizeof(T) - 1))));
}
template <class T>
BELAY_INLINE T unfolded(T value) {
  return static_cast<T>((value >> 1) ^ static_cast<T>(-(value & 1)));
}

template <class T, bool kSwap>
BELAY_INLINE T number_at(const std::byte* raw, std::uint64_t i) {
  const T value = reinterpret_cast<const typename Loose<T>::type*>(raw)[i];
  return kSwap ? swapped<T>(value) : value;
}

/// Of a number, what is needed of those before it.
template <class T>
struct Before {
  T last, context;
};

template <class T, bool kSwap>
BELAY_INLINE Before<T> before(const std::byte* raw, std::uint64_t i, std::uint64_t stride) {
  const T last = i >= stride ? number_at<T, kSwap>(raw, i - stride) : T{0};
  const T other = i >= 2 * stride ? number_at<T, kSwap>(raw, i - 2 * stride) : T{0};
  return {last, static_cast<T>(last - other)};
}

template <class T, bool kSwap>
void take_numbers(Memory<T> memory, std::uint64_t stride, const std::byte* raw, std::uint64_t first,
                  std::size_t count, std::byte* to) {
  auto* out = reinterpret_cast<typename Loose<T>::type*>(to);
  for (std::size_t i = 0; i < count; ++i) {
    const auto [last, context] = before<T, kSwap>(raw, first + i, stride);
    const T difference = static_cast<T>(number_at<T, kSwap>(raw, first + i) - last);
    T& foretold = memory.after(context);
    out[i] = folded(static_cast<T>(difference - foretold));
    foretold = difference;
  }
}

template <class T>
void put_numbers_back(Memory<T> memory, std::uint64_t stride, std::byte* raw, std::uint64_t first,
                      std::size_t count) {
  auto* out = reinterpret_cast<typename Loose<T>::type*>(raw);
  const auto put_back = [&](std::uint64_t i, Before<T> known) {
    T& foretold = memory.after(known.context);
    foretold = static_cast<T>(unfolded<T>(out[i]) + foretold);
    const T value = static_cast<T>(known.last + foretold);
    out[i] = value;
    return Before<T>{value, foretold};
  };
  if (stride > 1) {
    for (std::uint64_t i = first; i < first + count; ++i)
      put_back(i, before<T, false>(raw, i, stride));
    return;
  }
  // In registers: through memory each would wait for the one before it to be stored.
  Before<T> known = before<T, false>(raw, first, 1);
  for (std::uint64_t i = first; i < first + count; ++i) known = put_back(i, known);
}

/// `use` of the type of the numbers, as a value of it.
template <class Use>
void with_type(std::uint32_t number_bytes, Use use) {
  if (number_bytes == 1) return use(std::uint8_t{});
  if (number_bytes == 2) return use(std::uint16_t{});
  if (number_bytes == 4) return use(std::uint32_t{});
  use(std::uint64_t{});
}

std::byte* empty_table(std::size_t bytes, Workspace& workspace) {
  const auto table = workspace.table(bytes);
  std::fill(table.begin(), table.end(), std::byte{});
  return table.data();
}

}  // namespace

Contexts::Contexts(const Differences& differences, std::uint64_t numbers, Workspace& workspace)
    : differences_(differences),
      table_bits_(table_bits_for(numbers)),
      table_(empty_table(differences.number_bytes * (std::size_t{1} << table_bits_), workspace)) {}

void Contexts::take(const std::byte* raw, std::uint64_t first, std::size_t count, std::byte* to) {
  with_type(differences_.number_bytes, [&]<class T>(T) {
    const auto take = differences_.big_endian ? take_numbers<T, true> : take_numbers<T, false>;
    take(Memory<T>(table_, table_bits_), differences_.stride[0], raw, first, count, to);
  });
}

void Contexts::put_back(std::byte* raw, std::uint64_t first, std::size_t count) {
  with_type(differences_.number_bytes, [&]<class T>(T) {
    put_numbers_back<T>(Memory<T>(table_, table_bits_), differences_.stride[0], raw, first, count);
  });
}

}  // namespace belay::codec
