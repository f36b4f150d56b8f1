// SPDX-License-Identifier: Apache-2.0
#include "format/checksum.hpp"
#include "format/damage_test.hpp"
#include "format/manifest.hpp"

namespace belay::format {
namespace {

RunRecord example() {
  RunRecord record;
  record.store = {0x0123456789abcdef, 0xfedcba9876543210};
  record.seed = 42;
  record.run = 3;
  record.ranks = 8;
  record.application = "heat";
  record.host = "node-17";
  record.pid = 4711;
  record.time_ns = -1;
  return record;
}

void fix_checksum(std::vector<std::byte>& file) {
  overwrite(file, file.size() - 8, checksum64(std::span(file).first(file.size() - 8)));
}

TEST(RunRecord, ComesBackAsItWas) {
  RunRecord record = example();
  EXPECT_EQ(*decode_run_record(encode_run_record(record)), record);
  record.host.clear();
  EXPECT_EQ(*decode_run_record(encode_run_record(record)), record);
  record.application.assign(255, 'a');
  record.host.assign(255, 'h');
  EXPECT_EQ(*decode_run_record(encode_run_record(record)), record);
}

TEST(RunRecord, EveryFlippedBitIsFound) {
  expect_every_flip_is_refused(encode_run_record(example()), decode_run_record);
}

TEST(RunRecord, EveryCutIsCorruption) {
  expect_every_cut_is_corruption(encode_run_record(example()), decode_run_record);
}

TEST(RunRecord, BytesAfterTheEndAreCorruption) {
  auto file = encode_run_record(example());
  file.push_back(std::byte{0});
  EXPECT_EQ(decode_run_record(file).error().code(), Code::corruption);
}

TEST(RunRecord, NewerVersionIsUnsupported) {
  expect_newer_version_is_unsupported(encode_run_record(example()), decode_run_record);
}

TEST(RunRecord, HostileFieldsWithRightChecksumsAreCorruption) {
  const auto good = encode_run_record(example());
  const auto expect_refused = [&](std::size_t offset, auto value) {
    auto file = good;
    overwrite(file, offset, value);
    fix_checksum(file);
    const auto decoded = decode_run_record(file);
    ASSERT_FALSE(decoded) << "offset " << offset;
    EXPECT_EQ(decoded.error().code(), Code::corruption);
  };
  expect_refused(8, std::uint32_t{0});     // format version
  expect_refused(8, std::uint32_t{2});     // none of that version was ever written
  expect_refused(12, std::uint32_t{80});   // size
  expect_refused(48, std::uint32_t{0});    // ranks
  expect_refused(52, std::uint8_t{0});     // application's length
  expect_refused(52, std::uint8_t{255});   // longer than the file
  expect_refused(53, std::uint8_t{6});     // host's length: a byte is left over
  expect_refused(54, std::uint16_t{1});    // reserved
  expect_refused(72, std::uint8_t{0x1b});  // a control character
  expect_refused(72, std::uint8_t{0xff});  // not UTF-8
}

}  // namespace
}  // namespace belay::format
