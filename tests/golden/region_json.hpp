// SPDX-License-Identifier: Apache-2.0
// A region and its content, as read_store.py describes them.
#pragma once

#include "base/nouns.hpp"

#include <openssl/evp.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace belay::golden {

using Json = nlohmann::ordered_json;

inline std::string sha256(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    std::abort();
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", digest[i]);
    hex += digits.data();
  }
  return hex;
}

/// `Region` is a RegionInfo or a RegionRecord.
template <class Region>
Json describe(const Region& region, std::span<const std::byte> content) {
  const auto extents = region.shape.extents();
  return {{"name", region.name},
          {"kind", name_of(region.type.kind)},
          {"element_bytes", region.type.bytes},
          {"type_name", region.type.name},
          {"shape", std::vector<std::uint64_t>(extents.begin(), extents.end())},
          {"bytes", region.bytes},
          {"sha256", sha256(content)}};
}

}  // namespace belay::golden
