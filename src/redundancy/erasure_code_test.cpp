// SPDX-License-Identifier: Apache-2.0
#include "redundancy/erasure_code.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace belay::redundancy {
namespace {

using String = std::vector<std::byte>;
using Positions = std::vector<std::uint32_t>;

constexpr std::size_t kLengths[] = {0, 1, 15, 63, 64, 65, 127, 4096, 4097, 10007};
constexpr std::byte kGuard{0xA5};

// The plain loops that the kernels must agree with.
std::uint8_t plain_product(std::uint8_t a, std::uint8_t b) {
  unsigned product = 0;
  for (unsigned bit = 0; bit < 8; ++bit)
    if ((b >> bit & 1) != 0) product ^= static_cast<unsigned>(a) << bit;
  for (unsigned bit = 14; bit >= 8; --bit)
    if ((product >> bit & 1) != 0) product ^= 0x11du << (bit - 8);
  return static_cast<std::uint8_t>(product);
}

std::uint8_t plain_quotient(std::uint8_t a, std::uint8_t b) {
  for (unsigned quotient = 0; quotient < 256; ++quotient)
    if (plain_product(static_cast<std::uint8_t>(quotient), b) == a)
      return static_cast<std::uint8_t>(quotient);
  ADD_FAILURE() << "division by zero";
  return 0;
}

String plain_shard(const ErasureScheme& scheme, std::uint32_t shard, std::span<const Bytes> members,
                   std::size_t length) {
  String sums(length);
  for (std::uint32_t member = 0; member < scheme.members; ++member) {
    const std::uint32_t k = scheme.members;
    const std::uint8_t factor = plain_quotient(static_cast<std::uint8_t>(k ^ member),
                                               static_cast<std::uint8_t>((k + shard) ^ member));
    std::uint8_t products[256];
    for (unsigned value = 0; value < 256; ++value)
      products[value] = plain_product(factor, static_cast<std::uint8_t>(value));
    for (std::size_t i = 0; i < std::min(length, members[member].size()); ++i)
      sums[i] ^= std::byte{products[static_cast<std::uint8_t>(members[member][i])]};
  }
  return sums;
}

/// Strings of one length, the i-th `shift` * i bytes past a multiple of 64, with guards around them
/// that must stay.
class Strings {
 public:
  Strings(std::size_t count, std::size_t length, std::size_t shift = 1) : length_(length) {
    for (std::size_t i = 0; i < count; ++i) {
      memory_.emplace_back(length + 3 * kLine, kGuard);
      const std::size_t past = reinterpret_cast<std::uintptr_t>(memory_.back().data()) % kLine;
      spans_.push_back(
          MutableBytes(memory_.back()).subspan(kLine - past + i * shift % kLine, length));
    }
  }
  ~Strings() {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const auto begin = spans_[i].data() - memory_[i].data();
      const auto is_guard = [](std::byte byte) { return byte == kGuard; };
      EXPECT_TRUE(std::all_of(memory_[i].begin(), memory_[i].begin() + begin, is_guard));
      EXPECT_TRUE(std::all_of(memory_[i].begin() + begin + static_cast<std::ptrdiff_t>(length_),
                              memory_[i].end(), is_guard));
    }
  }
  Strings(const Strings&) = delete;
  Strings& operator=(const Strings&) = delete;

  void fill(std::mt19937_64& random) {
    for (const MutableBytes string : spans_)
      std::ranges::generate(string, [&] { return static_cast<std::byte>(random()); });
  }
  void clear() {
    for (const MutableBytes string : spans_) std::ranges::fill(string, std::byte{0});
  }
  std::span<const MutableBytes> spans() const { return spans_; }
  std::vector<Bytes> bytes() const { return {spans_.begin(), spans_.end()}; }
  std::size_t size() const { return spans_.size(); }

 private:
  static constexpr std::size_t kLine = 64;
  std::size_t length_;
  std::vector<String> memory_;
  std::vector<MutableBytes> spans_;
};

bool equal(Bytes a, Bytes b) { return std::ranges::equal(a, b); }

ErasureCode code_of(std::uint32_t k, std::uint32_t m) { return *ErasureCode::make({k, m}); }

