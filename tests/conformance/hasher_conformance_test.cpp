// SPDX-License-Identifier: Apache-2.0
// What every Hasher must do.
#include "fingerprint/hasher.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace belay::fingerprint {
namespace {

std::vector<std::byte> noise(std::size_t length) {
  std::vector<std::byte> bytes(length);
  std::uint64_t state = 88172645463325252u;
  for (std::byte& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<std::byte>(state);
  }
  return bytes;
}

std::pair<std::uint64_t, std::uint64_t> key(const Fingerprint& fingerprint) {
  return {fingerprint.low, fingerprint.high};
}

class HasherConformance : public ::testing::TestWithParam<HashKind> {
 protected:
  void SetUp() override {
    hasher_ = make_hasher(GetParam(), 42);
    if (!hasher_) GTEST_SKIP() << "this OpenSSL has no " << name_of(GetParam());
  }
  std::unique_ptr<Hasher> hasher_;
};

TEST_P(HasherConformance, EqualBytesHaveEqualFingerprintsWhereverTheyLie) {
  const auto bytes = noise(4096);
  const Fingerprint expected = hasher_->hash(bytes);
  std::vector<std::byte> moved(bytes.size() + 64);
  for (std::size_t offset = 0; offset < 64; ++offset) {
    std::memcpy(moved.data() + offset, bytes.data(), bytes.size());
    EXPECT_EQ(hasher_->hash(Block(moved).subspan(offset, bytes.size())), expected) << offset;
  }
}

TEST_P(HasherConformance, OneBitChangesBothHalvesOfTheFingerprint) {
  auto bytes = noise(512);
  const Fingerprint before = hasher_->hash(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    bytes[bit / 8] ^= mask;
    const Fingerprint after = hasher_->hash(bytes);
    EXPECT_NE(after.low, before.low) << "bit " << bit;
    EXPECT_NE(after.high, before.high) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
}

TEST_P(HasherConformance, ZerosOfEveryLengthDiffer) {
  const std::vector<std::byte> zeros(2000);
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (std::size_t length = 0; length <= zeros.size(); ++length)
    seen.insert(key(hasher_->hash(Block(zeros).first(length))));
  EXPECT_EQ(seen.size(), zeros.size() + 1);
}

TEST_P(HasherConformance, TheSeedChangesEveryFingerprint) {
  const auto other = make_hasher(GetParam(), 43);
  const auto far = make_hasher(GetParam(), 42 + (1ull << 56));
  for (const std::size_t length : {0u, 1u, 100u, 512u, 16384u}) {
    const auto bytes = noise(length);
    EXPECT_NE(hasher_->hash(bytes), other->hash(bytes)) << length;
    EXPECT_NE(hasher_->hash(bytes), far->hash(bytes)) << length;
    EXPECT_EQ(hasher_->hash(bytes), make_hasher(GetParam(), 42)->hash(bytes)) << length;
  }
}

TEST_P(HasherConformance, ABatchGivesTheFingerprintsOfItsBlocks) {
  const auto bytes = noise(100'000);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 200; ++i) blocks.push_back(Block(bytes).subspan(i * 97, i * 37));
  std::vector<Fingerprint> fingerprints(blocks.size());
  hasher_->hash(blocks, fingerprints);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    EXPECT_EQ(fingerprints[i], hasher_->hash(blocks[i])) << i;
  hasher_->hash(std::span<const Block>{}, std::span<Fingerprint>{});
}

TEST_P(HasherConformance, ThreadsMayShareAHasher) {
  const auto bytes = noise(64 * 1024);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 64; ++i) blocks.push_back(Block(bytes).subspan(i * 1024, 1024));
  std::vector<Fingerprint> expected(blocks.size());
  hasher_->hash(blocks, expected);
  std::array<std::vector<Fingerprint>, 4> found;
  std::vector<std::thread> threads;
  for (auto& mine : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        mine.assign(blocks.size(), {});
        hasher_->hash(blocks, mine);
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& mine : found) EXPECT_EQ(mine, expected);
}

INSTANTIATE_TEST_SUITE_P(Hasher, HasherConformance,
                         ::testing::Values(HashKind::xxh3, HashKind::md5, HashKind::sha1,
                                           HashKind::sha256),
                         [](const auto& tested) { return std::string(name_of(tested.param)); });

}  // namespace
}  // namespace belay::fingerprint
