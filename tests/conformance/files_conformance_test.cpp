// SPDX-License-Identifier: Apache-2.0
// What every implementation of os::Files does alike. The second half is about what only a real file
// system has: modes, links, pipes, other processes.
#include <gtest/gtest.h>

#include "os/faulty_files.hpp"
#include "os/files.hpp"
#include "os/memory_files.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>

namespace belay::os {
namespace {

namespace fs = std::filesystem;

/// One implementation with a fresh, empty directory in it.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Files& files() = 0;
  virtual std::string root() const = 0;
};

class PosixBackend final : public Backend {
 public:
  PosixBackend() {
    std::string pattern = (fs::temp_directory_path() / "belay-files-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~PosixBackend() override { fs::remove_all(root_); }
  Files& files() override { return posix_files(); }
  std::string root() const override { return root_; }

 private:
  std::string root_;
};

class MemoryBackend final : public Backend {
 public:
  MemoryBackend() { EXPECT_TRUE(files_.make_directory("/root")); }
  Files& files() override { return files_; }
  std::string root() const override { return "/root"; }

 private:
  MemoryFiles files_;
};

template <class Under>
class FaultyBackend final : public Backend {
 public:
  Files& files() override { return files_; }
  std::string root() const override { return under_.root(); }

 private:
  Under under_;
  FaultyFiles files_{under_.files(), [](const Operation&) { return Action{}; }};
};

template <class T>
std::unique_ptr<Backend> make() {
  return std::make_unique<T>();
}

struct Implementation {
  std::string name;
  std::unique_ptr<Backend> (*make)();
};

std::string name_of_parameter(const ::testing::TestParamInfo<Implementation>& info) {
  return info.param.name;
}

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed = 1) {
  std::vector<std::byte> result(bytes);
  std::uint64_t state = seed;
  for (std::byte& byte : result) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return result;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <class T>
::testing::AssertionResult fails_with(const Result<T>& result, Code code,
                                      const std::string& mentioned) {
  if (result) return ::testing::AssertionFailure() << "succeeded";
  if (result.error().code() != code)
    return ::testing::AssertionFailure() << "code " << static_cast<int>(result.error().code())
                                         << ": " << result.error().message();
  if (result.error().message().find(mentioned) == std::string::npos)
    return ::testing::AssertionFailure() << result.error().message();
  return ::testing::AssertionSuccess();
}

class FilesTest : public ::testing::TestWithParam<Implementation> {
 protected:
  Files& files() { return backend_->files(); }
  std::string path(const std::string& name) const { return backend_->root() + "/" + name; }

  void put(const std::string& name, std::span<const std::byte> bytes) {
    auto file = files().create(path(name), false);
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_TRUE((*file)->write(0, bytes));
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE((*file)->close());
  }

  std::vector<std::byte> get(const std::string& name) {
    auto file = files().open(path(name), false);
    if (!file) {
      ADD_FAILURE() << file.error().message();
      return {};
    }
    std::vector<std::byte> bytes((*file)->size().value());
    EXPECT_EQ((*file)->read(0, bytes).value(), bytes.size());
    return bytes;
  }

  std::vector<std::string> names(const std::string& directory) {
    std::vector<std::string> result;
    const auto entries = files().list(directory);
    EXPECT_TRUE(entries);
    if (entries)
      for (const DirectoryEntry& entry : *entries) result.push_back(entry.name);
    return result;
  }

  std::unique_ptr<Backend> backend_ = GetParam().make();
};

using Names = std::vector<std::string>;

TEST_P(FilesTest, WhatWasWrittenIsReadBack) {
  const auto bytes = pattern(100'000);
  put("a", bytes);
  EXPECT_EQ(get("a"), bytes);
}

TEST_P(FilesTest, CreateRefusesATakenName) {
  put("a", pattern(3));
  EXPECT_TRUE(fails_with(files().create(path("a"), false), Code::busy, "create " + path("a")));
  EXPECT_EQ(get("a"), pattern(3));
  ASSERT_TRUE(files().make_directory(path("d")));
  EXPECT_TRUE(fails_with(files().create(path("d"), false), Code::busy, path("d")));
}

TEST_P(FilesTest, CreateInAMissingDirectoryIsNotFound) {
  EXPECT_TRUE(fails_with(files().create(path("d/a"), false), Code::not_found, path("d/a")));
  put("a", pattern(1));
  EXPECT_TRUE(fails_with(files().create(path("a/b"), false), Code::not_found, path("a/b")));
}

TEST_P(FilesTest, OpenOfWhatIsMissingOrNoFileSaysSo) {
  EXPECT_TRUE(fails_with(files().open(path("a"), false), Code::not_found, "open " + path("a")));
  EXPECT_TRUE(fails_with(files().open("", false), Code::not_found, "open"));
  ASSERT_TRUE(files().make_directory(path("d")));
  EXPECT_TRUE(fails_with(files().open(path("d"), false), Code::corruption, path("d")));
}

TEST_P(FilesTest, NamesThatAreTooLongAreAnError) {
  EXPECT_TRUE(fails_with(files().create(path(std::string(256, 'x')), false), Code::io, "shorter"));
  put(std::string(255, 'x'), pattern(1));
}

TEST_P(FilesTest, ReadAtTheEndIsShort) {
  put("a", bytes_of("0123456789"));
  auto file = files().open(path("a"), false).value();
  std::vector<std::byte> bytes(8);
  EXPECT_EQ(file->read(0, bytes).value(), 8u);
  EXPECT_EQ(file->read(6, bytes).value(), 4u);
  EXPECT_EQ(std::memcmp(bytes.data(), "6789", 4), 0);
  EXPECT_EQ(file->read(10, bytes).value(), 0u);
  EXPECT_EQ(file->read(1'000'000, bytes).value(), 0u);
  EXPECT_EQ(file->read(3, {}).value(), 0u);
}

TEST_P(FilesTest, WritesMayOverlapAndLeaveHolesOfZeros) {
  auto file = files().create(path("a"), false).value();
  ASSERT_TRUE(file->write(8, bytes_of("late")));
  ASSERT_TRUE(file->write(0, bytes_of("early")));
  ASSERT_TRUE(file->write(4, bytes_of("Y")));
  ASSERT_TRUE(file->write(2, {}));
  EXPECT_EQ(file->size().value(), 12u);
  std::vector<std::byte> bytes(12);
  EXPECT_EQ(file->read(0, bytes).value(), 12u);
  EXPECT_EQ(std::memcmp(bytes.data(), "earlY\0\0\0late", 12), 0);
}

TEST_P(FilesTest, BigWritesAndReadsAreWhole) {
  const auto bytes = pattern(24 << 20);
  auto file = files().create(path("a"), false).value();
  ASSERT_TRUE(file->reserve(bytes.size()));
  ASSERT_TRUE(file->write(0, std::span(bytes).first(7)));
  ASSERT_TRUE(file->write(7, std::span(bytes).subspan(7)));
  ASSERT_TRUE(file->sync());
  EXPECT_TRUE(get("a") == bytes);
}

TEST_P(FilesTest, DirectFilesTakeAlignedBuffers) {
  constexpr std::size_t kBytes = 16 * kDirectAlignment;
  const std::unique_ptr<std::byte, void (*)(void*)> memory(
      static_cast<std::byte*>(std::aligned_alloc(kDirectAlignment, kBytes)), std::free);
  const std::span<std::byte> buffer(memory.get(), kBytes);
  const auto bytes = pattern(kBytes);
  std::copy(bytes.begin(), bytes.end(), buffer.begin());
  auto file = files().create(path("a"), true).value();
  ASSERT_TRUE(file->reserve(2 * kBytes));
  ASSERT_TRUE(file->write(0, buffer));
  ASSERT_TRUE(file->write(kBytes, buffer.first(kDirectAlignment)));
  ASSERT_TRUE(file->truncate(kBytes + 100));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->close());

  auto reader = files().open(path("a"), true).value();
  std::fill(buffer.begin(), buffer.end(), std::byte{0});
  EXPECT_EQ(reader->read(0, buffer).value(), kBytes);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), buffer.begin()));
  EXPECT_EQ(reader->read(kBytes, buffer).value(), 100u);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 100, buffer.begin()));
  EXPECT_EQ(reader->read(kDirectAlignment, buffer).value(), kBytes - kDirectAlignment + 100);
}

