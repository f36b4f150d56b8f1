// SPDX-License-Identifier: Apache-2.0
// Stores on a real file system: modes, links, pipes, places that cannot be written, other
// processes.
#include "os/faulty_files.hpp"
#include "session/session_test.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace belay::session {
namespace {

namespace fs = std::filesystem;

class StoreFiles : public SessionTest {
 protected:
  StoreFiles() {
    std::string pattern = testing::TempDir() + "belay-store-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
    files_ = &os::posix_files();
  }
  ~StoreFiles() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Options real_options() const {
    Options options = SessionTest::options();
    options.store = root_ / "some" / "store";
    return options;
  }
  fs::path node() const { return root_ / "some" / "store" / "node-host-a"; }
  static mode_t mode_of(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  void save(int versions) {
    auto session = open(real_options());
    must(session.protect("numbers", numbers_));
    for (int i = 0; i < versions; ++i) {
      ++numbers_[0];
      take(session);
    }
    must(session.close());
  }

  fs::path root_;
  std::vector<std::uint64_t> numbers_ = noise(20 * kPerBlock, 1);
};

TEST_F(StoreFiles, FilesAreForTheirOwnerOnlyWhateverTheUmask) {
  const mode_t before = ::umask(0);
  save(2);
  ::umask(before);
  std::size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(node())) {
    EXPECT_EQ(mode_of(entry.path()), 0600u) << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 6u) << "lock, run record, settled mark, two manifests, a segment";
  for (const auto& directory : {node(), node().parent_path(), node().parent_path().parent_path()})
    EXPECT_EQ(mode_of(directory), 0700u) << directory;
}

TEST_F(StoreFiles, AStretchedManifestTakesNoMemory) {
  save(2);
  for (const auto& entry : fs::directory_iterator(node()))
    if (entry.path().filename().string().starts_with("manifest-000001-0000000002"))
      fs::resize_file(entry.path(), std::uint64_t{1} << 42);
  auto session = open(real_options());
  EXPECT_TRUE(logged("the file was cut or extended"));
  std::vector<std::uint64_t> found;
  must(session.protect("numbers", found));
  EXPECT_EQ(must(session.restore()), 1u);
}

TEST_F(StoreFiles, ComesBackAfterARestart) {
  save(3);
  const auto saved = numbers_;
  numbers_.clear();
  auto session = open(real_options());
  must(session.protect("numbers", numbers_));
  EXPECT_EQ(must(session.restore()), 3u);
  EXPECT_EQ(numbers_, saved);
  EXPECT_EQ(take_ledger(session).written_bytes, 0u);
}

TEST_F(StoreFiles, AStorePathThatIsAFileIsRefused) {
  std::ofstream(root_ / "some") << "a file";
  const auto opened = try_open(real_options());
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message().find((root_ / "some").string()), std::string::npos)
      << opened.error().message();
}

TEST_F(StoreFiles, AStoreThatCannotBeWrittenIsRefused) {
  os::FaultyFiles refused(os::posix_files(), [](const os::Operation& operation) {
    return os::Action{.error = os::changes_disk(operation.kind) ? EACCES : 0};
  });
  files_ = &refused;
  const auto opened = try_open(real_options());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::io) << opened.error().message();
  EXPECT_NE(opened.error().message().find("Permission denied"), std::string::npos);
  EXPECT_NE(opened.error().message().find(root_.string()), std::string::npos);
}

TEST_F(StoreFiles, ALinkWithAManifestsNameIsNotFollowed) {
  save(2);
  const fs::path newest = node() / "manifest-000001-0000000002-000000";
  const fs::path elsewhere = root_ / "elsewhere";
  fs::rename(newest, elsewhere);
  fs::create_symlink(elsewhere, newest);
  auto session = open(real_options());
  EXPECT_EQ(session.latest(), 1u);
  must(session.protect("numbers", numbers_));
  EXPECT_EQ(must(session.restore()), 1u);
  EXPECT_TRUE(fs::exists(elsewhere));
}

TEST_F(StoreFiles, APipeWithASegmentsNameDoesNotBlock) {
  save(2);
  const fs::path segment = node() / "segment-000001-0000000002-000000";
  ASSERT_TRUE(fs::remove(segment));
  ASSERT_EQ(::mkfifo(segment.c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((node() / "manifest-000001-0000000007-000000").c_str(), 0600), 0);
  auto session = open(real_options());
  EXPECT_EQ(session.latest(), 1u);
  must(session.protect("numbers", numbers_));
  EXPECT_EQ(must(session.restore()), 1u);
}

TEST_F(StoreFiles, ALinkInThePlaceOfTheLockIsRefused) {
  save(1);
  fs::remove(node() / "lock");
  fs::create_symlink(root_ / "victim", node() / "lock");
  EXPECT_FALSE(try_open(real_options()));
  EXPECT_FALSE(fs::exists(root_ / "victim"));
}

TEST_F(StoreFiles, AProcessThatHoldsTheStoreMakesItBusyUntilItDies) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto session = try_open(real_options());
    const char answer = session ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) == 1) ::pause();
    ::_exit(1);
  }
  char answer = 0;
  EXPECT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  expect_error(try_open(real_options()), Code::busy, {"host host-a", "pid 4711"});
  ::kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
  const auto opened = try_open(real_options());
  EXPECT_TRUE(opened) << opened.error().message();
}

TEST_F(StoreFiles, ARelativeStoreStaysWhereItWasWhenTheProgramMoves) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  Options relative = options();
  relative.store = "here";
  auto session = open(relative);
  fs::current_path(before);
  must(session.protect("numbers", numbers_));
  take(session);
  EXPECT_TRUE(fs::exists(root_ / "here" / "node-host-a" / "manifest-000001-0000000001-000000"));
}

TEST_F(StoreFiles, TheDirectoryDeletedUnderneathIsMadeAgain) {
  auto session = open(real_options());
  must(session.protect("numbers", numbers_));
  take(session);
  fs::remove_all(node());
  ++numbers_[0];
  const auto saved = numbers_;
  take(session);
  numbers_.clear();
  EXPECT_EQ(must(session.restore()), 2u);
  EXPECT_EQ(numbers_, saved);
}

TEST_F(StoreFiles, ASegmentDeletedUnderneathIsWrittenAgain) {
  auto session = open(real_options());
  must(session.protect("numbers", numbers_));
  take(session);
  ASSERT_TRUE(fs::remove(node() / "segment-000001-0000000001-000000"));
  EXPECT_EQ(take_ledger(session).written_bytes, 20 * kBlock);
  const auto saved = numbers_;
  numbers_.clear();
  EXPECT_EQ(must(session.restore()), 2u);
  EXPECT_EQ(numbers_, saved);
}

}  // namespace
}  // namespace belay::session