/// Rebuilds `lost` of the codeword from k others, chosen by `random`, and compares.
void expect_rebuilt(const ErasureCode& code, const std::vector<Bytes>& codeword,
                    const Positions& lost, std::mt19937_64& random) {
  Positions known;
  for (std::uint32_t at = 0; at < code.scheme().width(); ++at)
    if (std::ranges::find(lost, at) == lost.end()) known.push_back(at);
  std::ranges::shuffle(known, random);
  known.resize(code.scheme().members);
  std::vector<Bytes> survivors;
  for (const std::uint32_t at : known) survivors.push_back(codeword[at]);

  Strings rebuilt(lost.size(), codeword[0].size(), 3);
  const auto done = code.rebuild(lost, known, survivors, rebuilt.spans());
  ASSERT_TRUE(done) << done.error().message();
  for (std::size_t i = 0; i < lost.size(); ++i)
    ASSERT_TRUE(equal(rebuilt.spans()[i], codeword[lost[i]]))
        << name_of(code.scheme()) << " position " << lost[i] << " of " << lost.size() << " lost";
}

/// A codeword of random members and their shards. Both Strings must outlive it.
std::vector<Bytes> encoded(const ErasureCode& code, Strings& members, Strings& shards,
                           std::mt19937_64& random) {
  members.fill(random);
  code.encode(members.bytes(), shards.spans());
  std::vector<Bytes> codeword = members.bytes();
  codeword.insert(codeword.end(), shards.spans().begin(), shards.spans().end());
  return codeword;
}

TEST(ErasureCode, EncodesAsPlainLoopsDo) {
  std::mt19937_64 random(1);
  for (const auto& [k, m] : {std::pair{1u, 1u}, {1u, 3u}, {2u, 1u}, {3u, 2u}, {5u, 7u}, {17u, 13u}})
    for (const std::size_t length : kLengths)
      for (const std::size_t shift : {0u, 1u, 16u, 32u}) {
        const ErasureCode code = code_of(k, m);
        Strings members(k, length, shift), shards(m, length, shift);
        encoded(code, members, shards, random);
        for (std::uint32_t i = 0; i < m; ++i)
          ASSERT_TRUE(
              equal(shards.spans()[i], plain_shard(code.scheme(), i, members.bytes(), length)))
              << name_of(code.scheme()) << " shard " << i << ", " << length << " bytes";
      }
}

TEST(ErasureCode, EncodesLongStringsWithOddEndsAsPlainLoopsDo) {
  constexpr std::size_t kStep = std::size_t{64} << 10;  // of the implementation
  std::mt19937_64 random(2);
  for (const std::uint32_t m : {1u, 2u, 7u})
    for (const std::size_t length :
         {kStep, kStep + 1, 2 * kStep - 1, 2 * kStep + 63, 3 * kStep + 1}) {
      const ErasureCode code = code_of(3, m);
      Strings members(3, length), shards(m, length), added(m, length);
      encoded(code, members, shards, random);
      added.clear();
      for (std::uint32_t j = 0; j < 3; ++j) code.add_member(j, members.spans()[j], added.spans());
      for (std::uint32_t i = 0; i < m; ++i) {
        const String plain = plain_shard(code.scheme(), i, members.bytes(), length);
        ASSERT_TRUE(equal(shards.spans()[i], plain)) << m << " shards, " << length << " bytes";
        ASSERT_TRUE(equal(added.spans()[i], plain)) << m << " shards, " << length << " bytes";
      }
    }
}

TEST(ErasureCode, MembersAddedOneByOneInAnyOrderGiveTheSameShards) {
  std::mt19937_64 random(3);
  for (const auto& [k, m] : {std::pair{1u, 1u}, {4u, 1u}, {4u, 2u}, {6u, 3u}, {9u, 8u}})
    for (const std::size_t length : kLengths)
      for (const std::size_t shift : {0u, 1u}) {
        const ErasureCode code = code_of(k, m);
        Strings members(k, length, shift), shards(m, length, shift), added(m, length, shift);
        encoded(code, members, shards, random);
        added.clear();
        Positions order(k);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::shuffle(order, random);
        for (const std::uint32_t j : order) code.add_member(j, members.spans()[j], added.spans());
        for (std::uint32_t i = 0; i < m; ++i)
          ASSERT_TRUE(equal(added.spans()[i], shards.spans()[i])) << name_of(code.scheme());
      }
}

