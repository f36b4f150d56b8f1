// SPDX-License-Identifier: Apache-2.0
// A range of a file, read in the whole pages that direct I/O wants, unless the file decodes.
#pragma once

#include <belay/result.hpp>

#include "os/files.hpp"
#include "os/memory.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace belay::store {

class Pages {
 public:
  std::span<const std::byte> bytes() const { return memory_.bytes().subspan(skip_, length_); }
  /// From now on these are `length` of its bytes.
  void narrow(std::size_t begin, std::size_t length) {
    skip_ += begin;
    length_ = length;
  }

 private:
  friend Result<Pages> read_pages(os::File& file, std::uint64_t begin, std::uint64_t end);

  os::AlignedMemory memory_;
  std::size_t skip_ = 0;
  std::size_t length_ = 0;
};

/// Reads ranges into memory of others, through pages that it uses again and again. One thread.
class PageReader {
 public:
  /// corruption if the file ends before.
  Result<void> read(os::File& file, std::uint64_t begin, std::span<std::byte> into);

 private:
  os::AlignedMemory memory_;
};

/// corruption if the file ends before `end`.
Result<Pages> read_pages(os::File& file, std::uint64_t begin, std::uint64_t end);

}  // namespace belay::store
