// SPDX-License-Identifier: Apache-2.0
// Copies that have only some blocks of their segment: format version 2.
#include "format/checksum.hpp"
#include "format/damage_test.hpp"
#include "format/segment_maker_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace belay::format {
namespace {

using Bytes = std::vector<std::byte>;

SegmentHeader example_header() {
  SegmentHeader header;
  header.origin = {{0x0123456789abcdef, 0xfedcba9876543210}, 42, {3, 12}, 5, 8};
  header.block_bytes = 512;
  return header;
}

/// One block for each letter: 'x' is present, anything else is not. The last one is short.
std::vector<MadeBlock> make_blocks(std::string_view pattern) {
  std::vector<MadeBlock> blocks;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::size_t length = i + 1 < pattern.size() ? 512 : 100;
    blocks.push_back({{i, ~i}, Bytes(length, static_cast<std::byte>(i)), pattern[i] == 'x'});
  }
  return blocks;
}

struct Decoded {
  SegmentHeader header;
  SegmentIndex index;
};

Result<Decoded> decode_segment(std::span<const std::byte> file) {
  const auto header = decode_segment_header(file.first(std::min(file.size(), kSegmentHeaderBytes)));
  if (!header) return Unexpected(header.error());
  const auto footer =
      decode_segment_footer(file.last(std::min(file.size(), kSegmentFooterBytes)), file.size());
  if (!footer) return Unexpected(footer.error());
  const std::uint64_t end = file.size() - kSegmentFooterBytes;
  auto index = decode_segment_index(file.subspan(footer->index_offset, end - footer->index_offset),
                                    *footer, *header);
  if (!index) return Unexpected(index.error());
  return Decoded{*header, *std::move(index)};
}

std::uint32_t format_at(const Bytes& file, std::size_t offset) {
  std::uint32_t format = 0;
  std::memcpy(&format, file.data() + offset, sizeof(format));
  return format;
}

TEST(PartialSegment, ComesBackAsItWas) {
  for (const char* pattern : {"-", "x-", "-x", "x-x", "-x-", "--x-", "xx---xxx-x", "-----"}) {
    const auto blocks = make_blocks(pattern);
    const auto decoded = decode_segment(make_segment(example_header(), blocks));
    ASSERT_TRUE(decoded) << pattern << ": " << decoded.error().message();
    EXPECT_TRUE(decoded->header.partial);
    EXPECT_EQ(decoded->index.extents, extents_of(blocks)) << pattern;
    ASSERT_EQ(decoded->index.entries.size(), blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(decoded->index.entries[i].fingerprint, blocks[i].fingerprint);
      EXPECT_EQ(decoded->index.entries[i].length, blocks[i].length());
    }
  }
}

TEST(PartialSegment, IsOfFormat2AndACompleteOneOfFormat1) {
  const Bytes partial = make_segment(example_header(), make_blocks("x-x"));
  EXPECT_EQ(format_at(partial, 8), 2u);
  EXPECT_EQ(format_at(partial, partial.size() - kSegmentFooterBytes + 8), 2u);
  const Bytes complete = make_segment(example_header(), make_blocks("xxx"));
  EXPECT_EQ(format_at(complete, 8), 1u);
  EXPECT_EQ(format_at(complete, complete.size() - kSegmentFooterBytes + 8), 1u);
}

TEST(PartialSegment, HasTheSizeThatWasForetold) {
  for (std::size_t blocks = 0; blocks < 60; ++blocks)
    for (std::size_t step = 1; step < 4; ++step) {
      std::string pattern(blocks, 'x');
      for (std::size_t i = 0; i < blocks; i += step + 1) pattern[i] = '-';
      const auto made = make_blocks(pattern);
      const auto extents = extents_of(made);
      std::uint64_t payload = 0;
      for (const Extent& extent : extents) payload += extent.encoded_bytes;
      EXPECT_EQ(segment_file_bytes(payload, extents.size(), blocks),
                make_segment(example_header(), made).size());
    }
}

TEST(PartialSegment, EveryFlippedBitOutsideThePayloadIsFound) {
  const Bytes file = make_segment(example_header(), make_blocks("-x-"));
  const std::ptrdiff_t index = kSegmentHeaderBytes + 512;
  expect_every_flip_is_refused({file.begin() + index, file.end()},
                               [&](std::span<const std::byte> flipped) {
                                 Bytes whole = file;
                                 std::copy(flipped.begin(), flipped.end(), whole.begin() + index);
                                 return decode_segment(whole);
                               });
  expect_every_flip_is_refused({file.begin(), file.begin() + kSegmentHeaderBytes},
                               decode_segment_header);
}

TEST(PartialSegment, EveryCutIsCorruption) {
  expect_every_cut_is_corruption(make_segment(example_header(), make_blocks("-x-")),
                                 decode_segment);
}

TEST(PartialSegment, NewerVersionIsUnsupported) {
  const Bytes file = make_segment(example_header(), make_blocks("x-"));
  expect_newer_version_is_unsupported({file.begin(), file.begin() + kSegmentHeaderBytes},
                                      decode_segment_header);
}

/// Fields that lie, under checksums that fit: only the rules can refuse them.
class HostilePartialSegment : public testing::Test {
 protected:
  static constexpr std::size_t kIndex = kSegmentHeaderBytes + 512 + 100;