TEST(ErasureCode, ShortMembersCountAsZeros) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 400; ++round) {
    const auto k = static_cast<std::uint32_t>(1 + random() % 9);
    const auto m = static_cast<std::uint32_t>(1 + random() % 4);
    const std::size_t length = random() % 700;
    const ErasureCode code = code_of(k, m);
    Strings members(k, length, random() % 2 * 32), shards(m, length), added(m, length);
    members.fill(random);
    std::vector<Bytes> cut = members.bytes();
    for (Bytes& member : cut)
      member = member.first(random() % 3 == 0 ? 0 : random() % (length + 1));
    code.encode(cut, shards.spans());
    added.clear();
    for (std::uint32_t j = 0; j < k; ++j) code.add_member(j, cut[j], added.spans());
    for (std::uint32_t i = 0; i < m; ++i) {
      const String plain = plain_shard(code.scheme(), i, cut, length);
      ASSERT_TRUE(equal(shards.spans()[i], plain)) << "round " << round;
      ASSERT_TRUE(equal(added.spans()[i], plain)) << "round " << round;
    }
  }
}

TEST(ErasureCode, PieceByPieceGivesTheSameBytesAsTheWhole) {
  std::mt19937_64 random(5);
  constexpr std::size_t kLength = 100'003;
  const ErasureCode code = code_of(4, 2);
  Strings members(4, kLength), shards(2, kLength), pieces(2, kLength);
  encoded(code, members, shards, random);
  for (std::size_t at = 0; at < kLength;) {
    const std::size_t bytes = std::min<std::size_t>(1 + random() % 9000, kLength - at);
    std::vector<Bytes> from;
    std::vector<MutableBytes> to;
    for (const MutableBytes member : members.spans()) from.push_back(member.subspan(at, bytes));
    for (const MutableBytes shard : pieces.spans()) to.push_back(shard.subspan(at, bytes));
    code.encode(from, to);
    at += bytes;
  }
  for (std::uint32_t i = 0; i < 2; ++i) EXPECT_TRUE(equal(pieces.spans()[i], shards.spans()[i]));
}

TEST(ErasureCode, TheFirstShardIsTheXorOfAllMembers) {
  std::mt19937_64 random(6);
  for (const auto& [k, m] : {std::pair{1u, 1u}, {2u, 1u}, {7u, 1u}, {254u, 1u}, {5u, 3u}}) {
    const ErasureCode code = code_of(k, m);
    Strings members(k, 1001, 32), shards(m, 1001, 32);
    encoded(code, members, shards, random);
    String sum(1001);
    for (const MutableBytes member : members.spans())
      std::ranges::transform(sum, member, sum.begin(), std::bit_xor<>());
    EXPECT_TRUE(equal(shards.spans()[0], sum)) << name_of(code.scheme());
  }
}

TEST(ErasureCode, ZerosGiveZeros) {
  const ErasureCode code = code_of(5, 3);
  Strings members(5, 777), shards(3, 777);
  members.clear();
  code.encode(members.bytes(), shards.spans());
  for (const MutableBytes shard : shards.spans()) EXPECT_TRUE(equal(shard, String(777)));
  code.encode(std::vector<Bytes>(5), shards.spans());
  for (const MutableBytes shard : shards.spans()) EXPECT_TRUE(equal(shard, String(777)));
}

