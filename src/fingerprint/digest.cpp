// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/hashes.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <array>
#include <new>
#include <utility>

namespace belay::fingerprint {
namespace {

struct Free {
  void operator()(EVP_MD* digest) const { EVP_MD_free(digest); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Digest = std::unique_ptr<EVP_MD, Free>;
using Context = std::unique_ptr<EVP_MD_CTX, Free>;

using Seed = std::array<unsigned char, 8>;

Seed little_endian(std::uint64_t value) {
  Seed bytes{};
  for (auto& byte : bytes) {
    byte = static_cast<unsigned char>(value);
    value >>= 8;
  }
  return bytes;
}

std::uint64_t from_little_endian(const unsigned char* bytes) {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | bytes[i];
  return value;
}

bool hash_block(EVP_MD_CTX* context, const EVP_MD* digest, const Seed& seed, Block block,
                Fingerprint& fingerprint) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  if (EVP_DigestInit_ex(context, digest, nullptr) != 1 ||
      EVP_DigestUpdate(context, seed.data(), seed.size()) != 1 ||
      EVP_DigestUpdate(context, block.data(), block.size()) != 1 ||
      EVP_DigestFinal_ex(context, bytes.data(), nullptr) != 1)
    return false;
  fingerprint = {.low = from_little_endian(bytes.data()),
                 .high = from_little_endian(bytes.data() + 8)};
  return true;
}

class DigestHasher : public Hasher {
 public:
  DigestHasher(Digest digest, std::uint64_t seed)
      : digest_(std::move(digest)), seed_(little_endian(seed)) {}

  void hash(std::span<const Block> blocks, std::span<Fingerprint> fingerprints) const override {
    const Context context(EVP_MD_CTX_new());
    if (!context) throw std::bad_alloc();
    // A digest that has been fetched fails for want of memory only, and a fingerprint that is not
    // the block's would lose data without a word.
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (!hash_block(context.get(), digest_.get(), seed_, blocks[i], fingerprints[i]))
        throw std::bad_alloc();
  }

 private:
  const Digest digest_;
  const Seed seed_;
};

std::unique_ptr<Hasher> make_digest_hasher(const char* algorithm, std::uint64_t seed) {
  // The program may look at OpenSSL's queue of errors too: a digest that is missing is none of its.
  ERR_set_mark();
  Digest digest(EVP_MD_fetch(nullptr, algorithm, nullptr));
  ERR_pop_to_mark();
  if (!digest) return nullptr;
  return std::make_unique<DigestHasher>(std::move(digest), seed);
}

}  // namespace

std::unique_ptr<Hasher> make_md5_hasher(std::uint64_t seed) {
  return make_digest_hasher("MD5", seed);
}
std::unique_ptr<Hasher> make_sha1_hasher(std::uint64_t seed) {
  return make_digest_hasher("SHA1", seed);
}
std::unique_ptr<Hasher> make_sha256_hasher(std::uint64_t seed) {
  return make_digest_hasher("SHA256", seed);
}

}  // namespace belay::fingerprint
