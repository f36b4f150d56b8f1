// SPDX-License-Identifier: Apache-2.0
// Sessions whose segments have codecs: what is put back is what was saved, bit for bit.
#include "session/segment_encoding.hpp"
#include "session/session_test.hpp"

#include <cmath>
#include <limits>

namespace belay::session {
namespace {

class EncodedSession : public SessionTest, public testing::WithParamInterface<const char*> {
 protected:
  static Options coded(const std::string& codec) {
    Options options = SessionTest::options();
    options.local_codec = codec;
    options.keep = 10;
    return options;
  }
  static std::vector<double> smooth(std::size_t count, double phase) {
    std::vector<double> field(count);
    for (std::size_t i = 0; i < count; ++i)
      field[i] = std::sin(phase + static_cast<double>(i) * 1e-3);
    return field;
  }
  /// Flips a bit in the middle of the newest segment.
  void damage(const std::string& part) {
    for (const std::string& path : memory_.paths())
      if (path.find(part) != std::string::npos) must(memory_.flip(path, 8 * 400));
  }
};

TEST_P(EncodedSession, EveryVersionComesBackBitForBit) {
  std::vector<double> field;
  std::vector<std::uint64_t> ids;
  std::uint32_t step = 0;
  {
    auto session = open(coded(GetParam()));
    must(session.protect("field", field));
    must(session.protect("ids", ids));
    must(session.protect("step", step));
    for (step = 1; step <= 4; ++step) {
      field = smooth(5000 + 100 * step, step);
      field[7] = std::numeric_limits<double>::quiet_NaN();
      field[8] = -0.0;
      ids = noise(1000, step % 2);
      take(session);
    }
    must(session.close());
  }
  auto session = open(coded(GetParam()));
  must(session.protect("field", field));
  must(session.protect("ids", ids));
  must(session.protect("step", step));
  for (const Version version : {4u, 2u, 1u, 3u}) {
    EXPECT_EQ(must(session.restore(version)), version);
    EXPECT_EQ(step, version);
    auto expected = smooth(5000 + 100 * step, step);
    expected[7] = std::numeric_limits<double>::quiet_NaN();
    expected[8] = -0.0;
    ASSERT_EQ(field.size(), expected.size());
    EXPECT_EQ(std::memcmp(field.data(), expected.data(), 8 * field.size()), 0);
    EXPECT_EQ(ids, noise(1000, step % 2));
  }
}

TEST_P(EncodedSession, UnchangedBlocksAreNotWrittenAgain) {
  auto session = open(coded(GetParam()));
  auto field = smooth(8000, 1);
  must(session.protect("field", field));
  EXPECT_EQ(take_ledger(session).written_bytes, 8 * field.size());
  field[100] = 3;
  EXPECT_EQ(take_ledger(session).written_bytes, kBlock);
  must(session.close());
}

TEST_P(EncodedSession, AFlippedBitIsFoundAndTheOlderVersionTaken) {
  auto field = smooth(8000, 1);
  {
    auto session = open(coded(GetParam()));
    must(session.protect("field", field));
    take(session);
    field = smooth(8000, 2);
    take(session);
    must(session.close());
  }
  damage("segment-000001-0000000002");
  auto session = open(coded(GetParam()));
  must(session.protect("field", field));
  EXPECT_EQ(must(session.restore()), 1u);
  EXPECT_EQ(field, smooth(8000, 1));
}

TEST_P(EncodedSession, TheNextRunMayHaveAnotherCodec) {
  auto field = smooth(8000, 1);
  const auto saved = field;
  {
    auto session = open(coded(GetParam()));
    must(session.protect("field", field));
    take(session);
    must(session.close());
  }
  auto session = open();
  must(session.protect("field", field));
  field.assign(8000, 0);
  must(session.restore());
  EXPECT_EQ(field, saved);
  EXPECT_EQ(take_ledger(session).written_bytes, 0u) << "what is safe in another codec is safe";
  must(session.close());
}

INSTANTIATE_TEST_SUITE_P(Codecs, EncodedSession,
                         testing::Values("auto", "lz4", "shuffle-lz4", "shuffle-zstd",
                                         "delta1-zstd", "delta2-zstd", "delta3-zstd",
                                         "lorenzo-zstd", "delta1-bits", "lorenzo-bits",
                                         "context-bits", "zstd-long", "field=lorenzo-zstd,*=raw"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

class Encoding : public SessionTest {};

TEST_F(Encoding, SmoothFieldsBecomeSmallerAndTheLedgerSaysSo) {
  Options options = SessionTest::options();
  options.local_codec = "delta1-zstd";
  auto session = open(options);
  std::vector<std::uint64_t> numbers(20000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 3 * i;
  must(session.protect("numbers", numbers));
  const Ledger ledger = take_ledger(session);
  EXPECT_EQ(ledger.written_bytes, 8 * numbers.size());
  EXPECT_LT(ledger.encoded_bytes, ledger.written_bytes / 4);
  EXPECT_GT(ledger.encoded_bytes, 0u);
}

TEST_F(Encoding, UnknownCodecsAreRefusedBeforeAnythingIsWritten) {
  Options options = SessionTest::options();
  options.local_codec = "shufle-zstd";
  const auto refused = try_open(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid_argument);
  EXPECT_NE(refused.error().message().find("shuffle-zstd"), std::string::npos)
      << refused.error().message();
  EXPECT_TRUE(memory_.paths().empty());
}

TEST_F(Encoding, NeighboursOfTheSameVariableShareAnExtent) {
  EXPECT_EQ(variable_of("density"), "density");
  EXPECT_EQ(variable_of("restart.3.h5:density"), "density");
  EXPECT_EQ(variable_of("restart.3.h5:"), "restart.3.h5:");
}

TEST_F(Encoding, ManySmallRegionsAndLargeOnesComeBack) {
  Options options = SessionTest::options();
  options.local_codec = "shuffle-zstd";
  std::vector<std::vector<std::uint32_t>> regions(200);
  {
    auto session = open(options);
    for (std::size_t i = 0; i < regions.size(); ++i) {
      regions[i].assign(i % 7 == 0 ? 1000 : i % 11, static_cast<std::uint32_t>(i));
      must(session.protect("file" + std::to_string(i) + ":x" + std::to_string(i % 3), regions[i]));
    }
    take(session);
    must(session.close());
  }
  const auto saved = regions;
  auto session = open(options);
  for (std::size_t i = 0; i < regions.size(); ++i) {
    regions[i].clear();
    must(session.protect("file" + std::to_string(i) + ":x" + std::to_string(i % 3), regions[i]));
  }
  must(session.restore());
  EXPECT_EQ(regions, saved);
}

}  // namespace
}  // namespace belay::session
