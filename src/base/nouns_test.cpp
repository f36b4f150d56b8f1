// SPDX-License-Identifier: Apache-2.0
#include "base/nouns.hpp"

#include <belay/result.hpp>

#include <gtest/gtest.h>

#include <set>

namespace belay {
namespace {

TEST(Nouns, HexShowsTheHighHalfFirst) {
  EXPECT_EQ(to_hex(0x1, 0xab), "00000000000000ab0000000000000001");
  EXPECT_EQ(to_hex(Fingerprint{~0ull, 0}), "0000000000000000ffffffffffffffff");
  EXPECT_EQ(to_hex(StoreId{0, ~0ull}), "ffffffffffffffff0000000000000000");
}

TEST(Nouns, EveryCodeHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Code::busy); ++code)
    names.insert(name_of(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Code::busy) + 1);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_STREQ(name_of(Code::peer_lost), "peer_lost");
}

TEST(Nouns, EveryElementKindHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int kind = 0; kind <= static_cast<int>(ElementKind::serialized); ++kind)
    names.insert(name_of(static_cast<ElementKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ElementKind::serialized) + 1);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_STREQ(name_of(ElementKind::f64), "f64");
}

TEST(Nouns, NewestIsTheHighestRunThenTheHighestVersion) {
  EXPECT_LT((VersionKey{1, 9}), (VersionKey{2, 1}));
  EXPECT_LT((VersionKey{2, 1}), (VersionKey{2, 2}));
}

}  // namespace
}  // namespace belay
