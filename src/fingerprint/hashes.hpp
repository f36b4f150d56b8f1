// SPDX-License-Identifier: Apache-2.0
// The hash families, for the registry. Everyone else calls make_hasher().
#pragma once

#include "fingerprint/hasher.hpp"

#include <cstdint>
#include <memory>

namespace belay::fingerprint {

/// XXH3-128 with the seed as its seed.
std::unique_ptr<Hasher> make_xxh3_hasher(std::uint64_t seed);

/// The digest of the 8 little-endian bytes of the seed followed by the block, cut to its first 16
/// bytes. nullptr where OpenSSL is set up without this digest, as with FIPS and MD5.
std::unique_ptr<Hasher> make_md5_hasher(std::uint64_t seed);
std::unique_ptr<Hasher> make_sha1_hasher(std::uint64_t seed);
std::unique_ptr<Hasher> make_sha256_hasher(std::uint64_t seed);

}  // namespace belay::fingerprint
