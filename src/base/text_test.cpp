// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include "base/settings.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace belay {
namespace {

TEST(Names, PrintableUtf8OfUpTo255BytesIsAccepted) {
  const std::string good[] = {
      "a",
      "temperature",
      "two words",
      "a/b",
      "..",
      "größe",
      "温度",
      "\xF0\x9F\x8C\xA1",
      "\xC2\xA0",
      "\xED\x9F\xBF",
      "\xEE\x80\x80",
      "\xF4\x8F\xBF\xBF",
      std::string(255, 'x'),
  };
  for (const auto& name : good) EXPECT_TRUE(check_name("region", name)) << name;
}

TEST(Names, WhatIsNoNameIsRefusedWithTheReason) {
  const struct {
    std::string name;
    std::string reason;
  } bad[] = {
      {"", "is empty"},
      {std::string(256, 'x'), "has 256 bytes"},
      {std::string("a\0b", 3), "control character at byte 1"},
      {"a\nb", "control character at byte 1"},
      {"\x1B[31mred", "control character at byte 0"},
      {"ab\x7F", "control character at byte 2"},
      {"\xC2\x9Bm", "control character at byte 0"},
      {"ab\xFF", "not UTF-8 at byte 2"},
      {"\x80", "not UTF-8 at byte 0"},
      {"\xC0\x80", "not UTF-8 at byte 0"},
      {"\xC1\xBF", "not UTF-8 at byte 0"},
      {"\xE0\x9F\xBF", "not UTF-8 at byte 0"},
      {"\xED\xA0\x80", "not UTF-8 at byte 0"},
      {"\xF0\x8F\xBF\xBF", "not UTF-8 at byte 0"},
      {"\xF4\x90\x80\x80", "not UTF-8 at byte 0"},
      {"\xF5\x80\x80\x80", "not UTF-8 at byte 0"},
      {"a\xE2\x82", "not UTF-8 at byte 1"},
      {"\xC3(", "not UTF-8 at byte 0"},
  };
  for (const auto& [name, reason] : bad) {
    const auto checked = check_name("region", name);
    ASSERT_FALSE(checked) << in_quotes(name);
    EXPECT_EQ(checked.error().code(), Code::invalid_argument);
    EXPECT_NE(checked.error().message().find(reason), std::string::npos)
        << checked.error().message();
  }
}

TEST(Names, MessagesShowTheNameEscapedAndCut) {
  EXPECT_EQ(check_name("region", "a\x1B\"").error().message(),
            "region name \"a\\x1b\\\"\" has a control character at byte 1; a name is 1 to 255 "
            "bytes of UTF-8 without control characters");
  const auto message = check_name("node", std::string(100000, 'x')).error().message();
  EXPECT_LT(message.size(), 250u);
  EXPECT_NE(message.find("xxx...\""), std::string::npos) << message;
}

TEST(Quotes, KeepWholeCharactersAndEscapeTheRest) {
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes("温度"), "\"温度\"");
  EXPECT_EQ(in_quotes("a\\b"), "\"a\\\\b\"");
  EXPECT_EQ(in_quotes("\xC2\x9B\xFF"), "\"\\xc2\\x9b\\xff\"");
  EXPECT_EQ(in_quotes(std::string(64, 'x')), '"' + std::string(64, 'x') + '"');
  EXPECT_EQ(in_quotes(std::string(65, 'x')), '"' + std::string(64, 'x') + "...\"");
  EXPECT_EQ(in_quotes(std::string(63, 'x') + "温度"), '"' + std::string(63, 'x') + "温...\"");
}

TEST(Quotes, RandomBytesBecomeAPrintableName) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> byte(0, 255);
  for (int round = 0; round < 20000; ++round) {
    std::string text(static_cast<std::size_t>(round % 40), '\0');
    for (char& c : text) c = static_cast<char>(byte(random));
    EXPECT_EQ(name_flaw(in_quotes(text)), std::nullopt);
    EXPECT_EQ(check_name("region", text).has_value(), !name_flaw(text));
  }
}

TEST(Nearest, CountsEditsWhateverTheCase) {
  const std::vector<std::string_view> words = {"block", "keep", "log", "local_codec", "codec"};
  EXPECT_EQ(nearest("blok", words), "block");
  EXPECT_EQ(nearest("BLOCKS", words), "block");
  EXPECT_EQ(nearest("kepe", words), "keep");
  EXPECT_EQ(nearest("lokal-codec", words), "local_codec");
  EXPECT_EQ(nearest("", words), "log");
  EXPECT_FALSE(nearest(std::string(1 << 20, 'q'), words).empty());
}

TEST(EitherOf, ReadsLikeASentence) {
  const std::vector<std::string_view> words = {"a", "b", "c"};
  EXPECT_EQ(either_of(std::span(words).first(1)), "a");
  EXPECT_EQ(either_of(std::span(words).first(2)), "a or b");
  EXPECT_EQ(either_of(words), "a, b or c");
}

}  // namespace
}  // namespace belay