  void fix_checksums() {
    const auto sum = [&](std::size_t from, std::size_t to) {
      return checksum64(std::span(file_).subspan(from, to - from));
    };
    overwrite(file_, 120, sum(0, 120));
    overwrite(file_, footer_ + 40, sum(kIndex, footer_));
    overwrite(file_, footer_ + 48, sum(0, 120));
    overwrite(file_, footer_ + 56, sum(footer_, footer_ + 56));
  }
  void set_format(std::uint32_t format) {
    overwrite(file_, 8, format);
    overwrite(file_, footer_ + 8, format);
  }
  void expect_corruption(const std::function<void()>& spoil) {
    const Bytes good = file_;
    spoil();
    fix_checksums();
    const auto decoded = decode_segment(file_);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code(), Code::corruption) << decoded.error().message();
    file_ = good;
  }
  template <class T>
  void expect_corruption(std::size_t offset, T value) {
    SCOPED_TRACE(fmt::format("offset {}, value {}", offset, value));
    expect_corruption([&] { overwrite(file_, offset, value); });
  }

  /// Extents: raw (1 block at 128), absent (2 blocks at 640), raw (1 short block at 640).
  Bytes file_ = make_segment(example_header(), make_blocks("x--x"));
  std::size_t footer_ = file_.size() - kSegmentFooterBytes;
};

TEST_F(HostilePartialSegment, TheFixtureItselfIsAccepted) {
  fix_checksums();
  EXPECT_TRUE(decode_segment(file_));
}

TEST_F(HostilePartialSegment, AbsentExtentsAreJudged) {
  const std::size_t absent = kIndex + 40;
  expect_corruption(absent, std::uint64_t{639});       // not the end of the one before
  expect_corruption(absent, std::uint64_t{641});       // neither, though nothing is there
  expect_corruption(absent + 8, std::uint64_t{1});     // bytes in the file
  expect_corruption(absent + 8, std::uint64_t{1024});  // all of its blocks' bytes
  expect_corruption(absent + 16, std::uint64_t{1023});
  expect_corruption(absent + 16, std::uint64_t{0});
  expect_corruption(absent + 24, std::uint64_t{0});
  expect_corruption(absent + 32, std::uint32_t{0});
  expect_corruption(absent + 32, std::uint32_t{1});
  expect_corruption(absent + 36, std::uint16_t{2});
  expect_corruption(absent + 38, std::uint16_t{1});
}

TEST_F(HostilePartialSegment, AbsentBlocksInAFileOfFormat1AreCorruption) {
  expect_corruption([&] { set_format(1); });
}

TEST_F(HostilePartialSegment, HeaderAndFooterOfDifferentFormatsAreCorruption) {
  expect_corruption(8, std::uint32_t{1});
  expect_corruption(footer_ + 8, std::uint32_t{1});
}

TEST_F(HostilePartialSegment, AFileOfFormat2WithoutAbsentBlocksIsCorruption) {
  file_ = make_segment(example_header(), make_blocks("xx"));
  footer_ = file_.size() - kSegmentFooterBytes;
  expect_corruption([&] { set_format(2); });
}

TEST_F(HostilePartialSegment, AnEmptyFileOfFormat2IsCorruption) {
  SegmentHeader header = example_header();
  header.partial = true;
  VectorSink sink(encode_segment_header(header));
  const auto ended = encode_segment_end(sink, header, {}, 0, [] { return IndexEntry(); });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), Code::invalid_argument);
}

TEST(PartialSegment, WriterRefusesWhatReadersWouldRefuse) {
  const auto expect_invalid = [](const char* pattern, const auto& spoil) {
    const auto blocks = make_blocks(pattern);
    auto extents = extents_of(blocks);
    spoil(extents);
    const auto made = make_segment(example_header(), blocks, extents);
    ASSERT_FALSE(made) << pattern;
    EXPECT_EQ(made.error().code(), Code::invalid_argument);
  };
  using Extents = std::vector<Extent>;
  expect_invalid("x-", [](Extents& e) { e[1].encoded_bytes = e[1].raw_bytes; });
  expect_invalid("x-", [](Extents& e) { e[1].offset = 128; });
  expect_invalid("-x", [](Extents& e) { e[0].offset = 129; });
  expect_invalid("xx", [](Extents& e) { e[0] = {128, 0, e[0].raw_bytes, 0, 2, CodecId::absent}; });
  const auto in_two = [](Extents& e) {  // two extents alike, one after the other
    const std::uint64_t bytes = e[0].codec == CodecId::raw ? 512 : 0;
    Extent first = e[0];
    first.entries = 1;
    first.raw_bytes = 512;
    first.encoded_bytes = bytes;
    e[0].offset += bytes;
    e[0].first_entry = 1;
    e[0].entries -= 1;
    e[0].raw_bytes -= 512;
    e[0].encoded_bytes -= bytes;
    e.insert(e.begin(), first);
  };
  expect_invalid("xx-", in_two);
  expect_invalid("--x", in_two);
  EXPECT_TRUE(make_segment(example_header(), make_blocks("xx"),
                           [&] {
                             auto extents = extents_of(make_blocks("xx"));
                             in_two(extents);
                             return extents;
                           }()))
      << "a complete segment may have several raw extents";
}

}  // namespace
}  // namespace belay::format