TEST_P(FilesTest, TruncateCutsAndExtendsWithZeros) {
  auto file = files().create(path("a"), false).value();
  ASSERT_TRUE(file->write(0, bytes_of("0123456789")));
  ASSERT_TRUE(file->truncate(3));
  EXPECT_EQ(file->size().value(), 3u);
  ASSERT_TRUE(file->truncate(6));
  std::vector<std::byte> bytes(10);
  EXPECT_EQ(file->read(0, bytes).value(), 6u);
  EXPECT_EQ(std::memcmp(bytes.data(), "012\0\0\0", 6), 0);
}

TEST_P(FilesTest, ReserveDoesNotChangeTheSize) {
  auto file = files().create(path("a"), false).value();
  ASSERT_TRUE(file->reserve(0));
  ASSERT_TRUE(file->reserve(1 << 20));
  EXPECT_EQ(file->size().value(), 0u);
  ASSERT_TRUE(file->write(0, bytes_of("abc")));
  EXPECT_EQ(file->size().value(), 3u);
}

TEST_P(FilesTest, FilesOpenedForReadingRefuseWrites) {
  put("a", pattern(3));
  auto file = files().open(path("a"), false).value();
  EXPECT_TRUE(fails_with(file->write(0, bytes_of("x")), Code::io, "write " + path("a")));
  EXPECT_EQ(get("a"), pattern(3));
}

