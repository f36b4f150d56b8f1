// SPDX-License-Identifier: Apache-2.0
#include "codec/kernels_avx2.hpp"

#include "codec/number_loops.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define BELAY_AVX2 [[gnu::target("avx2,bmi,bmi2")]]
#define BELAY_AVX2_INLINE [[gnu::target("avx2,bmi,bmi2"), gnu::always_inline]] inline

namespace belay::codec {
namespace {

// 16 records of 2^n bytes are 2^(n + 4) bytes. The address of byte b of record r is r's bits, then
// b's; in planes it is b's bits, then r's. Interleaving the first half of the bytes with the second
// rotates addresses by one bit: four times makes planes of records, n times records of planes. Both
// halves of a register do that on their own, with 16 records each.

template <std::size_t kRecord>
BELAY_AVX2_INLINE void interleave_halves(__m256i* lanes) {
  __m256i next[kRecord];
  for (std::size_t i = 0; i < kRecord / 2; ++i) {
    next[2 * i] = _mm256_unpacklo_epi8(lanes[i], lanes[i + kRecord / 2]);
    next[2 * i + 1] = _mm256_unpackhi_epi8(lanes[i], lanes[i + kRecord / 2]);
  }
  for (std::size_t i = 0; i < kRecord; ++i) lanes[i] = next[i];
}

template <std::size_t kRecord>
BELAY_AVX2 void shuffle_power(std::size_t records, const std::byte* from, std::size_t plane,
                              std::byte* to) {
  std::size_t r = 0;
  for (; r + 32 <= records; r += 32) {
    __m256i lanes[kRecord];
    const auto* low = reinterpret_cast<const __m128i*>(from + r * kRecord);
    for (std::size_t i = 0; i < kRecord; ++i)
      lanes[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low + i)),
                                         _mm_loadu_si128(low + kRecord + i), 1);
    for (int round = 0; round < 4; ++round) interleave_halves<kRecord>(lanes);
    for (std::size_t b = 0; b < kRecord; ++b)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + b * plane + r), lanes[b]);
  }
  shuffle_records(kRecord, records - r, from + r * kRecord, plane, to + r);
}

template <std::size_t kRecord>
BELAY_AVX2 void unshuffle_power(std::size_t records, const std::byte* from, std::size_t plane,
                                std::byte* to) {
  std::size_t r = 0;
  for (; r + 32 <= records; r += 32) {
    __m256i lanes[kRecord];
    for (std::size_t b = 0; b < kRecord; ++b)
      lanes[b] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + b * plane + r));
    for (std::size_t covered = 1; covered < kRecord; covered *= 2)
      interleave_halves<kRecord>(lanes);
    auto* low = reinterpret_cast<__m128i*>(to + r * kRecord);
    for (std::size_t i = 0; i < kRecord; ++i) {
      _mm_storeu_si128(low + i, _mm256_castsi256_si128(lanes[i]));
      _mm_storeu_si128(low + kRecord + i, _mm256_extracti128_si256(lanes[i], 1));
    }
  }
  unshuffle_records(kRecord, records - r, from + r, plane, to + r * kRecord);
}

void shuffle(std::size_t record, std::size_t records, const std::byte* from, std::size_t plane,
             std::byte* to) {
  if (record == 2) return shuffle_power<2>(records, from, plane, to);
  if (record == 4) return shuffle_power<4>(records, from, plane, to);
  if (record == 8) return shuffle_power<8>(records, from, plane, to);
  if (record == 16) return shuffle_power<16>(records, from, plane, to);
  plain_kernels().shuffle(record, records, from, plane, to);
}

void unshuffle(std::size_t record, std::size_t records, const std::byte* from, std::size_t plane,
               std::byte* to) {
  if (record == 2) return unshuffle_power<2>(records, from, plane, to);
  if (record == 4) return unshuffle_power<4>(records, from, plane, to);
  if (record == 8) return unshuffle_power<8>(records, from, plane, to);
  if (record == 16) return unshuffle_power<16>(records, from, plane, to);
  plain_kernels().unshuffle(record, records, from, plane, to);
}

template <class T, bool kSwap, bool kAdd>
BELAY_AVX2 void add(std::size_t numbers, const std::byte* from, std::byte* to) {
  add_numbers<T, kSwap, kAdd>(numbers, from, to);
}
template <class T>
BELAY_AVX2 void accumulate(std::size_t numbers, std::size_t stride, std::byte* to) {
  accumulate_numbers<T>(numbers, stride, to);
}
template <class T>
BELAY_AVX2 void fold(std::size_t numbers, std::byte* to) {
  fold_numbers<T>(numbers, to);
}
template <class T>
BELAY_AVX2 void unfold(std::size_t numbers, std::byte* to) {
  unfold_numbers<T>(numbers, to);
}
template <class T>
BELAY_AVX2 void swap(std::size_t numbers, std::byte* to) {
  swap_numbers<T>(numbers, to);
}
template <class T>
BELAY_AVX2 std::uint64_t pack(std::size_t numbers, const std::byte* from, std::byte* leads,
                              std::byte* bits, std::uint64_t filled) {
  return pack_numbers<T>(numbers, from, leads, bits, filled);
}
template <class T>
BELAY_AVX2 std::uint64_t unpack(std::size_t numbers, const std::byte* leads,
                                std::span<const std::byte> bits, std::uint64_t taken,
                                std::byte* to) {
  return unpack_numbers<T>(numbers, leads, bits, taken, to);
}

template <class T>
constexpr Kernels::Numbers kNumbers = {add<T, false, true>,
                                       add<T, false, false>,
                                       add<T, true, true>,
                                       add<T, true, false>,
                                       accumulate<T>,
                                       fold<T>,
                                       unfold<T>,
                                       swap<T>,
                                       pack<T>,
                                       unpack<T>};

constexpr Kernels kAvx2 = {shuffle,
                           unshuffle,
                           {kNumbers<std::uint8_t>, kNumbers<std::uint16_t>,
                            kNumbers<std::uint32_t>, kNumbers<std::uint64_t>}};

}  // namespace

const Kernels* avx2_kernels() {
  const bool can = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                   __builtin_cpu_supports("bmi2");
  return can ? &kAvx2 : nullptr;
}

}  // namespace belay::codec

#else

namespace belay::codec {

const Kernels* avx2_kernels() { return nullptr; }

}  // namespace belay::codec

#endif
