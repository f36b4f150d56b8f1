// SPDX-License-Identifier: Apache-2.0
#include "format/segment.hpp"

#include "format/checksum.hpp"
#include "format/damage_test.hpp"
#include "format/vector_sink.hpp"

#include <algorithm>
#include <functional>

namespace belay::format {
namespace {

SegmentHeader example_header() {
  SegmentHeader header;
  header.origin = {{0x0123456789abcdef, 0xfedcba9876543210}, 42, {3, 12}, 5, 8};
  header.hash = HashKind::sha1;
  header.block_bytes = 512;
  return header;
}

/// `extents` extents of `blocks` blocks each; the last block of each extent is short.
struct Example {
  SegmentHeader header = example_header();
  std::vector<Extent> extents;
  std::vector<IndexEntry> entries;
  std::uint64_t index_offset = kSegmentHeaderBytes;
};

Example make_example(std::size_t extents, std::uint32_t blocks) {
  Example example;
  for (std::size_t e = 0; e < extents; ++e) {
    Extent extent;
    extent.offset = example.index_offset;
    extent.first_entry = example.entries.size();
    extent.entries = blocks;
    for (std::uint32_t b = 0; b < blocks; ++b) {
      const std::uint32_t length = b + 1 < blocks ? 512 : 1 + static_cast<std::uint32_t>(e) % 511;
      example.entries.push_back({{example.entries.size(), ~std::uint64_t{e}}, length});
      extent.raw_bytes += length;
    }
    extent.encoded_bytes = extent.raw_bytes;
    example.index_offset += extent.encoded_bytes;
    example.extents.push_back(extent);
  }
  return example;
}

Result<std::vector<std::byte>> try_encode(const Example& example) {
  VectorSink sink(encode_segment_header(example.header));
  const std::vector<std::byte> payload(example.index_offset - kSegmentHeaderBytes, std::byte{0xaa});
  EXPECT_TRUE(sink.append(payload));
  std::size_t at = 0;
  const auto ended =
      encode_segment_end(sink, example.header, example.extents, example.entries.size(),
                         [&] { return example.entries[at++]; });
  if (!ended) return Unexpected(ended.error());
  return std::move(sink.bytes());
}

struct Decoded {
  SegmentHeader header;
  SegmentFooter footer;
  SegmentIndex index;
};

/// Reads a file as a store does: header, footer, index.
Result<Decoded> decode_segment(std::span<const std::byte> file) {
  Decoded decoded;
  const auto header = decode_segment_header(file.first(std::min(file.size(), kSegmentHeaderBytes)));
  if (!header) return Unexpected(header.error());
  const auto footer =
      decode_segment_footer(file.last(std::min(file.size(), kSegmentFooterBytes)), file.size());
  if (!footer) return Unexpected(footer.error());
  const std::uint64_t index_end = file.size() - kSegmentFooterBytes;
  auto index = decode_segment_index(
      file.subspan(footer->index_offset, index_end - footer->index_offset), *footer, *header);
  if (!index) return Unexpected(index.error());
  return Decoded{*header, *footer, *std::move(index)};
}

std::vector<std::byte> encode(const Example& example) { return *try_encode(example); }

TEST(Segment, ComesBackAsItWas) {
  for (const std::size_t extents : {0u, 1u, 2u, 77u, 3000u})
    for (const std::uint32_t blocks : {1u, 2u, 51u}) {
      const Example example = make_example(extents, blocks);
      const auto file = encode(example);
      EXPECT_EQ(file.size() % kFileAlignment, 0u);
      const auto decoded = decode_segment(file);
      ASSERT_TRUE(decoded) << decoded.error().message();
      EXPECT_EQ(decoded->header, example.header);
      EXPECT_EQ(decoded->index.extents, example.extents);
      EXPECT_EQ(decoded->index.entries, example.entries);
    }
}

TEST(Segment, SizesAroundTheAlignmentComeBack) {
  for (std::uint64_t offset = 4096 - 64 - 61; offset <= 4096 - 64 - 59; ++offset) {
    Example example = make_example(1, 1);
    example.index_offset = offset;
    const auto file = encode(example);
    EXPECT_EQ(file.size(), offset <= 4096 - 64 - 60 ? 4096u : 8192u);
    EXPECT_TRUE(decode_segment(file));
  }
}

TEST(Segment, EveryFlippedBitOutsideThePayloadIsFound) {
  Example example = make_example(2, 3);
  example.extents.clear();
  example.entries.clear();
  example.index_offset = kSegmentHeaderBytes;
  expect_every_flip_is_refused(encode(example), decode_segment);

  example = make_example(2, 3);
  const auto file = encode(example);
  expect_every_flip_is_refused(
      {file.begin() + static_cast<std::ptrdiff_t>(example.index_offset), file.end()},
      [&](std::span<const std::byte> flipped) {
        auto whole = file;
        std::copy(flipped.begin(), flipped.end(),
                  whole.begin() + static_cast<std::ptrdiff_t>(example.index_offset));
        return decode_segment(whole);
      });
}

TEST(Segment, EveryCutIsCorruption) {
  expect_every_cut_is_corruption(encode(make_example(1, 3)), decode_segment);
}

TEST(Segment, HeaderAndFooterOfAnotherLengthAreCorruption) {
  const auto file = encode(make_example(1, 3));
  const std::vector<std::byte> header(file.begin(), file.begin() + kSegmentHeaderBytes);
  expect_every_cut_is_corruption(header, decode_segment_header);
  EXPECT_FALSE(decode_segment_header(std::span(file).first(kSegmentHeaderBytes + 1)));
  const std::vector<std::byte> footer(file.end() - kSegmentFooterBytes, file.end());
  expect_every_cut_is_corruption(footer, [&](std::span<const std::byte> bytes) {
    return decode_segment_footer(bytes, file.size());
  });
}

TEST(Segment, NewerVersionIsUnsupported) {
  const auto file = encode(make_example(1, 3));
  expect_newer_version_is_unsupported({file.begin(), file.begin() + kSegmentHeaderBytes},
                                      decode_segment_header);
  expect_newer_version_is_unsupported(
      {file.end() - kSegmentFooterBytes, file.end()},
      [&](std::span<const std::byte> bytes) { return decode_segment_footer(bytes, file.size()); });
}

TEST(Segment, FooterOfAnotherFileIsCorruption) {
  Example example = make_example(1, 3);
  auto file = encode(example);
  example.header.origin.key.version++;
  const auto other = encode(example);
  std::copy(other.begin(), other.begin() + kSegmentHeaderBytes, file.begin());
  const auto decoded = decode_segment(file);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::corruption);
  EXPECT_NE(decoded.error().message().find("different files"), std::string::npos);
}

TEST(Segment, FooterOfAFileOfAnotherSizeIsCorruption) {
  const auto file = encode(make_example(1, 3));
  const auto footer = std::span(file).last(kSegmentFooterBytes);
  EXPECT_TRUE(decode_segment_footer(footer, file.size()));
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{64}, file.size() - 1,
                                   file.size() + kFileAlignment, UINT64_MAX, UINT64_MAX - 4095})
    EXPECT_FALSE(decode_segment_footer(footer, size)) << size;
}

