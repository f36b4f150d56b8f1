// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog.hpp"

#include <gtest/gtest.h>

namespace belay::catalog {
namespace {

std::shared_ptr<Manifest> manifest_of(Version version, const std::vector<std::string>& regions) {
  auto manifest = std::make_shared<Manifest>();
  manifest->origin.key = {1, version};
  for (const std::string& name : regions) manifest->regions.push_back({name, {}, {}, 0, 0});
  return manifest;
}

TEST(Catalog, IsEmptyAtFirst) {
  const Catalog catalog;
  EXPECT_EQ(catalog.key(), VersionKey{});
  EXPECT_TRUE(catalog.manifest().regions.empty());
  EXPECT_EQ(catalog.region("r"), nullptr);
}

TEST(Catalog, KnowsTheRegionsOfTheVersionThatItAdoptedLast) {
  Catalog catalog;
  catalog.adopt(manifest_of(1, {"a", "b"}), {1});
  catalog.adopt(manifest_of(2, {"b", "c"}), {2, 3});
  EXPECT_EQ(catalog.key(), (VersionKey{1, 2}));
  EXPECT_EQ(catalog.region("a"), nullptr);
  ASSERT_NE(catalog.region("b"), nullptr);
  EXPECT_EQ(catalog.region("b"), &catalog.manifest().regions[0]);
  EXPECT_EQ(catalog.region("c")->name, "c");
  EXPECT_EQ(catalog.live_bytes(), (std::vector<std::uint64_t>{2, 3}));
}

TEST(Catalog, KeepsItsManifestAlive) {
  Catalog catalog;
  std::weak_ptr<Manifest> first;
  {
    const auto manifest = manifest_of(1, {"a"});
    first = manifest;
    catalog.adopt(manifest, {});
  }
  EXPECT_EQ(catalog.region("a")->name, "a");
  catalog.adopt(manifest_of(2, {}), {});
  EXPECT_TRUE(first.expired());
}

TEST(Catalog, ForgetsOnRequest) {
  Catalog catalog;
  catalog.adopt(manifest_of(1, {"a"}), {1});
  catalog.forget();
  EXPECT_EQ(catalog.region("a"), nullptr);
  EXPECT_EQ(catalog.key(), VersionKey{});
  EXPECT_TRUE(catalog.live_bytes().empty());
}

TEST(Catalog, CostsSeventeenBytesABlock) {
  Catalog catalog;
  auto manifest = manifest_of(1, {});
  manifest->fingerprints.resize(1000);
  manifest->holders.resize(1000);
  catalog.adopt(manifest, {});
  EXPECT_EQ(catalog.memory_bytes(), 17'000u);
}

TEST(Catalog, IsNotWholeWhileItsTableIsLent) {
  Catalog catalog;
  auto manifest = manifest_of(1, {"a"});
  manifest->fingerprints.resize(3);
  manifest->holders.resize(3);
  catalog.adopt(manifest, {});
  BlockTable table = catalog.lend();
  EXPECT_EQ(table.fingerprints.size(), 3u);
  EXPECT_TRUE(catalog.manifest().fingerprints.empty());
  EXPECT_NE(catalog.region("a"), nullptr);
  EXPECT_FALSE(catalog.whole());
  catalog.give_back(table, false);
  EXPECT_FALSE(catalog.whole());
  catalog.give_back(std::move(table), true);
  EXPECT_TRUE(catalog.whole());
  EXPECT_EQ(catalog.manifest().fingerprints.size(), 3u);
}

}  // namespace
}  // namespace belay::catalog
