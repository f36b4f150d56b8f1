// SPDX-License-Identifier: Apache-2.0
// What every structure must survive: flipped bits, cut ends, foreign versions.
#pragma once

#include <belay/result.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace belay::format {

inline bool is_refusal(Code code) { return code == Code::corruption || code == Code::unsupported; }

/// Flips every bit of `bytes` in turn, and expects `decode` to refuse each result.
template <class Decode>
void expect_every_flip_is_refused(std::vector<std::byte> bytes, Decode decode) {
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[at] ^= std::byte{1} << bit;
      const auto decoded = decode(std::span<const std::byte>(bytes));
      ASSERT_FALSE(decoded) << "byte " << at << ", bit " << bit;
      ASSERT_TRUE(is_refusal(decoded.error().code())) << decoded.error().message();
      bytes[at] ^= std::byte{1} << bit;
    }
  }
  ASSERT_TRUE(decode(std::span<const std::byte>(bytes)));
}

template <class Decode>
void expect_every_cut_is_corruption(const std::vector<std::byte>& bytes, Decode decode) {
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A copy of its own, so that a sanitizer sees a read past the end.
    const std::vector<std::byte> cut(bytes.begin(),
                                     bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const auto decoded = decode(std::span<const std::byte>(cut));
    ASSERT_FALSE(decoded) << size << " bytes";
    ASSERT_EQ(decoded.error().code(), Code::corruption) << size << " bytes";
  }
}

/// The format version lies at offset 8 in every structure that has one.
template <class Decode>
void expect_newer_version_is_unsupported(std::vector<std::byte> bytes, Decode decode) {
  bytes[8] = std::byte{7};
  const auto decoded = decode(std::span<const std::byte>(bytes));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::unsupported);
  EXPECT_NE(
      decoded.error().message().find("written by a newer Belay (format 7); this one reads up to 3"),
      std::string::npos)
      << decoded.error().message();
}

template <class T>
void overwrite(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  ASSERT_LE(offset + sizeof(T), bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

}  // namespace belay::format
