// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/hasher.hpp"
#include "fingerprint/hashes.hpp"

#include <array>

namespace belay::fingerprint {
namespace {

struct Entry {
  HashKind kind;
  std::string_view name;
  std::unique_ptr<Hasher> (*make)(std::uint64_t seed);
};

constexpr std::array<Entry, 4> kHashes = {{
    {HashKind::xxh3, "xxh3", make_xxh3_hasher},
    {HashKind::md5, "md5", make_md5_hasher},
    {HashKind::sha1, "sha1", make_sha1_hasher},
    {HashKind::sha256, "sha256", make_sha256_hasher},
}};

}  // namespace

std::unique_ptr<Hasher> make_hasher(HashKind kind, std::uint64_t seed) {
  for (const Entry& entry : kHashes)
    if (entry.kind == kind) return entry.make(seed);
  return nullptr;
}

std::optional<HashKind> hash_named(std::string_view name) {
  for (const Entry& entry : kHashes)
    if (entry.name == name) return entry.kind;
  return {};
}

std::string_view name_of(HashKind kind) {
  for (const Entry& entry : kHashes)
    if (entry.kind == kind) return entry.name;
  return "unknown";
}

}  // namespace belay::fingerprint
