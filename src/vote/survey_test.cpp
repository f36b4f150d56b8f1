// SPDX-License-Identifier: Apache-2.0
#include "vote/survey.hpp"

#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/vector_sink.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

namespace belay::vote {
namespace {

constexpr StoreId kStore{11, 22};

Manifest manifest_of(Version version, Rank rank, std::vector<SegmentRef> segments = {}) {
  Manifest manifest;
  manifest.origin = {kStore, 5, {1, version}, rank, 2};
  manifest.application = "test";
  manifest.block_bytes = 512;
  manifest.segments = std::move(segments);
  return manifest;
}

class SurveyTest : public testing::Test {
 protected:
  SurveyTest() { EXPECT_TRUE(files_.make_directory("/d")); }
  void put(const std::string& name, std::span<const std::byte> bytes) {
    const auto file = files_.create("/d/" + name, false);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, bytes));
  }
  void put(const Manifest& manifest) {
    format::VectorSink sink;
    ASSERT_TRUE(format::encode_manifest(manifest, sink));
    put(format::manifest_name(manifest.origin.key, manifest.origin.rank), sink.bytes());
  }
  OwnSurvey look(Rank rank = 0) {
    const SurveyedPlace place{tier_.get(), "/d", 0, 0};
    auto own = survey({&place, 1}, rank, log_);
    EXPECT_TRUE(own);
    catalog::Whereabouts whereabouts;
    for (const catalog::HeldFile& file : own->survey.places.at(0).files)
      whereabouts.add(file, whereabouts.place("/d"), rank);
    judge_manifests(*own, whereabouts, rank, log_);
    return *std::move(own);
  }
  bool logged(std::string_view text) const {
    for (const std::string& line : lines_)
      if (line.find(text) != line.npos) return true;
    return false;
  }

  os::MemoryFiles files_;
  std::unique_ptr<store::Tier> tier_ = store::make_local_tier(files_, "/d");
  std::vector<std::string> lines_;
  Log log_{LogLevel::warn, [this](LogLevel, std::string_view text) { lines_.emplace_back(text); }};
};

TEST_F(SurveyTest, AnEmptyDirectoryHoldsNothing) {
  const auto own = look();
  EXPECT_TRUE(own.survey.identities.empty());
  EXPECT_FALSE(own.survey.unreadable);
  EXPECT_EQ(own.survey.highest_run, 0u);
}

TEST_F(SurveyTest, NamesCountWhateverTheFilesHold) {
  put("segment-000003-0000000009-000001", {});
  put("manifest-000002-0000000012-000001.tmp", {});
  put("run-000004.tmp", {});
  const auto own = look();
  EXPECT_EQ(own.survey.highest_number, (VersionKey{2, 12}));
  EXPECT_EQ(own.survey.highest_run, 4u);
  EXPECT_EQ(own.survey.highest_record, 0u) << "a temporary record claims nothing";
  EXPECT_EQ(own.temporaries, std::vector<std::string>{"run-000004.tmp"});
  EXPECT_TRUE(own.segments.empty()) << "those are rank 1's";
  EXPECT_EQ(look(1).segments.size(), 1u);
  EXPECT_EQ(look(1).temporaries.size(), 2u);
}

TEST_F(SurveyTest, AManifestIsReadableIfItsSegmentsHaveTheirSizes) {
  put("segment-000001-0000000001-000000", std::vector<std::byte>(4096));
  put(manifest_of(1, 0, {{{{1, 1}, 0}, 4096}}));
  put(manifest_of(2, 0, {{{{1, 1}, 0}, 8192}}));
  put(manifest_of(3, 0, {{{{1, 3}, 0}, 4096}}));
  const auto own = look();
  ASSERT_EQ(own.survey.manifests.size(), 3u);
  EXPECT_EQ(own.survey.manifests[0].key.version, 1u);
  EXPECT_TRUE(own.survey.manifests[0].readable);
  EXPECT_FALSE(own.survey.manifests[1].readable);
  EXPECT_FALSE(own.survey.manifests[2].readable);
  ASSERT_EQ(own.survey.identities.size(), 1u);
  EXPECT_EQ(own.survey.identities[0], (Identity{kStore, 5, 2, "test"}));
  EXPECT_TRUE(logged("version 2"));
  EXPECT_TRUE(logged("version 3"));
}

