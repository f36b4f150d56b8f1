// SPDX-License-Identifier: Apache-2.0
#include "format/shard.hpp"

#include "format/checksum.hpp"
#include "format/segment.hpp"

#include <gtest/gtest.h>

namespace belay::format {
namespace {

ShardDescription example(std::uint64_t parity_bytes) {
  ShardDescription description{.origin = {{1, 2}, 3, {4, 5}, 0, 7},
                               .stripe = {.key = {4, 5},
                                          .number = 6,
                                          .level = Level::erasure(2, 1),
                                          .members = {{2, 8192, 128, 4096}, {}, {0, 4096, 0, 0}}},
                               .seat = 2,
                               .index = 0,
                               .parity_bytes = parity_bytes,
                               .checksums = {}};
  for (std::uint64_t at = 0; at < parity_bytes; at += kShardUnit)
    description.checksums.push_back(at * 31 + 1);
  return description;
}

Result<ShardDescription> decode(std::span<const std::byte> end, std::uint64_t parity_bytes) {
  const auto last = end.last(kShardFooterBytes);
  const auto footer = decode_shard_footer(last, parity_bytes + end.size());
  if (!footer) return Unexpected(footer.error());
  return decode_shard_description(
      end.subspan(footer->description_offset - parity_bytes, footer->description_bytes), *footer);
}

TEST(Shard, ADescriptionComesBackAsItWas) {
  for (const std::uint64_t parity : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4032},
                                     kShardUnit, kShardUnit + 1, 5 * kShardUnit - 7}) {
    const auto description = example(parity);
    const auto end = encode_shard_end(description);
    EXPECT_EQ((parity + end.size()) % kFileAlignment, 0u);
    const auto decoded = decode(end, parity);
    ASSERT_TRUE(decoded) << parity << ": " << decoded.error().message();
    EXPECT_EQ(*decoded, description);
  }
}

TEST(Shard, EachFlippedBitOfDescriptionAndFooterIsCorruption) {
  const std::uint64_t parity = 1000;
  const auto end = encode_shard_end(example(parity));
  const auto footer =
      decode_shard_footer(std::span(end).last(kShardFooterBytes), parity + end.size());
  ASSERT_TRUE(footer);
  const std::size_t begin = footer->description_offset - parity;
  for (std::size_t at = 0; at < end.size(); ++at) {
    const bool padding = at < begin || (at >= begin + footer->description_bytes &&
                                        at < end.size() - kShardFooterBytes);
    if (padding) continue;  // store::ShardFile looks at it
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = end;
      damaged[at] ^= static_cast<std::byte>(1 << bit);
      const auto decoded = decode(damaged, parity);
      ASSERT_FALSE(decoded) << at;
      EXPECT_EQ(decoded.error().code(), Code::corruption);
    }
  }
}

TEST(Shard, AFileThatWasCutOrStretchedIsCorruption) {
  const auto end = encode_shard_end(example(1000));
  const auto footer = std::span(end).last(kShardFooterBytes);
  const std::uint64_t bytes = 1000 + end.size();
  EXPECT_TRUE(decode_shard_footer(footer, bytes));
  for (const std::uint64_t wrong : {std::uint64_t{0}, bytes - kFileAlignment, bytes - 1,
                                    bytes + kFileAlignment, ~std::uint64_t{0}})
    EXPECT_FALSE(decode_shard_footer(footer, wrong)) << wrong;
  EXPECT_FALSE(decode_shard_footer(footer.first(kShardFooterBytes - 1), bytes));
}

/// A description that is sealed as if Belay had written it, whatever it says.
void expect_refused(const ShardDescription& description, const char* why) {
  const auto decoded = decode(encode_shard_end(description), description.parity_bytes);
  ASSERT_FALSE(decoded) << why;
  EXPECT_EQ(decoded.error().code(), Code::corruption) << why;
}

TEST(Shard, SealedNonsenseIsCorruption) {
  const auto with = [](const auto& change) {
    auto description = example(1000);
    change(description);
    return description;
  };
  using D = ShardDescription;
  expect_refused(with([](D& d) { d.seat = 3; }), "a seat that there is not");
  expect_refused(with([](D& d) { d.index = 1; }), "a shard that there is not");
  expect_refused(with([](D& d) { d.origin.rank = 1; }), "a shard is of no rank");
  expect_refused(with([](D& d) { d.origin.ranks = 0; }), "no ranks");
  expect_refused(with([](D& d) { d.stripe.level = Level::erasure(3, 1); }), "too few seats");
  expect_refused(with([](D& d) { d.stripe.level = Level::erasure(0, 1); }), "no members");
  expect_refused(with([](D& d) { d.stripe.level = Level::erasure(2, 0); }), "no shards");
  expect_refused(with([](D& d) { d.stripe.members[2].rank = 2; }), "a rank twice");
  expect_refused(with([](D& d) { d.stripe.members[2].rank = 7; }), "a rank too many");
  expect_refused(with([](D& d) { d.stripe.members[2].file_bytes = 100; }), "no size of a file");
  expect_refused(with([](D& d) { d.stripe.members[0].gap_bytes = 8192; }), "a gap past the end");
  expect_refused(with([](D& d) { d.stripe.members[0].gap_begin = ~0ull; }), "a gap that wraps");
  expect_refused(with([](D& d) { d.stripe.members[1].file_bytes = 4096; }), "bytes of nobody");
  expect_refused(with([](D& d) { d.checksums.push_back(1); }), "a checksum too many");
  expect_refused(with([](D& d) { d.checksums.clear(); }), "a checksum too few");
}

}  // namespace
}  // namespace belay::format
