// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include "base/settings.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace belay {
namespace {

constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kSecond = 1000000000;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxTime = std::numeric_limits<std::int64_t>::max();

struct Quantity {
  std::string_view text;
  std::uint64_t value;
};

TEST(Units, SizesTakeAllUnitsInAnyCaseWithOrWithoutSpace) {
  const Quantity good[] = {
      {"0", 0},
      {"1", 1},
      {"007", 7},
      {"512B", 512},
      {"512 b", 512},
      {"16KiB", 16 * kKi},
      {"16kib", 16 * kKi},
      {"16 KIB", 16 * kKi},
      {"16   KiB", 16 * kKi},
      {"3MiB", 3 * kKi * kKi},
      {"2GiB", 2 * kKi * kKi * kKi},
      {"1TiB", kKi * kKi * kKi * kKi},
      {"5KB", 5000},
      {"200MB", 200000000},
      {"7gb", 7000000000},
      {"2TB", 2000000000000},
      {"1.5GiB", 3 * kKi * kKi * kKi / 2},
      {"0.5KiB", 512},
      {"1.0", 1},
      {"0.3KiB", 307},
      {"1.9B", 1},
      {"0.9999999999999999999999999999999999KiB", 1023},
      {"1.0000000000000000000000000000000000001KiB", 1024},
      {"18446744073709551615", kMax},
      {"16777215.99999TiB", 18446744073698556499u},
  };
  for (const auto& [text, value] : good) EXPECT_EQ(parse_bytes(text), value) << text;
}

TEST(Units, MalformedOrTooLargeSizesAreRefused) {
  const std::string_view bad[] = {
      "",
      " ",
      "KiB",
      "-1",
      "+1",
      " 1",
      "1 ",
      "1KiB ",
      "1.",
      ".5",
      "1..5",
      "1.5.5",
      "1,5",
      "1e3",
      "0x10",
      "1K",
      "1M",
      "1Ki",
      "1KiBs",
      "1 Ki B",
      "1\tKiB",
      "1\nKiB",
      "nan",
      "inf",
      "25%",
      "1PiB",
      "one",
      "1.KiB",
      "1. 5KiB",
      "- 1",
      "16KiB\n",
      "16777216TiB",
      "18446744073709551616",
      "99999999999999999999999TiB",
      "18446744073709551615KB",
      "18446744.1TB",
  };
  for (const auto text : bad) EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  EXPECT_EQ(parse_bytes(std::string_view("1\0", 2)), std::nullopt);
  EXPECT_EQ(parse_bytes(std::string_view("\0", 1)), std::nullopt);
}

TEST(Units, TimesTakeAllUnitsAndPlainNumbersAreSeconds) {
  const Quantity good[] = {
      {"0", 0},
      {"5", 5 * kSecond},
      {"1.5", 1500000000},
      {"7ns", 7},
      {"7us", 7000},
      {"500ms", 500000000},
      {"30s", 30 * kSecond},
      {"30 S", 30 * kSecond},
      {"10m", 600 * kSecond},
      {"24h", 86400 * kSecond},
      {"2d", 2 * 86400 * kSecond},
      {"0.25h", 900 * kSecond},
      {"1.9ns", 1},
      {"0.000000001", 1},
      {"9223372036854775807ns", kMaxTime},
  };
  for (const auto& [text, value] : good) EXPECT_EQ(parse_time_ns(text), value) << text;
}

TEST(Units, MalformedOrTooLongTimesAreRefused) {
  const std::string_view bad[] = {
      "",
      "s",
      "-1s",
      "1 s ",
      "1w",
      "1min",
      "5 calls",
      "1h30m",
      "auto",
      "1KiB",
      "9223372036854775808ns",
      "106752d",
      "99999999999999999999",
      "18446744073709551615d",
  };
  for (const auto text : bad) EXPECT_EQ(parse_time_ns(text), std::nullopt) << text;
}

TEST(Units, CountsAreDigitsOnly) {
  EXPECT_EQ(parse_count("0"), 0u);
  EXPECT_EQ(parse_count("18446744073709551615"), kMax);
  for (const std::string_view text :
       {"", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "a", "18446744073709551616"})
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
}

TEST(Units, FormattedTimesAreExactAndReadBackTheSame) {
  EXPECT_EQ(format_time_ns(0), "0s");
  EXPECT_EQ(format_time_ns(90 * kSecond), "90s");
  EXPECT_EQ(format_time_ns(300 * kSecond), "5m");
  EXPECT_EQ(format_time_ns(24 * 3600 * kSecond), "1d");
  EXPECT_EQ(format_time_ns(1), "1ns");
  for (std::uint64_t time = 1; time < kMaxTime / 7; time = time * 7 + time % 5)
    EXPECT_EQ(parse_time_ns(format_time_ns(time)), time);
}

TEST(Units, FormattedSizesNeverShowAThousandAndTwentyFour) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(16384), "16.0 KiB");
  EXPECT_EQ(format_bytes(1536 * kKi), "1.5 MiB");
  EXPECT_EQ(format_bytes(kKi * kKi - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(kKi * kKi * kKi * kKi - 1), "1.0 TiB");
  EXPECT_EQ(format_bytes(kMax), "16.0 EiB");
}

}  // namespace
}  // namespace belay
