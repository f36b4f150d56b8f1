// SPDX-License-Identifier: Apache-2.0
#include "codec/kernels.hpp"
#include "codec/kernels_avx2.hpp"
#include "codec/number_loops.hpp"

namespace belay::codec {
namespace {

void shuffle(std::size_t record, std::size_t records, const std::byte* from, std::size_t plane,
             std::byte* to) {
  shuffle_records(record, records, from, plane, to);
}
void unshuffle(std::size_t record, std::size_t records, const std::byte* from, std::size_t plane,
               std::byte* to) {
  unshuffle_records(record, records, from, plane, to);
}

template <class T, bool kSwap, bool kAdd>
void add(std::size_t numbers, const std::byte* from, std::byte* to) {
  add_numbers<T, kSwap, kAdd>(numbers, from, to);
}
template <class T>
void accumulate(std::size_t numbers, std::size_t stride, std::byte* to) {
  accumulate_numbers<T>(numbers, stride, to);
}
template <class T>
void fold(std::size_t numbers, std::byte* to) {
  fold_numbers<T>(numbers, to);
}
template <class T>
void unfold(std::size_t numbers, std::byte* to) {
  unfold_numbers<T>(numbers, to);
}
template <class T>
void swap(std::size_t numbers, std::byte* to) {
  swap_numbers<T>(numbers, to);
}
template <class T>
std::uint64_t pack(std::size_t numbers, const std::byte* from, std::byte* leads, std::byte* bits,
                   std::uint64_t filled) {
  return pack_numbers<T>(numbers, from, leads, bits, filled);
}
template <class T>
std::uint64_t unpack(std::size_t numbers, const std::byte* leads, std::span<const std::byte> bits,
                     std::uint64_t taken, std::byte* to) {
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

constexpr Kernels kPlain = {shuffle,
                            unshuffle,
                            {kNumbers<std::uint8_t>, kNumbers<std::uint16_t>,
                             kNumbers<std::uint32_t>, kNumbers<std::uint64_t>}};

}  // namespace

const Kernels& plain_kernels() { return kPlain; }

const Kernels& best_kernels() {
  static const Kernels* const best = avx2_kernels() ? avx2_kernels() : &kPlain;
  return *best;
}

}  // namespace belay::codec
