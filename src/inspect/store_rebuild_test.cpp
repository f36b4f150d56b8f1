// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_rebuild.hpp"

#include "inspect/copied_store_test.hpp"
#include "inspect/survival.hpp"
#include "os/clock.hpp"
#include "os/faulty_files.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <random>

namespace belay::inspect {
namespace {

class SeededRandom final : public os::Random {
 public:
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_{5};
};

using Contents = std::map<std::string, std::vector<std::byte>>;  ///< by path

/// CopiedStore with versions of level replicas:2, and no block on more nodes than that.
class StoreRebuild : public testing::Test {
 protected:
  StoreRebuild() {
    for (const MadeFile& made : CopiedStore::files())
      if (!made.name.starts_with("manifest-"))
        original_["/s/node-" + made.node + "/" + made.name] = made.bytes;
    original_[copy(CopiedStore::kFirst, "1")] = CopiedStore::segment(CopiedStore::kFirst, "as-c");
    for (Manifest manifest : CopiedStore::manifests()) {
      manifest.level = Level::replicas(2);
      for (SegmentRef& segment : manifest.segments) segment.nodes = 2;
      const std::string name = format::manifest_name(manifest.origin.key, manifest.origin.rank);
      for (const char* node : {"/s/node-0/", "/s/node-1/"})
        original_[node + name] = format::encode_manifest(manifest).value();
    }
    start_anew();
  }

  void start_anew() {
    for (const char* node : {"/s/node-0", "/s/node-1"}) {
      lose(node);
      ASSERT_TRUE(files_.make_directory(node));
    }
    for (const auto& [path, bytes] : original_) {
      const auto file = files_.create(path, /*direct=*/false);
      ASSERT_TRUE(file && (*file)->write(0, bytes) && (*file)->sync());
    }
    for (const char* node : {"/s/node-0", "/s/node-1"}) ASSERT_TRUE(files_.sync_directory(node));
  }
  void lose(const std::string& node) { (void)files_.erase(node); }
  /// Records name the process that wrote them.
  static bool matters(const std::string& path) {
    return path.find("/segment-") != std::string::npos ||
           path.find("/copy-") != std::string::npos || path.find("/manifest-") != std::string::npos;
  }
  static std::string segment(const SegmentId& id, const char* node) {
    return std::string("/s/node-") + node + "/" + format::segment_name(id);
  }
  static std::string copy(const SegmentId& id, const char* node) {
    return std::string("/s/node-") + node + "/" + format::copy_name(id);
  }

  StoreView look(os::Files& files) {
    auto view = StoreView::open(files, {"/s"});
    EXPECT_TRUE(view) << view.error().message();
    return *std::move(view);
  }
  CheckReport check(const StoreView& view) {
    auto report = check_store(view, 1, [](std::uint64_t, std::uint64_t) {});
    EXPECT_TRUE(report) << report.error().message();
    return *std::move(report);
  }
  Result<RebuildReport> rebuild(os::Files& files) {
    const StoreView view = look(files);
    return rebuild_files(view, check(view));
  }
  void expect_original() {
    for (const auto& [path, bytes] : original_) {
      if (!matters(path)) continue;
      const auto file = files_.open(path, /*direct=*/false);
      ASSERT_TRUE(file) << path;
      std::vector<std::byte> found(*(*file)->size());
      ASSERT_TRUE((*file)->read(0, found));
      EXPECT_TRUE(found == bytes) << path;
    }
  }
  void expect_both_whole(const std::string& when) {
    const CheckReport report = check(look(files_));
    ASSERT_EQ(report.versions.size(), 2u) << when;
    for (const CheckedVersion& version : report.versions)
      EXPECT_EQ(version.state, VersionState::whole) << when;
  }

