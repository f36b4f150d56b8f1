// SPDX-License-Identifier: Apache-2.0
// Memory to be protected, as a simulation would have it: from malloc, touched, not aligned to
// pages, full of random words, so that nothing compresses and no two blocks are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace belay::bench {

enum class Pattern { contiguous, scattered };
const char* name_of(Pattern pattern);

class Image {
 public:
  /// Ends the program if the memory is not there. REQUIRES: bytes is a multiple of 8.
  Image(std::uint64_t bytes, std::uint64_t seed);

  std::span<std::uint64_t> words() { return {words_.get(), count_}; }
  std::span<std::byte> bytes() { return std::as_writable_bytes(words()); }
  std::span<std::byte> bytes(std::uint64_t offset, std::uint64_t size) {
    return bytes().subspan(offset, size);
  }

  /// Changes every word of a range to one that it never held.
  void change(std::uint64_t offset, std::uint64_t bytes);
  /// Changes `share` of the image, cut into pieces of `piece_bytes`: one run of pieces, or pieces
  /// anywhere, at places that differ from call to call. Returns the bytes changed.
  std::uint64_t change(double share, Pattern pattern, std::uint64_t piece_bytes);
  void wipe();
  /// Depends on every word and its place.
  std::uint64_t checksum() const;

 private:
  struct Free {
    void operator()(std::uint64_t* words) const;
  };
  std::uint64_t next_random();

  std::unique_ptr<std::uint64_t[], Free> words_;
  std::size_t count_;
  std::uint64_t random_;
};

}  // namespace belay::bench