TEST(ErasureCode, EveryLossOfUpToMPositionsIsRebuilt) {
  std::mt19937_64 random(7);
  for (const auto& [k, m] : {std::pair{1u, 1u},
                             {1u, 3u},
                             {2u, 1u},
                             {3u, 1u},
                             {2u, 2u},
                             {4u, 2u},
                             {5u, 3u},
                             {6u, 3u},
                             {8u, 2u},
                             {8u, 3u},
                             {3u, 5u}}) {
    const ErasureCode code = code_of(k, m);
    std::size_t round = 0;
    for (std::uint32_t pattern = 1; pattern < 1u << (k + m); ++pattern) {
      if (static_cast<std::uint32_t>(__builtin_popcount(pattern)) > m) continue;
      Positions lost;
      for (std::uint32_t at = 0; at < k + m; ++at)
        if ((pattern >> at & 1) != 0) lost.push_back(at);
      const std::size_t length = kLengths[round++ % std::size(kLengths)];
      Strings members(k, length), shards(m, length);
      expect_rebuilt(code, encoded(code, members, shards, random), lost, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ErasureCode, WideCodesRebuildSampledLosses) {
  std::mt19937_64 random(8);
  for (const auto& [k, m] :
       {std::pair{20u, 4u}, {100u, 20u}, {200u, 55u}, {254u, 1u}, {1u, 254u}, {127u, 128u}}) {
    const ErasureCode code = code_of(k, m);
    Strings members(k, 257), shards(m, 257);
    const std::vector<Bytes> codeword = encoded(code, members, shards, random);
    for (int sample = 0; sample < 6; ++sample) {
      Positions lost(k + m);
      std::iota(lost.begin(), lost.end(), 0);
      std::ranges::shuffle(lost, random);
      lost.resize(sample == 0 ? m : 1 + random() % m);
      expect_rebuilt(code, codeword, lost, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ErasureCode, ShortSurvivorsRebuildToo) {
  std::mt19937_64 random(9);
  const ErasureCode code = code_of(4, 2);
  Strings members(4, 500), shards(2, 500), rebuilt(2, 500);
  members.fill(random);
  std::vector<Bytes> cut = members.bytes();
  cut[1] = cut[1].first(130);
  cut[3] = cut[3].first(0);
  code.encode(cut, shards.spans());
  const Positions lost{0, 2}, known{5, 1, 3, 4};
  const std::vector<Bytes> survivors{shards.spans()[1], cut[1], cut[3], shards.spans()[0]};
  ASSERT_TRUE(code.rebuild(lost, known, survivors, rebuilt.spans()));
  EXPECT_TRUE(equal(rebuilt.spans()[0], cut[0]));
  EXPECT_TRUE(equal(rebuilt.spans()[1], cut[2]));
}

TEST(ErasureCode, OneShardAloneIsARebuildFromAllMembers) {
  std::mt19937_64 random(10);
  const ErasureCode code = code_of(3, 3);
  Strings members(3, 333), shards(3, 333), alone(1, 333);
  encoded(code, members, shards, random);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto matrix = code.rebuild_matrix(Positions{3 + i}, Positions{0, 1, 2});
    ASSERT_TRUE(matrix);
    alone.clear();
    for (std::size_t j = 0; j < 3; ++j) matrix->add(j, members.spans()[j], alone.spans());
    EXPECT_TRUE(equal(alone.spans()[0], shards.spans()[i]));
  }
}

TEST(ErasureCode, RefusesSchemesThatCannotBe) {
  for (const ErasureScheme& scheme : {ErasureScheme{0, 1}, ErasureScheme{1, 0}, ErasureScheme{},
                                      ErasureScheme{200, 56}, ErasureScheme{~0u, 2}}) {
    const auto code = ErasureCode::make(scheme);
    ASSERT_FALSE(code) << name_of(scheme);
    EXPECT_EQ(code.error().code(), Code::invalid_argument);
    EXPECT_NE(code.error().message().find(name_of(scheme)), std::string::npos);
  }
  EXPECT_TRUE(ErasureCode::make({200, 55}));
}

TEST(ErasureCode, RefusesRebuildsFromWrongPositions) {
  const ErasureCode code = code_of(3, 2);
  const auto code_of_refusal = [&](const Positions& wanted, const Positions& known) {
    const auto matrix = code.rebuild_matrix(wanted, known);
    return matrix ? Code::busy : matrix.error().code();
  };
  EXPECT_EQ(code_of_refusal({0}, {1, 2}), Code::invalid_argument);
  EXPECT_EQ(code_of_refusal({0}, {1, 2, 3, 4}), Code::invalid_argument);
  EXPECT_EQ(code_of_refusal({0}, {1, 2, 2}), Code::invalid_argument);
  EXPECT_EQ(code_of_refusal({0}, {1, 2, 5}), Code::invalid_argument);
  EXPECT_EQ(code_of_refusal({5}, {1, 2, 3}), Code::invalid_argument);
  EXPECT_EQ(code_of_refusal({}, {1, 2, 3}), Code::invalid_argument);
}

}  // namespace
}  // namespace belay::redundancy