TEST_P(FilesTest, ClosedFilesFail) {
  auto file = files().create(path("a"), false).value();
  ASSERT_TRUE(file->close());
  EXPECT_TRUE(fails_with(file->write(0, bytes_of("x")), Code::io, "write " + path("a")));
  EXPECT_TRUE(fails_with(file->sync(), Code::io, "sync " + path("a")));
  EXPECT_TRUE(fails_with(file->close(), Code::io, "close " + path("a")));
}

TEST_P(FilesTest, TouchGivesTheSizeOfARegularFile) {
  put("a", pattern(1234));
  EXPECT_EQ(files().touch(path("a")).value(), 1234u);
  EXPECT_TRUE(fails_with(files().touch(path("b")), Code::not_found, "touch " + path("b")));
  ASSERT_TRUE(files().make_directory(path("d")));
  EXPECT_TRUE(fails_with(files().touch(path("d")), Code::corruption, path("d")));
}

TEST_P(FilesTest, RenameReplacesTheTarget) {
  put("new", pattern(10, 1));
  put("old", pattern(10, 2));
  auto reader = files().open(path("old"), false).value();
  ASSERT_TRUE(files().rename(path("new"), path("old")));
  EXPECT_EQ(get("old"), pattern(10, 1));
  EXPECT_EQ(names(path("")), Names{"old"});
  std::vector<std::byte> bytes(10);
  EXPECT_EQ(reader->read(0, bytes).value(), 10u) << "a replaced file lives until it is closed";
  EXPECT_EQ(bytes, pattern(10, 2));
  ASSERT_TRUE(files().rename(path("old"), path("old")));
  EXPECT_EQ(get("old"), pattern(10, 1));
}

TEST_P(FilesTest, RenameMovesBetweenDirectories) {
  ASSERT_TRUE(files().make_directory(path("d")));
  put("a", pattern(10));
  ASSERT_TRUE(files().rename(path("a"), path("d/b")));
  EXPECT_EQ(get("d/b"), pattern(10));
  EXPECT_EQ(names(path("")), Names{"d"});
}

TEST_P(FilesTest, RenameOfAMissingFileIsNotFound) {
  EXPECT_TRUE(fails_with(files().rename(path("a"), path("b")), Code::not_found, path("a")));
  EXPECT_TRUE(fails_with(files().rename_new(path("a"), path("b")), Code::not_found, path("a")));
  put("a", pattern(1));
  EXPECT_TRUE(fails_with(files().rename(path("a"), path("d/b")), Code::not_found, path("d/b")));
  ASSERT_TRUE(files().make_directory(path("d")));
  EXPECT_TRUE(fails_with(files().rename(path("a"), path("d")), Code::io, path("d")));
}

