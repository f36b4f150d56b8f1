// SPDX-License-Identifier: Apache-2.0
#include "base/name_match.hpp"

#include <gtest/gtest.h>

namespace belay {
namespace {

NameMatch parsed(const std::string& text) {
  auto match = NameMatch::parse(text);
  EXPECT_TRUE(match) << text;
  return match ? *match : NameMatch{};
}

TEST(NameMatch, RewritesNamesSoThatThoseThatAreAlikeBecomeEqual) {
  const NameMatch match = parsed("_[0-9]+$=");
  EXPECT_EQ(match.key("p_7"), "p");
  EXPECT_EQ(match.key("p_12"), match.key("p_7"));
  EXPECT_EQ(match.key("p_7_old"), "p_7_old");
  EXPECT_EQ(parsed("patch([0-9]+)/(.*)=$2").key("patch3/x"), "x");
  EXPECT_EQ(parsed("a\\=b=c").key("a=b"), "c");
}

TEST(NameMatch, WithoutARuleEverythingIsAlikeToItselfOnly) {
  EXPECT_EQ(NameMatch().key("p_7"), "p_7");
}

TEST(NameMatch, RefusesWhatIsNoRule) {
  for (const char* text : {"", "p", "=x", "([=x"}) {
    const auto match = NameMatch::parse(text);
    ASSERT_FALSE(match) << text;
    EXPECT_EQ(match.error().code(), Code::invalid_argument);
  }
  EXPECT_FALSE(NameMatch::parse(std::string(300, 'a') + "=b"));
}

TEST(NameMatch, LeavesNamesThatAreTooLongAsTheyAre) {
  const std::string name(1000, 'a');
  EXPECT_EQ(parsed("(a*)*b=x").key(name), name);
}

}  // namespace
}  // namespace belay