/// Fields that lie, under checksums that fit: only the rules can refuse them.
class HostileSegment : public testing::Test {
 protected:
  void fix_checksums() {
    const auto sum = [&](std::size_t from, std::size_t to) {
      return checksum64(std::span(file_).subspan(from, to - from));
    };
    overwrite(file_, 120, sum(0, 120));
    overwrite(file_, footer_ + 40, sum(example_.index_offset, footer_));
    overwrite(file_, footer_ + 48, sum(0, 120));
    overwrite(file_, footer_ + 56, sum(footer_, footer_ + 56));
  }
  template <class T>
  void expect_corruption(std::size_t offset, T value) {
    const auto good = file_;
    overwrite(file_, offset, value);
    fix_checksums();
    const auto decoded = decode_segment(file_);
    ASSERT_FALSE(decoded) << "offset " << offset << ", value " << value;
    EXPECT_EQ(decoded.error().code(), Code::corruption);
    file_ = good;
  }

  Example example_ = make_example(2, 3);
  std::vector<std::byte> file_ = encode(example_);
  std::size_t footer_ = file_.size() - kSegmentFooterBytes;
};

TEST_F(HostileSegment, TheFixtureItselfIsAccepted) {
  fix_checksums();
  EXPECT_TRUE(decode_segment(file_));
}

TEST_F(HostileSegment, HeaderFieldsAreJudged) {
  expect_corruption(8, std::uint32_t{0});     // format version
  expect_corruption(12, kMinBlockBytes - 1);  // block size
  expect_corruption(12, kMaxBlockBytes + 1);
  expect_corruption(12, std::uint32_t{0});
  expect_corruption(56, example_.header.origin.ranks);  // rank
  expect_corruption(60, std::uint32_t{0});              // ranks
  expect_corruption(64, std::uint8_t{4});               // hash
  for (std::size_t at = 65; at < 120; ++at) expect_corruption(at, std::uint8_t{1});
}

