// SPDX-License-Identifier: Apache-2.0
// The loops over numbers, written once: what includes them compiles them for one processor each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#define BELAY_INLINE [[gnu::always_inline]] inline

namespace belay::codec {

/// A number at any address.
template <class T>
struct Loose {
  using type [[gnu::aligned(1), gnu::may_alias]] = T;
};

template <class T>
BELAY_INLINE T swapped(T value) {
  if constexpr (sizeof(T) == 1) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

template <class T, bool kSwap, bool kAdd>
BELAY_INLINE void add_numbers(std::size_t numbers, const std::byte* from, std::byte* to) {
  using Number = typename Loose<T>::type;
  const auto* in = reinterpret_cast<const Number*>(from);
  auto* out = reinterpret_cast<Number*>(to);
  for (std::size_t i = 0; i < numbers; ++i) {
    const T value = kSwap ? swapped<T>(in[i]) : in[i];
    out[i] = static_cast<T>(kAdd ? out[i] + value : out[i] - value);
  }
}

/// With the sums in registers: through memory each would wait for the one before it to be stored.
template <class T, std::size_t kStride>
BELAY_INLINE void accumulate_close(std::size_t numbers, std::byte* to) {
  using Number = typename Loose<T>::type;
  auto* out = reinterpret_cast<Number*>(to);
  T sums[kStride] = {};
  std::size_t i = 0;
  for (; i + kStride <= numbers; i += kStride)
    for (std::size_t s = 0; s < kStride; ++s)
      out[i + s] = sums[s] = static_cast<T>(sums[s] + out[i + s]);
  for (std::size_t s = 0; i + s < numbers; ++s) out[i + s] = static_cast<T>(sums[s] + out[i + s]);
}

template <class T>
BELAY_INLINE void accumulate_numbers(std::size_t numbers, std::size_t stride, std::byte* to) {
  using Number = typename Loose<T>::type;
  auto* out = reinterpret_cast<Number*>(to);
  if (stride == 1) {
    accumulate_close<T, 1>(numbers, to);
  } else if (stride == 2) {
    accumulate_close<T, 2>(numbers, to);
  } else if (stride == 3) {
    accumulate_close<T, 3>(numbers, to);
  } else if (stride * sizeof(T) < 64) {
    for (std::size_t i = stride; i < numbers; ++i)
      out[i] = static_cast<T>(out[i] + out[i - stride]);
  } else {
    for (std::size_t done = stride; done < numbers; done += stride)
      add_numbers<T, false, true>(std::min(stride, numbers - done),
                                  to + (done - stride) * sizeof(T), to + done * sizeof(T));
  }
}

template <class T>
BELAY_INLINE void fold_numbers(std::size_t numbers, std::byte* to) {
  using Number = typename Loose<T>::type;
  auto* out = reinterpret_cast<Number*>(to);
  for (std::size_t i = 0; i < numbers; ++i) {
    const T value = out[i];
    const T sign = static_cast<T>(-(value >> (8 * sizeof(T) - 1)));
    out[i] = static_cast<T>(static_cast<T>(value << 1) ^ sign);
  }
}

template <class T>
BELAY_INLINE void unfold_numbers(std::size_t numbers, std::byte* to) {
  using Number = typename Loose<T>::type;
  auto* out = reinterpret_cast<Number*>(to);
  for (std::size_t i = 0; i < numbers; ++i) {
    const T value = out[i];
    const T sign = static_cast<T>(-(value & 1));
    out[i] = static_cast<T>((value >> 1) ^ sign);
  }
}

template <class T>
BELAY_INLINE void swap_numbers(std::size_t numbers, std::byte* to) {
  using Number = typename Loose<T>::type;
  auto* out = reinterpret_cast<Number*>(to);
  for (std::size_t i = 0; i < numbers; ++i) out[i] = swapped<T>(out[i]);
}

/// How many bits follow a lead.
BELAY_INLINE unsigned bits_below(unsigned lead) { return lead < 4 ? 0 : lead / 2 - 1; }

/// 64 bits that begin `shift` < 8 bits after `at`.
BELAY_INLINE std::uint64_t bits_at(const std::byte* at, unsigned shift) {
  const std::uint64_t low = *reinterpret_cast<const Loose<std::uint64_t>::type*>(at) >> shift;
  return low | std::to_integer<std::uint64_t>(at[8]) << 1 << (63 - shift);
}

template <class T>
BELAY_INLINE std::uint64_t pack_numbers(std::size_t numbers, const std::byte* from,
                                        std::byte* leads, std::byte* bits, std::uint64_t filled) {
  using Number = typename Loose<T>::type;
  using Word = Loose<std::uint64_t>::type;
  const auto* in = reinterpret_cast<const Number*>(from);
  std::byte* to = bits + filled / 8;
  unsigned shift = static_cast<unsigned>(filled % 8);
  std::uint64_t begun = shift == 0 ? 0 : std::to_integer<std::uint64_t>(*to);
  for (std::size_t i = 0; i < numbers; ++i) {
    const std::uint64_t value = in[i];
    // 3 more bits make no difference to numbers of more than 2.
    const unsigned below = 62 - static_cast<unsigned>(__builtin_clzll(value | 3));
    const std::uint64_t low = value & ((std::uint64_t{1} << below) - 1);
    const std::uint64_t word = begun | low << shift;
    leads[i] = static_cast<std::byte>(2 * below + (value >> below));
    *reinterpret_cast<Word*>(to) = word;
    // What reaches beyond the word. Without a branch, which would often be guessed wrongly.
    const std::uint64_t beyond = low >> 1 >> (63 - shift);
    shift += below;
    to += shift / 8;
    const std::uint64_t whole = -std::uint64_t{shift / 64};  // all ones if the word is full
    begun = (beyond & whole) | (word >> (shift & 56) & ~whole);
    shift %= 8;
  }
  *to = static_cast<std::byte>(begun);
  return static_cast<std::uint64_t>(to - bits) * 8 + shift;
}

template <class T>
BELAY_INLINE T unpacked(unsigned lead, std::uint64_t bits) {
  const unsigned below = bits_below(lead);
  const std::uint64_t high = lead < 4 ? lead : 2 | (lead & 1);
  return static_cast<T>(high << below | (bits & ((std::uint64_t{1} << below) - 1)));
}

template <class T>
BELAY_INLINE std::uint64_t unpack_numbers(std::size_t numbers, const std::byte* leads,
                                          std::span<const std::byte> bits, std::uint64_t taken,
                                          std::byte* to) {
  using Number = typename Loose<T>::type;
  constexpr std::size_t kReach = sizeof(std::uint64_t) + 1;
  auto* out = reinterpret_cast<Number*>(to);
  std::size_t i = 0;
  for (; i < numbers && taken / 8 + kReach <= bits.size(); ++i) {
    const auto lead = std::to_integer<unsigned>(leads[i]);
    out[i] = unpacked<T>(lead, bits_at(bits.data() + taken / 8, taken % 8));
    taken += bits_below(lead);
  }
  for (; i < numbers; ++i) {
    std::byte last[kReach] = {};
    const auto rest = bits.subspan(std::min<std::size_t>(taken / 8, bits.size()));
    std::copy_n(rest.begin(), std::min(rest.size(), kReach), last);
    const auto lead = std::to_integer<unsigned>(leads[i]);
    out[i] = unpacked<T>(lead, bits_at(last, taken % 8));
    taken += bits_below(lead);
  }
  return taken;
}

/// Any record. In tiles, so that the planes' cache lines are written whole.
BELAY_INLINE void shuffle_records(std::size_t record, std::size_t records, const std::byte* from,
                                  std::size_t plane, std::byte* to) {
  constexpr std::size_t kTile = 64;
  for (std::size_t first = 0; first < records; first += kTile) {
    const std::size_t count = std::min(kTile, records - first);
    for (std::size_t b = 0; b < record; ++b) {
      const std::byte* in = from + first * record + b;
      std::byte* out = to + b * plane + first;
      for (std::size_t r = 0; r < count; ++r) out[r] = in[r * record];
    }
  }
}

BELAY_INLINE void unshuffle_records(std::size_t record, std::size_t records, const std::byte* from,
                                    std::size_t plane, std::byte* to) {
  constexpr std::size_t kTile = 64;
  for (std::size_t first = 0; first < records; first += kTile) {
    const std::size_t count = std::min(kTile, records - first);
    for (std::size_t b = 0; b < record; ++b) {
      const std::byte* in = from + b * plane + first;
      std::byte* out = to + first * record + b;
      for (std::size_t r = 0; r < count; ++r) out[r * record] = in[r];
    }
  }
}

}  // namespace belay::codec
