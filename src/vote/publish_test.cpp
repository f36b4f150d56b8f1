// SPDX-License-Identifier: Apache-2.0
#include "vote/publish.hpp"

#include "format/manifest.hpp"
#include "format/names.hpp"
#include "os/faulty_files.hpp"
#include "os/memory.hpp"
#include "os/memory_files.hpp"
#include "vote/claim.hpp"
#include "vote/survey.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace belay::vote {
namespace {

using Kind = os::Operation::Kind;

class Publish : public testing::Test {
 protected:
  Publish() {
    EXPECT_TRUE(memory_.make_directory("/d"));
    manifest_.origin = {{1, 2}, 3, {4, 5}, 0, 1};
    manifest_.application = "test";
    manifest_.block_bytes = 512;
  }
  void put(const std::string& name) {
    const auto file = memory_.create("/d/" + name, false);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE(memory_.sync_directory("/d"));
  }
  bool there(const std::string& name) const { return memory_.peek("/d/" + name).has_value(); }
  std::size_t first(Kind kind) const {
    return static_cast<std::size_t>(
        std::find_if(seen_.begin(), seen_.end(), [&](const auto& o) { return o.kind == kind; }) -
        seen_.begin());
  }

  os::MemoryFiles memory_;
  std::vector<os::Operation> seen_;
  std::string fails_;  ///< operations on paths with this in them fail
  os::FaultyFiles files_{memory_, [this](const os::Operation& operation) {
                           seen_.push_back(operation);
                           const bool hit = !fails_.empty() && os::changes_disk(operation.kind) &&
                                            operation.path.find(fails_) != std::string::npos;
                           return os::Action{.error = hit ? EIO : 0};
                         }};
  std::unique_ptr<store::Tier> tier_ = store::make_local_tier(files_, "/d");
  Manifest manifest_;
  os::AlignedMemory buffer_ = *os::AlignedMemory::allocate(8192);
  bool visible_ = false;
  Log log_;
};

TEST_F(Publish, AVoteIsTheManifestUnderItsName) {
  const auto bytes = publish(*tier_, manifest_, nullptr, buffer_.bytes(), visible_);
  ASSERT_TRUE(bytes) << bytes.error().message();
  EXPECT_EQ(memory_.peek("/d/manifest-000004-0000000005-000000")->size(), *bytes);
  EXPECT_TRUE(load_manifest(*tier_, {4, 5}, 0, StoreId{1, 2}));
}

TEST_F(Publish, ContentsAreDurableBeforeTheNameAndTheNameBeforeItReturns) {
  manifest_.segments = {{{{4, 5}, 0}, 4096}};
  ASSERT_TRUE(publish(*tier_, manifest_, nullptr, buffer_.bytes(), visible_));
  EXPECT_LT(first(Kind::sync), first(Kind::sync_directory)) << "the manifest's contents";
  EXPECT_LT(first(Kind::sync_directory), first(Kind::rename)) << "the segment's name";
  EXPECT_LT(first(Kind::list), first(Kind::rename)) << "still ours?";
  EXPECT_EQ(seen_.back().kind, Kind::sync_directory) << "the manifest's name";
}

TEST_F(Publish, ALaterRunEndsItWithBusyAndWithoutAVote) {
  put("run-000005");
  const auto refused = publish(*tier_, manifest_, nullptr, buffer_.bytes(), visible_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::busy);
  EXPECT_FALSE(there("manifest-000004-0000000005-000000"));
  EXPECT_FALSE(visible_);
}

TEST_F(Publish, OnlyAFinishedRecordOfALaterRunCounts) {
  put("run-000003");
  put("run-000004");
  put("run-000009.tmp");
  put("segment-000009-0000000001-000000");
  EXPECT_TRUE(check_still_ours(*tier_, 4));
  EXPECT_FALSE(check_still_ours(*tier_, 3));
}

TEST_F(Publish, ManifestsGoBeforeSegmentsAndDurably) {
  put("manifest-000001-0000000001-000000");
  put("segment-000001-0000000001-000000");
  put("x.tmp");
  seen_.clear();
  const Retired left =
      remove_retired(*tier_, {{{{1, 1}, 0}}, {{{1, 1}, 0}}, {}, {}, {}, {"x.tmp"}}, log_);
  EXPECT_TRUE(left.empty());
  EXPECT_TRUE(memory_.paths().empty());
  ASSERT_GE(seen_.size(), 3u);
  EXPECT_NE(seen_[0].path.find("manifest-"), std::string::npos);
  EXPECT_EQ(seen_[1].kind, Kind::sync_directory);
  EXPECT_NE(seen_[2].path.find("segment-"), std::string::npos);
}

TEST_F(Publish, SegmentsStayWhileAManifestCouldNotBeRemoved) {
  put("manifest-000001-0000000001-000000");
  put("segment-000001-0000000001-000000");
  fails_ = "manifest-";
  const Retired left = remove_retired(*tier_, {{{{1, 1}, 0}}, {{{1, 1}, 0}}, {}, {}, {}, {}}, log_);
  EXPECT_EQ(left.manifests.size(), 1u);
  EXPECT_EQ(left.segments.size(), 1u);
  EXPECT_TRUE(there("segment-000001-0000000001-000000"));
  fails_.clear();
  EXPECT_TRUE(remove_retired(*tier_, left, log_).empty());
  EXPECT_TRUE(memory_.paths().empty());
}

TEST_F(Publish, SegmentsStayWhileTheRemovalOfManifestsIsNotDurable) {
  put("manifest-000001-0000000001-000000");
  put("segment-000001-0000000001-000000");
  os::FaultyFiles unsynced(memory_, [](const os::Operation& operation) {
    return os::Action{.error = operation.kind == Kind::sync_directory ? EIO : 0};
  });
  const auto tier = store::make_local_tier(unsynced, "/d");
  const Retired left = remove_retired(*tier, {{{{1, 1}, 0}}, {{{1, 1}, 0}}, {}, {}, {}, {}}, log_);
  EXPECT_EQ(left.segments.size(), 1u);
  EXPECT_TRUE(there("segment-000001-0000000001-000000"));
  EXPECT_EQ(left.manifests.size(), 1u) << "it may come back, and others may ask";
}

TEST_F(Publish, WhatIsGoneAlreadyIsAsGoodAsRemoved) {
  EXPECT_TRUE(
      remove_retired(*tier_, {{{{1, 1}, 0}}, {{{1, 1}, 0}}, {}, {}, {}, {"x.tmp"}}, log_).empty());
}

TEST_F(Publish, TheMarkMayBeLeftTwice) {
  const RunRecord record{{1, 2}, 3, 4, 1, "test", "host", 7, 8};
  ASSERT_TRUE(mark_settled(*tier_, record));
  ASSERT_TRUE(mark_settled(*tier_, record));
  const auto bytes = store::read_whole(*tier_, "settled", format::check_run_record_front);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*format::decode_run_record(*bytes), record);
}

TEST_F(Publish, APreparedMarkNeedsNoSpace) {
  const RunRecord record{{1, 2}, 3, 4, 1, "test", "host", 7, 8};
  ASSERT_TRUE(prepare_settled(*tier_, record));
  EXPECT_FALSE(there("settled"));
  memory_.set_capacity(0);
  ASSERT_TRUE(mark_settled(*tier_, record));
  EXPECT_TRUE(there("settled"));
}

}  // namespace
}  // namespace belay::vote
