// SPDX-License-Identifier: Apache-2.0
#include "capture/dirty_sets.hpp"

#include <gtest/gtest.h>

namespace belay::capture {
namespace {

/// Reports the blocks that a test has marked since the last collect().
class MarkedTracker final : public Tracker {
 public:
  explicit MarkedTracker(std::set<std::size_t>& marks) : marks_(marks) {}
  bool collect(std::string_view, std::span<const std::byte>, std::uint32_t,
               std::vector<bool>& dirty) override {
    for (const std::size_t mark : marks_) dirty[mark] = true;
    marks_.clear();
    return true;
  }

 private:
  std::set<std::size_t>& marks_;
};

class DirtySetsTest : public testing::Test {
 protected:
  const std::vector<bool>* collect() { return sets_.collect("r", memory_, 512); }

  std::vector<std::byte> memory_{std::vector<std::byte>(4 * 512)};
  std::set<std::size_t> marks_;
  DirtySets sets_{std::make_unique<MarkedTracker>(marks_)};
};

TEST_F(DirtySetsTest, TheFirstCaptureReadsEverything) { EXPECT_EQ(collect(), nullptr); }

TEST_F(DirtySetsTest, AfterAVersionExistsOnlyMarkedBlocksAreDirty) {
  collect();
  sets_.version_exists();
  marks_ = {2};
  const auto* dirty = collect();
  ASSERT_NE(dirty, nullptr);
  EXPECT_EQ(*dirty, (std::vector<bool>{false, false, true, false}));
}

TEST_F(DirtySetsTest, TheSetOfAFailedVersionGoesIntoTheNext) {
  collect();
  sets_.version_exists();
  marks_ = {1};
  collect();
  sets_.version_failed();
  marks_ = {3};
  const auto* dirty = collect();
  ASSERT_NE(dirty, nullptr);
  EXPECT_EQ(*dirty, (std::vector<bool>{false, true, false, true}));
}

TEST_F(DirtySetsTest, GrownBlocksAreDirty) {
  collect();
  sets_.version_exists();
  memory_.resize(5 * 512 + 1);
  const auto* dirty = collect();
  ASSERT_NE(dirty, nullptr);
  EXPECT_EQ(*dirty, (std::vector<bool>{false, false, false, false, true, true}));
}

TEST_F(DirtySetsTest, ARegionThatMovedIsReadWhole) {
  collect();
  sets_.version_exists();
  sets_.distrust("r");
  EXPECT_EQ(collect(), nullptr);
}

TEST_F(DirtySetsTest, ARegionThatWasNotInTheVersionIsReadWhole) {
  collect();
  sets_.version_exists();
  sets_.version_exists();
  EXPECT_EQ(collect(), nullptr);
}

}  // namespace
}  // namespace belay::capture
