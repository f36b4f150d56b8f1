// SPDX-License-Identifier: Apache-2.0
#include "codec/residuals.hpp"

#include <algorithm>
#include <cstring>

namespace belay::codec {

// With B the shift by one number, the residuals are (1 - B^s1)(1 - B^s2)... x. The terms of the
// product are kept so that those of the last factor come first, then what the one before adds: the
// product from any factor on is the front of the list.
Residuals::Residuals(const Differences& differences, const Kernels& kernels)
    : differences_(differences), numbers_(kernels.of(differences.number_bytes)) {
  std::size_t terms = 1;
  for (std::size_t s = differences.strides; s-- > 0; terms *= 2)
    for (std::size_t t = 0; t < terms; ++t)
      terms_[terms + t] = {terms_[t].back + differences.stride[s], !terms_[t].plus};
}

std::span<const Residuals::Term> Residuals::terms_from(std::size_t stride) const {
  return std::span(terms_).first(std::size_t{1} << (differences_.strides - stride));
}

void Residuals::take(const std::byte* raw, std::uint64_t first, std::size_t count,
                     std::byte* to) const {
  const std::size_t width = differences_.number_bytes;
  const bool swap = differences_.big_endian;
  std::memcpy(to, raw + first * width, count * width);
  if (swap) numbers_.swap(count, to);
  for (const Term& term : terms_from(0).subspan(1)) {
    const std::uint64_t begin = std::max(first, term.back);
    if (begin >= first + count) continue;
    const auto kernel = term.plus ? (swap ? numbers_.add_swapped : numbers_.add)
                                  : (swap ? numbers_.subtract_swapped : numbers_.subtract);
    kernel(first + count - begin, raw + (begin - term.back) * width, to + (begin - first) * width);
  }
  numbers_.fold(count, to);
}

// Undoes one factor after the other. What a factor adds to a number, the number one stride before
// it in the product of the factors still to undo, is computed from the numbers where these are
// done, and lies in the piece where they are not.
void Residuals::put_back(std::byte* raw, std::uint64_t first, std::size_t count) const {
  const std::size_t width = differences_.number_bytes;
  std::byte* const piece = raw + first * width;
  numbers_.unfold(count, piece);
  for (std::size_t s = 0; s < differences_.strides; ++s) {
    const std::uint64_t stride = differences_.stride[s];
    const std::uint64_t end = first + std::min<std::uint64_t>(stride, count);
    for (const Term& term : terms_from(s + 1)) {
      const std::uint64_t back = stride + term.back;
      const std::uint64_t begin = std::max(first, back);
      if (begin >= end) continue;
      const auto kernel = term.plus ? numbers_.add : numbers_.subtract;
      kernel(end - begin, raw + (begin - back) * width, raw + begin * width);
    }
    if (stride < count) numbers_.accumulate(count, stride, piece);
  }
}

}  // namespace belay::codec