  Contents original_;
  os::MemoryFiles files_;
};

TEST_F(StoreRebuild, LeavesAStoreAloneThatLacksNothing) {
  const auto done = rebuild(files_);
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->repair.steps.empty());
  EXPECT_TRUE(done->repair.refused.empty());
  expect_original();
}

TEST_F(StoreRebuild, MissingFilesComeBackByteForByte) {
  for (const auto& [path, bytes] : original_) {
    if (!matters(path)) continue;
    SCOPED_TRACE(path);
    start_anew();
    ASSERT_TRUE(files_.erase(path));
    const auto done = rebuild(files_);
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(done->repair.steps.size(), 1u);
    expect_original();
  }
}

TEST_F(StoreRebuild, EachDamagedByteOfAnyFileIsPutRight) {
  for (const auto& [path, bytes] : original_) {
    if (!matters(path)) continue;
    for (std::size_t at = 3; at < bytes.size(); at += 811) {
      SCOPED_TRACE(fmt::format("{} at {}", path, at));
      start_anew();
      ASSERT_TRUE(files_.flip(path, 8 * at));
      if (check(look(files_)).flaws.empty()) continue;  // a byte that means nothing
      const auto done = rebuild(files_);
      ASSERT_TRUE(done) << done.error().message();
      expect_original();
    }
  }
}

TEST_F(StoreRebuild, ALostNodeIsMadeAnew) {
  for (const char* node : {"/s/node-0", "/s/node-1"}) {
    SCOPED_TRACE(node);
    start_anew();
    lose(node);
    const auto done = rebuild(files_);
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(done->locks.size(), 1u);
    expect_original();
    const StoreView view = look(files_);
    const auto survival = judge_losses(view, 1);
    ASSERT_TRUE(survival);
    EXPECT_TRUE(survival->keeps_promises());
  }
}

TEST_F(StoreRebuild, BlocksThatOnlyTheDamagedFileHasAreNotPutAtRisk) {
  // Both files have damage, in different blocks: each alone is not enough.
  const std::string original = segment(CopiedStore::kFirst, "0");
  ASSERT_TRUE(files_.flip(original, 8 * (format::kSegmentHeaderBytes + 10)));
  ASSERT_TRUE(files_.flip(copy(CopiedStore::kFirst, "1"),
                          8 * (format::kSegmentHeaderBytes + 2 * CopiedStore::kBlock + 10)));
  const auto done = rebuild(files_);
  ASSERT_TRUE(done) << done.error().message();
  expect_original();
  EXPECT_FALSE(files_.open("/s/node-0/quarantine/" + format::segment_name(CopiedStore::kFirst),
                           /*direct=*/false))
      << "it was replaced in one step, since nobody else had all of it";
}

TEST_F(StoreRebuild, ARebuildThatFailsAnywhereCostsNothing) {
  for (std::uint64_t stop = 1;; ++stop) {
    start_anew();
    ASSERT_TRUE(files_.flip(segment(CopiedStore::kFirst, "0"), 8 * 200));
    ASSERT_TRUE(files_.flip(segment(CopiedStore::kOther, "1"), 8 * 4090));
    ASSERT_TRUE(files_.flip(copy(CopiedStore::kSecond, "1"), 8 * 300));
    std::uint64_t changes = 0;
    os::FaultyFiles files(files_, [&](const os::Operation& operation) {
      const bool counts = os::changes_disk(operation.kind) && ++changes >= stop;
      return os::Action{.error = counts ? EIO : 0};
    });
    const bool done = rebuild(files).has_value();
    expect_both_whole(fmt::format("after failure {}", stop));
    const auto again = rebuild(files_);
    ASSERT_TRUE(again) << again.error().message();
    expect_original();
    if (done) {
      EXPECT_GT(stop, 12u);
      return;
    }
  }
}

TEST_F(StoreRebuild, APowerCutAnywhereCostsNothing) {
  SeededRandom random;
  for (std::uint64_t stop = 1;; ++stop) {
    start_anew();
    lose("/s/node-1");
    std::uint64_t changes = 0;
    os::FaultyFiles files(files_, [&](const os::Operation& operation) {
      const bool counts = os::changes_disk(operation.kind) && ++changes >= stop;
      return os::Action{.error = counts ? EIO : 0};
    });
    const bool done = rebuild(files).has_value();
    files_.power_cut(random);
    expect_both_whole(fmt::format("after power cut {}", stop));
    ASSERT_TRUE(rebuild(files_));
    expect_original();
    if (done) return;
  }
}

}  // namespace
}  // namespace belay::inspect
