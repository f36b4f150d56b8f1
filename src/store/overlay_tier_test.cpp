// SPDX-License-Identifier: Apache-2.0
#include "store/overlay_tier.hpp"

#include "os/faulty_files.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace belay::store {
namespace {

class OverlayTierTest : public testing::Test {
 protected:
  OverlayTierTest() {
    for (const char* directory : {"/new", "/old", "/older"})
      EXPECT_TRUE(memory_.make_directory(directory));
    std::vector<std::unique_ptr<Tier>> places;
    places.push_back(make_local_tier(files_, "/new"));
    places.push_back(make_local_tier(files_, "/old"));
    places.push_back(make_local_tier(files_, "/older"));
    tier_ = make_overlay_tier(std::move(places));
  }
  void put(const std::string& path, std::size_t bytes) {
    const auto file = memory_.create(path, false);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, std::vector<std::byte>(bytes)));
  }

  os::MemoryFiles memory_;
  std::string failing_ = "nothing";
  os::FaultyFiles files_{memory_, [this](const os::Operation& operation) {
                           return os::Action{.error = operation.path == failing_ ? EIO : 0};
                         }};
  std::unique_ptr<Tier> tier_;
};

TEST_F(OverlayTierTest, NewFilesGoToTheFirstPlace) {
  ASSERT_TRUE(tier_->create("f"));
  ASSERT_TRUE(tier_->publish("f", "g", true));
  EXPECT_EQ(memory_.paths(), std::vector<std::string>{"/new/g"});
  EXPECT_EQ(tier_->place(), "/new");
}

TEST_F(OverlayTierTest, OldFilesAreFoundAndRemovedInAnyPlace) {
  put("/old/a", 1);
  put("/older/b", 2);
  put("/new/c", 3);
  EXPECT_EQ(*tier_->list(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(*tier_->touch("a"), 1u);
  EXPECT_EQ(*tier_->touch("b"), 2u);
  EXPECT_EQ(*(*tier_->open("b"))->size(), 2u);
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(tier_->remove(name));
  EXPECT_TRUE(memory_.paths().empty());
}

TEST_F(OverlayTierTest, WhatIsNowhereIsNotFoundInTheFirstPlace) {
  for (const Code code : {tier_->open("x").error().code(), tier_->touch("x").error().code(),
                          tier_->remove("x").error().code()})
    EXPECT_EQ(code, Code::not_found);
  EXPECT_NE(tier_->open("x").error().message().find("/new/x"), std::string::npos);
}

TEST_F(OverlayTierTest, AnErrorInOnePlaceIsNotMistakenForElsewhere) {
  put("/old/a", 1);
  put("/older/a", 2);
  failing_ = "/old/a";
  const auto touched = tier_->touch("a");
  ASSERT_FALSE(touched);
  EXPECT_EQ(touched.error().code(), Code::io);
}

TEST_F(OverlayTierTest, NamesAreListedOnceAndSorted) {
  put("/new/b", 1);
  put("/old/b", 1);
  put("/older/a", 1);
  EXPECT_EQ(*tier_->list(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(OverlayTierTest, RemovalsAreMadeDurableInEveryPlace) {
  put("/older/a", 1);
  ASSERT_TRUE(memory_.sync_directory("/older"));
  ASSERT_TRUE(tier_->remove("a"));
  failing_ = "/older";
  EXPECT_FALSE(tier_->sync_names()) << "a failure anywhere is a failure";
  failing_ = "nothing";
  EXPECT_TRUE(tier_->sync_names());
}

TEST_F(OverlayTierTest, OnePlaceAloneIsItself) {
  std::vector<std::unique_ptr<Tier>> places;
  places.push_back(make_local_tier(memory_, "/new"));
  const Tier* alone = places[0].get();
  EXPECT_EQ(make_overlay_tier(std::move(places)).get(), alone);
}

}  // namespace
}  // namespace belay::store
