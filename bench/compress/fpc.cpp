// SPDX-License-Identifier: Apache-2.0
#include "compress/fpc.hpp"

#include "measure/must.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

static_assert(std::endian::native == std::endian::little, "residuals are kept from their low end");

namespace belay::bench {
namespace {

constexpr std::size_t kBlockWords = 32768;  ///< a block has all its codes first, two a byte

/// Guesses the next word: the finite context method by the words themselves, the differential one
/// by their differences.
class Predictors {
 public:
  explicit Predictors(unsigned table_bits)
      : words_(std::size_t{1} << table_bits), strides_(words_.size()), mask_(words_.size() - 1) {}

  std::uint64_t by_words() const { return words_[word_hash_]; }
  std::uint64_t by_strides() const { return strides_[stride_hash_] + last_; }

  void learn(std::uint64_t word) {
    words_[word_hash_] = word;
    word_hash_ = ((word_hash_ << 6) ^ (word >> 48)) & mask_;
    const std::uint64_t stride = word - last_;
    strides_[stride_hash_] = stride;
    stride_hash_ = ((stride_hash_ << 2) ^ (stride >> 40)) & mask_;
    last_ = word;
  }

 private:
  std::vector<std::uint64_t> words_, strides_;
  std::uint64_t mask_, word_hash_ = 0, stride_hash_ = 0, last_ = 0;
};

constexpr unsigned kByStrides = 8;  ///< of a code; the rest is the number of leading zero bytes

/// Three bits are for nine numbers of zero bytes: four are taken for three, being the rarest.
constexpr unsigned code_of(unsigned zero_bytes) {
  return zero_bytes > 4 ? zero_bytes - 1 : std::min(zero_bytes, 3u);
}
constexpr unsigned residual_bytes_of(unsigned code) {
  const unsigned zeros = code & 7;
  return 8 - (zeros > 3 ? zeros + 1 : zeros);
}

/// REQUIRES: eight bytes of room at `to`. Returns the code.
unsigned put_word(std::uint64_t word, Predictors& predictors, std::byte*& to) {
  const std::uint64_t first = word ^ predictors.by_words();
  const std::uint64_t second = word ^ predictors.by_strides();
  const std::uint64_t residual = std::min(first, second);
  const unsigned code = code_of(static_cast<unsigned>(std::countl_zero(residual)) / 8) |
                        (second < first ? kByStrides : 0);
  std::memcpy(to, &residual, sizeof residual);
  to += residual_bytes_of(code);
  predictors.learn(word);
  return code;
}

std::uint64_t get_word(unsigned code, Predictors& predictors, std::span<const std::byte>& from) {
  const unsigned bytes = residual_bytes_of(code);
  if (from.size() < bytes) die("FPC: the residuals end too early");
  std::uint64_t residual = 0;
  std::memcpy(&residual, from.data(), bytes);
  from = from.subspan(bytes);
  const std::uint64_t word =
      residual ^ (code & kByStrides ? predictors.by_strides() : predictors.by_words());
  predictors.learn(word);
  return word;
}

}  // namespace

Bytes fpc_encode(std::span<const std::byte> raw, unsigned table_bits) {
  const std::size_t words = raw.size() / 8;
  Bytes encoded(words / 2 + words / kBlockWords + 8 + raw.size() + 8);
  std::byte* to = encoded.data();
  Predictors predictors(table_bits);
  for (std::size_t first = 0; first < words; first += kBlockWords) {
    const std::size_t count = std::min(kBlockWords, words - first);
    std::byte* const codes = to;
    to += (count + 1) / 2;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t word;
      std::memcpy(&word, raw.data() + 8 * (first + i), sizeof word);
      const unsigned code = put_word(word, predictors, to);
      codes[i / 2] = i % 2 == 0 ? std::byte(code) : codes[i / 2] | std::byte(code << 4);
    }
  }
  const auto tail = raw.subspan(8 * words);
  to = std::copy(tail.begin(), tail.end(), to);
  encoded.resize(static_cast<std::size_t>(to - encoded.data()));
  return encoded;
}

void fpc_decode(std::span<const std::byte> encoded, std::span<std::byte> raw, unsigned table_bits) {
  const std::size_t words = raw.size() / 8;
  Predictors predictors(table_bits);
  for (std::size_t first = 0; first < words; first += kBlockWords) {
    const std::size_t count = std::min(kBlockWords, words - first);
    if (encoded.size() < (count + 1) / 2) die("FPC: the codes end too early");
    const auto codes = encoded.first((count + 1) / 2);
    encoded = encoded.subspan(codes.size());
    for (std::size_t i = 0; i < count; ++i) {
      const auto pair = std::to_integer<unsigned>(codes[i / 2]);
      const std::uint64_t word = get_word(i % 2 == 0 ? pair & 15 : pair >> 4, predictors, encoded);
      std::memcpy(raw.data() + 8 * (first + i), &word, sizeof word);
    }
  }
  const auto tail = raw.subspan(8 * words);
  if (encoded.size() != tail.size()) die("FPC: more or fewer bytes than there should be");
  std::copy(encoded.begin(), encoded.end(), tail.begin());
}

}  // namespace belay::bench
