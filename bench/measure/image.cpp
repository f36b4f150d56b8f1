// SPDX-License-Identifier: Apache-2.0
#include "measure/image.hpp"

#include "measure/must.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

namespace belay::bench {
namespace {

// SplitMix64: a permutation of 64-bit words, so that distinct counters give distinct words.
std::uint64_t mix(std::uint64_t word) {
  word += 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

}  // namespace

const char* name_of(Pattern pattern) {
  return pattern == Pattern::contiguous ? "contiguous" : "scattered";
}

void Image::Free::operator()(std::uint64_t* words) const { std::free(words); }

Image::Image(std::uint64_t bytes, std::uint64_t seed)
    : words_(static_cast<std::uint64_t*>(std::malloc(bytes))),
      count_(bytes / sizeof(std::uint64_t)),
      random_(mix(seed)) {
  if (!words_) die("no memory for an image of " + std::to_string(bytes) + " bytes");
  const std::uint64_t base = random_;
  for (std::size_t i = 0; i < count_; ++i) words_[i] = mix(base + i);
}

std::uint64_t Image::next_random() { return random_ = mix(random_); }

void Image::change(std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t step = next_random() | 1;
  const auto range = words().subspan(offset / sizeof(std::uint64_t), bytes / sizeof(std::uint64_t));
  for (std::uint64_t& word : range) word += step;
}

std::uint64_t Image::change(double share, Pattern pattern, std::uint64_t piece_bytes) {
  const std::uint64_t pieces = bytes().size() / piece_bytes;
  const auto wanted = static_cast<std::uint64_t>(std::llround(share * static_cast<double>(pieces)));
  std::vector<std::uint64_t> order(pieces);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  if (pattern == Pattern::contiguous) {
    const auto start = next_random() % pieces;
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(start), order.end());
  } else {
    for (std::uint64_t i = 0; i < wanted; ++i)
      std::swap(order[i], order[i + next_random() % (pieces - i)]);
  }
  for (std::uint64_t i = 0; i < wanted; ++i) change(order[i] * piece_bytes, piece_bytes);
  return wanted * piece_bytes;
}

void Image::wipe() { std::memset(words_.get(), 0, count_ * sizeof(std::uint64_t)); }

std::uint64_t Image::checksum() const {
  // Lanes, because one chain of multiplications would be slower than the memory.
  std::array<std::uint64_t, 8> lanes{};
  for (std::size_t i = 0; i < count_; ++i) {
    std::uint64_t& lane = lanes[i % lanes.size()];
    lane = (lane ^ words_[i]) * 0xff51afd7ed558ccdu;
  }
  return std::accumulate(lanes.begin(), lanes.end(), std::uint64_t{0},
                         [](std::uint64_t sum, std::uint64_t lane) { return mix(sum ^ lane); });
}

}  // namespace belay::bench