TEST_P(FilesTest, RenameNewRefusesATakenName) {
  put("a", pattern(10, 1));
  put("b", pattern(10, 2));
  EXPECT_TRUE(fails_with(files().rename_new(path("a"), path("b")), Code::busy, path("b")));
  EXPECT_EQ(get("a"), pattern(10, 1));
  EXPECT_EQ(get("b"), pattern(10, 2));
  ASSERT_TRUE(files().rename_new(path("a"), path("c")));
  EXPECT_EQ(names(path("")), (Names{"b", "c"}));
}

TEST_P(FilesTest, RemoveTakesFilesOnly) {
  put("a", pattern(10));
  ASSERT_TRUE(files().remove(path("a")));
  EXPECT_TRUE(fails_with(files().remove(path("a")), Code::not_found, "remove " + path("a")));
  ASSERT_TRUE(files().make_directory(path("d")));
  EXPECT_TRUE(fails_with(files().remove(path("d")), Code::io, path("d")));
}

TEST_P(FilesTest, SyncDirectoryNeedsADirectory) {
  EXPECT_TRUE(files().sync_directory(path("")));
  EXPECT_TRUE(fails_with(files().sync_directory(path("d")), Code::not_found, path("d")));
  put("a", pattern(1));
  EXPECT_TRUE(fails_with(files().sync_directory(path("a")), Code::not_found, path("a")));
}

TEST_P(FilesTest, MakeDirectoryMakesParentsAndAcceptsWhatIsThere) {
  ASSERT_TRUE(files().make_directory(path("a/b//c/")));
  ASSERT_TRUE(files().make_directory(path("a/b/c")));
  ASSERT_TRUE(files().make_directory(path("a/b/./d/../e")));
  put("a/b/c/file", pattern(1));
  EXPECT_EQ(names(path("a")), Names{"b"});
  EXPECT_EQ(names(path("a/b/c")), Names{"file"});
}

TEST_P(FilesTest, MakeDirectoryRefusesAFileInTheWay) {
  put("a", pattern(1));
  EXPECT_TRUE(fails_with(files().make_directory(path("a")), Code::invalid_argument, path("a")));
  EXPECT_TRUE(fails_with(files().make_directory(path("a/b")), Code::invalid_argument, path("a")));
  EXPECT_TRUE(fails_with(files().make_directory(""), Code::not_found, "make directory"));
}

TEST_P(FilesTest, ListIsSortedAndTellsKinds) {
  for (const char* name : {"b", "a", "c", "B", "aa"}) put(name, pattern(1));
  ASSERT_TRUE(files().make_directory(path("ab")));
  EXPECT_EQ(names(path("")), (Names{"B", "a", "aa", "ab", "b", "c"}));
  const auto entries = files().list(path("")).value();
  for (const DirectoryEntry& entry : entries)
    EXPECT_EQ(entry.kind, entry.name == "ab" ? EntryKind::directory : EntryKind::file);
  EXPECT_TRUE(fails_with(files().list(path("x")), Code::not_found, "list " + path("x")));
  EXPECT_TRUE(fails_with(files().list(path("a")), Code::not_found, "list " + path("a")));
}

TEST_P(FilesTest, AFileCanBeMadeOfARetiredOne) {
  const auto old = pattern(3 * kDirectAlignment, 1);
  put("old", old);
  auto made = files().create_from(path("old"), path("new"), false);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(names(path("")), std::vector<std::string>{"new"});
  EXPECT_EQ((*made)->size().value(), 2 * kDirectAlignment) << "what made it valid is gone";
  const auto fresh = pattern(kDirectAlignment, 2);
  ASSERT_TRUE((*made)->write(0, fresh));
  ASSERT_TRUE((*made)->truncate(fresh.size()));
  ASSERT_TRUE((*made)->sync());
  ASSERT_TRUE((*made)->close());
  EXPECT_EQ(get("new"), fresh);
}

TEST_P(FilesTest, ARetiredFileThatSomebodyReadsStaysAsItIsForThem) {
  const auto old = pattern(3 * kDirectAlignment, 1);
  put("old", old);
  const auto reader = files().open(path("old"), false);
  ASSERT_TRUE(reader);
  EXPECT_TRUE(fails_with(files().create_from(path("old"), path("new"), false), Code::busy, ""));
  EXPECT_TRUE(fails_with(files().open(path("new"), false), Code::not_found, ""));
  std::vector<std::byte> seen(old.size());
  EXPECT_EQ((*reader)->read(0, seen).value(), old.size());
  EXPECT_EQ(seen, old);
}

