// SPDX-License-Identifier: Apache-2.0
// The loops over numbers, written once: what includes them compiles them for one processor each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
