// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share. An input's first byte says how the rest becomes a file: 0 as it is,
// anything else with sizes and checksums put right at the offsets of docs/format.md, so that the
// fuzzer gets past them.
#pragma once

#include "format/checksum.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace belay::fuzz {

using Bytes = std::vector<std::byte>;
using View = std::span<const std::byte>;

struct Input {
  bool repaired = false;
  View rest;
};

inline Input split(const std::uint8_t* data, std::size_t size) {
  const View bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return {};
  return {bytes.front() != std::byte{0}, bytes.subspan(1)};
}

/// Stops the program, so that the fuzzer keeps the input.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

template <class T>
void write_at(Bytes& bytes, std::size_t offset, T value) {
  if (offset <= bytes.size() && sizeof(T) <= bytes.size() - offset)
    std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

inline void append(Bytes& bytes, View more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

template <class T>
void append_field(Bytes& bytes, T value) {
  append(bytes, std::as_bytes(std::span<const T, 1>(&value, 1)));
}

inline void append_text(Bytes& bytes, std::string_view text) {
  append(bytes, std::as_bytes(std::span(text.data(), text.size())));
}

/// Zeros, so that a footer of `footer_bytes` ends at a multiple of 4096.
inline void pad_before_footer(Bytes& bytes, std::size_t footer_bytes) {
  bytes.resize((bytes.size() + footer_bytes + 4095) / 4096 * 4096 - footer_bytes);
}

inline std::uint64_t sum64(const Bytes& bytes, std::size_t from, std::size_t to) {
  return format::checksum64(View(bytes).subspan(from, to - from));
}

}  // namespace belay::fuzz