TEST_P(FilesTest, ARetiredFileTakesNoNameFromAnother) {
  const auto old = pattern(2 * kDirectAlignment, 1);
  const auto other = pattern(kDirectAlignment, 2);
  put("old", old);
  put("other", other);
  EXPECT_TRUE(fails_with(files().create_from(path("old"), path("other"), false), Code::busy, ""));
  EXPECT_EQ(get("other"), other);
  EXPECT_EQ(get("old"), old);
  EXPECT_TRUE(fails_with(files().create_from(path("x"), path("new"), false), Code::not_found, ""));
}

TEST_P(FilesTest, SpaceIsPlausible) {
  const Space space = files().space(path("")).value();
  EXPECT_GT(space.total_bytes, 0u);
  EXPECT_LE(space.free_bytes, space.total_bytes);
  EXPECT_TRUE(fails_with(files().space(path("x")), Code::not_found, "space " + path("x")));
}

TEST_P(FilesTest, LockIsHeldUntilDestroyedAndNamesItsOwner) {
  auto held = files().lock(path("lock"), "host a, pid 1, a rather long text");
  ASSERT_TRUE(held) << held.error().message();
  const auto second = files().lock(path("lock"), "host b, pid 2");
  ASSERT_TRUE(fails_with(second, Code::busy, ""));
  EXPECT_EQ(second.error().message(), "host a, pid 1, a rather long text");
  held->reset();
  const auto third = files().lock(path("lock"), "host c");
  ASSERT_TRUE(third);
  EXPECT_EQ(files().lock(path("lock"), "host d").error().message(), "host c");
}

TEST_P(FilesTest, LockNeedsARegularFileInADirectory) {
  EXPECT_TRUE(fails_with(files().lock(path("d/lock"), "me"), Code::not_found, path("d/lock")));
  ASSERT_TRUE(files().make_directory(path("d")));
  EXPECT_TRUE(fails_with(files().lock(path("d"), "me"), Code::corruption, path("d")));
}

TEST_P(FilesTest, OwnersTextIsSanitized) {
  const auto held = files().lock(path("lock"), "\x1b[2J" + std::string(1000, 'x'));
  const std::string message = files().lock(path("lock"), "me").error().message();
  EXPECT_EQ(message, "?[2J" + std::string(196, 'x'));
}

INSTANTIATE_TEST_SUITE_P(
    All, FilesTest,
    ::testing::Values(Implementation{"posix", make<PosixBackend>},
                      Implementation{"memory", make<MemoryBackend>},
                      Implementation{"faulty_posix", make<FaultyBackend<PosixBackend>>},
                      Implementation{"faulty_memory", make<FaultyBackend<MemoryBackend>>}),
    name_of_parameter);

