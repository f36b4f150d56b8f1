// SPDX-License-Identifier: Apache-2.0
// The example of docs/format.md, section 7: its bytes must never change within a format version.
#include "format/checksum.hpp"
#include "format/manifest.hpp"
#include "format/segment.hpp"
#include "format/vector_sink.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace belay::format {
namespace {

constexpr Fingerprint kStepFingerprint = {0x174d29af159c0925, 0x1ba3a8e4c8b392b6};
constexpr std::int64_t kTimeNs = 1700000000000000000;

Origin example_origin() { return {{0x0123456789abcdef, 0xfedcba9876543210}, 42, {1, 1}, 0, 1}; }

std::span<const std::byte> step_block() {
  static constexpr std::int64_t step = 42;
  return std::as_bytes(std::span<const std::int64_t, 1>(&step, 1));
}

std::uint64_t u64_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.subspan(offset, sizeof(value)).data(), sizeof(value));
  return value;
}

TEST(FormatExample, FingerprintIsTheOneOfTheDocument) {
  const auto hash = XXH3_128bits_withSeed(step_block().data(), step_block().size(), 42);
  EXPECT_EQ((Fingerprint{hash.low64, hash.high64}), kStepFingerprint);
}

TEST(FormatExample, RunRecordIsTheOneOfTheDocument) {
  const Origin origin = example_origin();
  const auto file =
      encode_run_record({origin.store, origin.seed, 1, 1, "heat", "n17", 4711, kTimeNs});
  ASSERT_EQ(file.size(), 0x57u);
  EXPECT_EQ(u64_at(file, 0x4f), 0x5dfa70dcef738d9eu);
}

TEST(FormatExample, SegmentIsTheOneOfTheDocument) {
  const SegmentHeader header = {example_origin(), HashKind::xxh3, 512};
  VectorSink sink(encode_segment_header(header));
  ASSERT_TRUE(sink.append(step_block()));
  const Extent extent = {128, 8, 8, 0, 1, CodecId::raw};
  ASSERT_TRUE(encode_segment_end(sink, header, {&extent, 1}, 1, [] {
    return IndexEntry{kStepFingerprint, 8};
  }));
  const auto& file = sink.bytes();
  ASSERT_EQ(file.size(), 0x1000u);
  EXPECT_EQ(u64_at(file, 0x78), 0xef5347a6dc0d0d90u);
  EXPECT_EQ(u64_at(file, 0xfe8), 0x246ed9a7c91b24f1u);
  EXPECT_EQ(u64_at(file, 0xff8), 0x1d29c6a0a76b5b67u);
}

TEST(FormatExample, ManifestIsTheOneOfTheDocument) {
  Manifest manifest;
  manifest.origin = example_origin();
  manifest.application = "heat";
  manifest.block_bytes = 512;
  manifest.time_ns = kTimeNs;
  manifest.ledger.version = 1;
  manifest.ledger.protected_bytes = 8;
  manifest.ledger.written_bytes = 8;
  manifest.ledger.encoded_bytes = 8;
  manifest.ledger.file_bytes = 4096;
  manifest.segments = {{{{1, 1}, 0}, 4096}};
  manifest.regions = {{"step", {ElementKind::i64, 8, ""}, {}, 8, 0}};
  manifest.fingerprints = {kStepFingerprint};
  manifest.holders = {0};
  VectorSink sink;
  ASSERT_TRUE(encode_manifest(manifest, sink));
  ASSERT_EQ(sink.bytes().size(), 0x1000u);
  EXPECT_EQ(u64_at(sink.bytes(), 0xff0), 0xfd38238c77638628u);
  EXPECT_EQ(u64_at(sink.bytes(), 0xff8), 0xa533645cf0906736u);
}

}  // namespace
}  // namespace belay::format
