// SPDX-License-Identifier: Apache-2.0
// Naming blocks by their content, in batches, so that an accelerator can be one more
// implementation.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace belay::fingerprint {

using Block = std::span<const std::byte>;

/// Thread-safe: hash() may run on several threads at once. Like any container, it throws
/// std::bad_alloc where memory ends; xxh3 needs none.
class Hasher {
 public:
  virtual ~Hasher() = default;
  /// fingerprints[i] names blocks[i]. REQUIRES: equal sizes.
  virtual void hash(std::span<const Block> blocks, std::span<Fingerprint> fingerprints) const = 0;

  Fingerprint hash(Block block) const {
    Fingerprint result;
    hash({&block, 1}, {&result, 1});
    return result;
  }
};

/// The registry: all hashes that a build knows. `seed` is the store's.
/// nullptr: this machine cannot compute the hash (OpenSSL in FIPS mode has no MD5), or `kind` was
/// read from a file of a later format; callers report unsupported.
std::unique_ptr<Hasher> make_hasher(HashKind kind, std::uint64_t seed);
std::optional<HashKind> hash_named(std::string_view name);
/// "unknown" for a kind that is not in the registry.
std::string_view name_of(HashKind kind);

}  // namespace belay::fingerprint
