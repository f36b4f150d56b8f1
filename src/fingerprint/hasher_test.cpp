// SPDX-License-Identifier: Apache-2.0
// Fingerprints are part of the file format: these values must never change. They come from Python's
// hashlib and from the scalar code of xxhash.h.
#include "fingerprint/hasher.hpp"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace belay::fingerprint {
namespace {

constexpr std::uint64_t kSeed = 0x0123456789abcdef;

std::vector<std::byte> block_of(std::size_t bytes) {
  std::vector<std::byte> block(bytes);
  for (std::size_t i = 0; i < bytes; ++i) block[i] = static_cast<std::byte>(i % 251);
  return block;
}

struct Known {
  HashKind kind;
  Fingerprint of_nothing;
  Fingerprint of_belay;
  Fingerprint of_16KiB;
};

constexpr std::array<Known, 4> kKnown = {{
    {HashKind::xxh3,
     {0xaaa287af24a9bb3a, 0xa4cb05dbbf09907a},
     {0x8c05e586a2380719, 0x312cf90c6ae53483},
     {0x4e520968eb79bc92, 0x6e106562aaefa47d}},
    {HashKind::md5,
     {0xefe3c048a79a5984, 0x97e530396a0863b6},
     {0xe4e40b93afbeb435, 0x7a7c97deab7b8c9e},
     {0xc4be7906add41189, 0x56154598caec43e0}},
    {HashKind::sha1,
     {0x1e3bde49a1c794b6, 0xd6812c75cd149a75},
     {0x17dc28ef3bbb531b, 0x5a52d5bc97da6223},
     {0x20c0da7ba53096a4, 0xafb63d579b3668d8}},
    {HashKind::sha256,
     {0xdcd06162b3a25ba8, 0xa4a80f84bccbb6a4},
     {0x5514e1935f861b0d, 0xc8dad170457b0de2},
     {0xb8fc02b1867fc767, 0x4f296f353381e1f5}},
}};

class HasherVectors : public ::testing::TestWithParam<Known> {};

TEST_P(HasherVectors, AreWhatOtherProgramsCompute) {
  const auto hasher = make_hasher(GetParam().kind, kSeed);
  if (!hasher) GTEST_SKIP() << "this OpenSSL has no " << name_of(GetParam().kind);
  EXPECT_EQ(hasher->hash(Block{}), GetParam().of_nothing);
  EXPECT_EQ(hasher->hash(std::as_bytes(std::span("belay", 5))), GetParam().of_belay);
  EXPECT_EQ(hasher->hash(block_of(16384)), GetParam().of_16KiB);
}

INSTANTIATE_TEST_SUITE_P(All, HasherVectors, ::testing::ValuesIn(kKnown), [](const auto& tested) {
  return std::string(name_of(tested.param.kind));
});

TEST(HashRegistry, FindsEveryHashByItsName) {
  for (const Known& known : kKnown) EXPECT_EQ(hash_named(name_of(known.kind)), known.kind);
  EXPECT_EQ(hash_named("xxh3"), HashKind::xxh3);
  EXPECT_EQ(hash_named("sha256"), HashKind::sha256);
}

TEST(HashRegistry, DoesNotKnowOtherNames) {
  EXPECT_FALSE(hash_named("crc32"));
  EXPECT_FALSE(hash_named("XXH3"));
  EXPECT_FALSE(hash_named(""));
}

TEST(HashRegistry, HasNoHasherForAKindThatItDoesNotKnow) {
  const auto later = static_cast<HashKind>(200);
  EXPECT_EQ(make_hasher(later, kSeed), nullptr);
  EXPECT_EQ(name_of(later), "unknown");
}

TEST(HashRegistry, HasNoDigestWhereOpenSslIsSetUpWithoutAndLeavesNoErrorBehind) {
  ERR_clear_error();
  ASSERT_EQ(EVP_set_default_properties(nullptr, "provider=absent"), 1);
  const auto md5 = make_hasher(HashKind::md5, kSeed);
  const auto xxh3 = make_hasher(HashKind::xxh3, kSeed);
  ASSERT_EQ(EVP_set_default_properties(nullptr, ""), 1);
  EXPECT_EQ(md5, nullptr);
  EXPECT_NE(xxh3, nullptr);
  EXPECT_EQ(ERR_peek_error(), 0u);
}

}  // namespace
}  // namespace belay::fingerprint
