// SPDX-License-Identifier: Apache-2.0
// The checksums of files: XXH3-64 and XXH3-128 without a seed.
#pragma once

// The plain calls of a distribution's libxxhash use SSE2 only; the dispatching ones choose at run
// time and are half again as fast. This header must come before any other that includes xxhash.h.
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "base/nouns.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace belay::format {

inline std::uint64_t checksum64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

/// A checksum over bytes that come in pieces. Streams are either of 64 or of 128 bits.
class ChecksumStream {
 public:
  ChecksumStream() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
  }

 protected:
  XXH3_state_t* state() { return state_.get(); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

class Checksum64 : ChecksumStream {
 public:
  Checksum64() { XXH3_64bits_reset(state()); }
  void update(std::span<const std::byte> bytes) {
    if (!bytes.empty()) XXH3_64bits_update(state(), bytes.data(), bytes.size());
  }
  std::uint64_t digest() { return XXH3_64bits_digest(state()); }
};

class Checksum128 : ChecksumStream {
 public:
  struct Value {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const Value&) const = default;
  };
  Checksum128() { XXH3_128bits_reset(state()); }
  void update(std::span<const std::byte> bytes) {
    if (!bytes.empty()) XXH3_128bits_update(state(), bytes.data(), bytes.size());
  }
  Value digest() {
    const XXH128_hash_t hash = XXH3_128bits_digest(state());
    return {hash.low64, hash.high64};
  }
  static Value of(std::span<const std::byte> bytes) {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    return {hash.low64, hash.high64};
  }
};

}  // namespace belay::format