TEST_F(SurveyTest, AManifestUnderAnothersNameIsNotReadable) {
  format::VectorSink sink;
  ASSERT_TRUE(format::encode_manifest(manifest_of(1, 0), sink));
  put(format::manifest_name({1, 2}, 0), sink.bytes());
  put(format::manifest_name({1, 1}, 1), sink.bytes());
  EXPECT_FALSE(look(0).survey.manifests.at(0).readable);
  EXPECT_FALSE(look(1).survey.manifests.at(0).readable);
  EXPECT_TRUE(logged("another file's"));
}

TEST_F(SurveyTest, FilesOfWhichNoneSaysWhoseTheyAreAreUnreadable) {
  put("run-000001", std::vector<std::byte>(100));
  EXPECT_TRUE(look().survey.unreadable);
  EXPECT_TRUE(logged("run-000001"));
}

TEST_F(SurveyTest, SomebodyElsesFilesAreNone) {
  put("README", std::vector<std::byte>(100));
  put("lock", {});
  EXPECT_FALSE(look().survey.unreadable);
}

TEST_F(SurveyTest, IdentitiesThatDifferAreAllListed) {
  put(manifest_of(1, 0));
  Manifest other = manifest_of(2, 0);
  other.origin.store = {33, 44};
  put(other);
  EXPECT_EQ(look().survey.identities.size(), 2u);
}

TEST_F(SurveyTest, LoadingForAStoreRefusesAnothers) {
  put(manifest_of(1, 0));
  EXPECT_TRUE(load_manifest(*tier_, {1, 1}, 0, kStore));
  const auto refused = load_manifest(*tier_, {1, 1}, 0, StoreId{1, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::corruption);
}

TEST_F(SurveyTest, TravelsUnchanged) {
  Survey survey;
  survey.identities = {{kStore, 5, 2, "test"}, {{1, 2}, 3, 4, std::string(255, 'x')}};
  survey.highest_run = 7;
  survey.highest_record = 6;
  survey.highest_number = {6, 1ull << 60};
  survey.closed_run = 5;
  survey.settled = true;
  survey.unreadable = true;
  survey.manifests = {{{3, 9}, 4, {2, 8}, true}, {{1, 1}, 0, {}, false}};
  survey.places = {{"/a", {{{{3, 9}, 1}, FileKind::copy, 77, 0}}}, {"/b", {}}};
  const Survey got = decode_survey(encode_survey(survey));
  EXPECT_EQ(got.identities, survey.identities);
  EXPECT_EQ(got.highest_run, 7u);
  EXPECT_EQ(got.highest_record, 6u);
  EXPECT_EQ(got.highest_number, (VersionKey{6, 1ull << 60}));
  EXPECT_EQ(got.closed_run, 5u);
  EXPECT_TRUE(got.settled);
  EXPECT_TRUE(got.unreadable);
  ASSERT_EQ(got.manifests.size(), 2u);
  EXPECT_EQ(got.manifests[0].key, (VersionKey{3, 9}));
  EXPECT_EQ(got.manifests[0].parent, (VersionKey{2, 8}));
  EXPECT_EQ(got.manifests[0].rank, 4u);
  ASSERT_EQ(got.places.size(), 2u);
  EXPECT_EQ(got.places[0].directory, "/a");
  EXPECT_EQ(got.places[0].files, survey.places[0].files);
  EXPECT_TRUE(got.manifests[0].readable);
  EXPECT_FALSE(got.manifests[1].readable);
}

TEST_F(SurveyTest, BytesThatAreNoneEndWithoutAHang) {
  const std::vector<std::byte> hostile(37, std::byte{0xff});
  (void)decode_survey(hostile);
  (void)decode_survey({});
}

}  // namespace
}  // namespace belay::vote