TEST_F(HostileSegment, FooterFieldsAreJudged) {
  expect_corruption(footer_ + 12, std::uint32_t{1});  // reserved
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{4096}, UINT64_MAX, UINT64_MAX - 63,
        std::uint64_t{1} << 63, UINT64_MAX / 40, UINT64_MAX / 20}) {
    expect_corruption(footer_ + 16, value);  // index_offset
    expect_corruption(footer_ + 24, value);  // extents
    expect_corruption(footer_ + 32, value);  // entries
  }
  expect_corruption(footer_ + 24, std::uint64_t{1});
  expect_corruption(footer_ + 32, std::uint64_t{5});
}

TEST_F(HostileSegment, FooterCountsThatWrapToTheRightSizeAreCorruption) {
  const auto expect_refused = [&](std::size_t offset, std::uint64_t count) {
    overwrite(file_, footer_ + offset, count);
    fix_checksums();
    EXPECT_FALSE(decode_segment_footer(std::span(file_).subspan(footer_), file_.size()));
  };
  expect_refused(24, 2 + (std::uint64_t{1} << 61));  // times 40 is 5 * 2^64 too much
  overwrite(file_, footer_ + 24, std::uint64_t{2});
  expect_refused(32, 6 + (std::uint64_t{1} << 62));  // times 20 as well
}

TEST_F(HostileSegment, ExtentsAreJudged) {
  const std::size_t first = example_.index_offset, second = first + 40;
  const Extent& one = example_.extents[0];
  const Extent& two = example_.extents[1];
  expect_corruption(first, std::uint64_t{127});  // inside the header
  expect_corruption(first, one.offset + 1);      // overlaps the second
  expect_corruption(second, two.offset - 1);     // overlaps the first
  expect_corruption(second, two.offset + 1);     // leaves the payload
  expect_corruption(second, UINT64_MAX);
  expect_corruption(second + 8, UINT64_MAX - two.offset + 1);  // the end wraps to 0
  expect_corruption(second + 8, two.encoded_bytes - 1);        // raw, but not as long
  expect_corruption(second + 16, two.raw_bytes - 1);
  expect_corruption(second + 24, two.first_entry - 1);
  expect_corruption(second + 24, UINT64_MAX);
  expect_corruption(second + 32, std::uint32_t{0});
  expect_corruption(second + 32, std::uint32_t{2});
  expect_corruption(second + 32, UINT32_MAX);
  expect_corruption(second + 36, std::uint16_t{1});  // codec
  expect_corruption(second + 38, std::uint16_t{1});  // reserved
}

TEST_F(HostileSegment, EntriesAndPaddingAreJudged) {
  const std::size_t entry = example_.index_offset + 2 * 40;
  expect_corruption(entry + 16, std::uint32_t{0});
  expect_corruption(entry + 16, std::uint32_t{513});
  expect_corruption(entry + 16, std::uint32_t{511});  // the sum does not fit
  expect_corruption(entry + 6 * 20, std::uint8_t{1});
  expect_corruption(footer_ - 1, std::uint8_t{1});
}

TEST_F(HostileSegment, IndexShorterThanItsFooterSaysIsCorruption) {
  const auto header = decode_segment_header(std::span(file_).first(kSegmentHeaderBytes));
  SegmentFooter footer{128, UINT64_MAX, UINT64_MAX, 0, 0};
  EXPECT_FALSE(decode_segment_index({}, footer, *header));
  footer.extents = 0;
  EXPECT_FALSE(decode_segment_index({}, footer, *header));
}

TEST(Segment, WriterRefusesWhatReadersWouldRefuse) {
  const auto expect_invalid = [](const std::function<void(Example&)>& spoil) {
    Example example = make_example(2, 3);
    spoil(example);
    const auto encoded = try_encode(example);
    ASSERT_FALSE(encoded);
    EXPECT_EQ(encoded.error().code(), Code::invalid_argument);
  };
  expect_invalid([](Example& e) { e.extents.clear(); });
  expect_invalid([](Example& e) { e.extents[1].offset--; });
  expect_invalid([](Example& e) { e.extents[1].raw_bytes--; });
  expect_invalid([](Example& e) { e.index_offset--; });
  expect_invalid([](Example& e) { e.entries[0].length = 0; });
  expect_invalid([](Example& e) { e.entries.pop_back(); });
  expect_invalid([](Example& e) { e.header.block_bytes = 511; });
  expect_invalid([](Example& e) { e.header.origin.rank = 8; });
}

TEST(Segment, ErrorsOfTheSinkAreReturned) {
  class FullSink final : public ByteSink {
   public:
    Result<void> append(std::span<const std::byte>) override {
      return Unexpected(Error(Code::no_space, "full"));
    }
    std::uint64_t offset() const override { return kSegmentHeaderBytes; }
  };
  FullSink sink;
  const auto ended = encode_segment_end(sink, example_header(), {}, 0, [] { return IndexEntry(); });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), Code::no_space);
}

}  // namespace
}  // namespace belay::format