/// Only where the kernel is underneath.
class RealFilesTest : public FilesTest {
 protected:
  mode_t mode(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(::lstat(path(name).c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  /// Runs `body` in a forked child; true if it returned true there.
  static bool in_child(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

TEST_P(RealFilesTest, ModesDoNotDependOnTheUmask) {
  for (const mode_t mask : {0000u, 0022u, 0077u, 0777u}) {
    const std::string name = "d" + std::to_string(mask);
    const mode_t before = ::umask(mask);
    const bool made = files().make_directory(path(name + "/inner")).has_value();
    auto file = files().create(path(name + "/file"), false);
    auto lock = files().lock(path(name + "/lock"), "me");
    ::umask(before);
    ASSERT_TRUE(made && file && lock);
    EXPECT_EQ(mode(name), 0700u);
    EXPECT_EQ(mode(name + "/inner"), 0700u);
    EXPECT_EQ(mode(name + "/file"), 0600u);
    EXPECT_EQ(mode(name + "/lock"), 0600u);
  }
}

TEST_P(RealFilesTest, ExistingDirectoriesKeepTheirModeAndGroupBit) {
  ASSERT_EQ(::mkdir(path("d").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path("d").c_str(), 02755), 0);
  const mode_t before = ::umask(0777);
  const bool made = files().make_directory(path("d/inner")).has_value();
  ::umask(before);
  ASSERT_TRUE(made);
  EXPECT_EQ(mode("d"), 02755u);
  EXPECT_EQ(mode("d/inner"), 02700u) << "inherits its group, as group quotas need";
}

TEST_P(RealFilesTest, LinksAndPipesAreNeitherFollowedNorWaitedFor) {
  put("file", pattern(10));
  ASSERT_EQ(::symlink(path("file").c_str(), path("link").c_str()), 0);
  ASSERT_EQ(::symlink(path("nowhere").c_str(), path("dangling").c_str()), 0);
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "dangling", "pipe"}) {
    EXPECT_TRUE(fails_with(files().open(path(name), false), Code::corruption, path(name)));
    EXPECT_TRUE(fails_with(files().open(path(name), true), Code::corruption, path(name)));
    EXPECT_TRUE(fails_with(files().touch(path(name)), Code::corruption, path(name)));
    EXPECT_TRUE(fails_with(files().lock(path(name), "me"), Code::corruption, path(name)));
    EXPECT_TRUE(fails_with(files().create(path(name), false), Code::busy, path(name)));
    EXPECT_TRUE(fails_with(files().rename_new(path("file"), path(name)), Code::busy, path(name)));
  }
  EXPECT_FALSE(fs::exists(path("nowhere")));
  const auto entries = files().list(path("")).value();
  for (const DirectoryEntry& entry : entries)
    EXPECT_EQ(entry.kind, entry.name == "file" ? EntryKind::file : EntryKind::other);
  ASSERT_TRUE(files().rename(path("file"), path("link")));
  EXPECT_FALSE(fs::is_symlink(path("link")));
}

TEST_P(RealFilesTest, AStoreMayBeReachedThroughALinkToADirectory) {
  ASSERT_TRUE(files().make_directory(path("real")));
  ASSERT_EQ(::symlink(path("real").c_str(), path("link").c_str()), 0);
  ASSERT_TRUE(files().make_directory(path("link/inner")));
  EXPECT_EQ(names(path("real")), Names{"inner"});
}

TEST_P(RealFilesTest, ALinkInThePlaceOfADirectoryToBeMadeIsCorruption) {
  ASSERT_TRUE(files().make_directory(path("real")));
  ASSERT_EQ(::symlink(path("real").c_str(), path("link").c_str()), 0);
  ASSERT_EQ(::symlink(path("nothing").c_str(), path("dangling").c_str()), 0);
  for (const std::string name : {"link", "dangling"})
    EXPECT_TRUE(fails_with(files().make_directory(path(name)), Code::corruption, path(name)));
  EXPECT_FALSE(fs::exists(path("nothing")));
}

TEST_P(RealFilesTest, TouchSetsTheTime) {
  put("a", pattern(10));
  fs::last_write_time(path("a"), fs::file_time_type::clock::now() - std::chrono::hours(1000));
  ASSERT_TRUE(files().touch(path("a")));
  EXPECT_GT(fs::last_write_time(path("a")),
            fs::file_time_type::clock::now() - std::chrono::hours(1));
}

TEST_P(RealFilesTest, LockKeepsOtherProcessesOut) {
  auto held = files().lock(path("lock"), "the parent");
  ASSERT_TRUE(held);
  EXPECT_TRUE(in_child([&] {
    const auto lock = files().lock(path("lock"), "the child");
    return !lock && lock.error().code() == Code::busy && lock.error().message() == "the parent";
  }));
  held->reset();
  EXPECT_TRUE(in_child([&] { return files().lock(path("lock"), "the child").has_value(); }));
}

TEST_P(RealFilesTest, LockIsFreeAfterItsProcessWasKilled) {
  EXPECT_FALSE(in_child([&] {
    const auto lock = files().lock(path("lock"), "the child");
    return ::kill(::getpid(), SIGKILL) == 0;
  }));
  EXPECT_TRUE(files().lock(path("lock"), "the parent"));
}

INSTANTIATE_TEST_SUITE_P(Kernel, RealFilesTest,
                         ::testing::Values(Implementation{"posix", make<PosixBackend>},
                                           Implementation{"faulty_posix",
                                                          make<FaultyBackend<PosixBackend>>}),
                         name_of_parameter);

}  // namespace
}  // namespace belay::os
