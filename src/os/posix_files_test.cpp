// SPDX-License-Identifier: Apache-2.0
// What the conformance suite cannot provoke: limits of the system, and kernels that refuse a call.
#include <gtest/gtest.h>

#include "os/files.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>

namespace belay::os {
namespace {

namespace fs = std::filesystem;

/// From here on the system call fails with `error` in this process, for good.
bool forbid(long call, int error) {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},  // the number of the call is at offset 0
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<__u32>(call)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<__u32>(error)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter{.len = 4, .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

bool in_memory(const std::string& directory) {
  struct statfs status {};
  return ::statfs(directory.c_str(), &status) == 0 && status.f_type == TMPFS_MAGIC;
}

class PosixFilesTest : public ::testing::Test {
 protected:
  PosixFilesTest() {
    std::string pattern = (fs::temp_directory_path() / "belay-posix-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~PosixFilesTest() override { fs::remove_all(root_); }

  std::string path(const std::string& name) const { return root_ + "/" + name; }
  void put(const std::string& name) {
    ASSERT_TRUE(posix_files().create(path(name), false).value()->write(0, some_));
  }

  /// Runs `body` in a forked child, which gives up privileges or sets limits; the exit code.
  static int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body());
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
  }

  std::string root_;
  std::vector<std::byte> some_ = std::vector<std::byte>(10'000, std::byte{7});
};

TEST_F(PosixFilesTest, UnalignedWritesToADirectFileGoThroughThePageCache) {
  auto file = posix_files().create(path("a"), true).value();
  ASSERT_TRUE(file->write(1, std::span(some_).subspan(1)));
  ASSERT_TRUE(file->sync());
  auto reader = posix_files().open(path("a"), true).value();
  std::vector<std::byte> bytes(some_.size() + 1);
  EXPECT_EQ(reader->read(3, std::span(bytes).subspan(3)).value(), some_.size() - 3);
  EXPECT_EQ(bytes[3], std::byte{7});
}

TEST_F(PosixFilesTest, WriteBeyondTheLimitOnFileSizesIsNoSpaceAfterAShortWrite) {
  EXPECT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{.rlim_cur = 6000, .rlim_max = 6000};
              if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
              auto file = posix_files().create(path("a"), false).value();
              const auto written = file->write(0, some_);
              if (written || written.error().code() != Code::no_space) return 2;
              if (written.error().message().find("write " + path("a")) != 0) return 3;
              return file->size().value() == 6000 ? 0 : 4;
            }),
            0);
}

TEST_F(PosixFilesTest, RenameNewWorksWithoutTheKernelsHelp) {
  put("a");
  put("taken");
  EXPECT_EQ(in_child([&] {
              if (!forbid(SYS_renameat2, EINVAL)) return 1;
              const auto refused = posix_files().rename_new(path("a"), path("taken"));
              if (refused || refused.error().code() != Code::busy) return 2;
              return posix_files().rename_new(path("a"), path("b")) ? 0 : 3;
            }),
            0);
  EXPECT_FALSE(fs::exists(path("a")));
  EXPECT_EQ(fs::file_size(path("b")), some_.size());
}

TEST_F(PosixFilesTest, ReservingIsOptionalForAFileSystem) {
  EXPECT_EQ(in_child([&] {
              if (!forbid(SYS_fallocate, EOPNOTSUPP)) return 1;
              return posix_files().create(path("a"), false).value()->reserve(4096) ? 0 : 2;
            }),
            0);
}

TEST_F(PosixFilesTest, ReservingMoreThanThereIsIsNoSpace) {
  if (in_memory(root_)) GTEST_SKIP() << "nothing is reserved in memory; point TMPDIR to a disk";
  EXPECT_EQ(in_child([&] {
              if (!forbid(SYS_fallocate, ENOSPC)) return 1;
              const auto reserved = posix_files().create(path("a"), false).value()->reserve(4096);
              return !reserved && reserved.error().code() == Code::no_space ? 0 : 2;
            }),
            0);
}

TEST_F(PosixFilesTest, NothingIsReservedInMemory) {
  if (!in_memory("/dev/shm")) GTEST_SKIP() << "/dev/shm is not in memory";
  const std::string name = "/dev/shm/" + fs::path(root_).filename().string();
  EXPECT_EQ(in_child([&] {
              if (!forbid(SYS_fallocate, ENOSPC)) return 1;
              return posix_files().create(name, false).value()->reserve(4096) ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(fs::remove(name));
}

TEST_F(PosixFilesTest, SpaceSaysWhetherItIsMemory) {
  EXPECT_EQ(posix_files().space(root_).value().in_memory, in_memory(root_));
  EXPECT_FALSE(posix_files().space("/proc").value().in_memory);
  if (!in_memory("/dev/shm")) GTEST_SKIP() << "/dev/shm is not in memory";
  EXPECT_TRUE(posix_files().space("/dev/shm").value().in_memory);
}

TEST_F(PosixFilesTest, AFileWithASecondNameIsNotMadeIntoANewOne) {
  ASSERT_TRUE(posix_files().create(path("a"), false).value()->truncate(8192));
  fs::create_hard_link(path("a"), path("b"));
  const auto made = posix_files().create_from(path("a"), path("c"), false);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::busy);
  EXPECT_EQ(fs::file_size(path("b")), 8192u);
  EXPECT_FALSE(fs::exists(path("c")));
}

TEST_F(PosixFilesTest, FailureOfSyncIsReported) {
  EXPECT_EQ(in_child([&] {
              auto file = posix_files().create(path("a"), false).value();
              if (!forbid(SYS_fdatasync, EIO)) return 1;
              const auto synced = file->sync();
              return !synced && synced.error().code() == Code::io ? 0 : 2;
            }),
            0);
}

TEST_F(PosixFilesTest, AMadeDirectoryIsDurable) {
  EXPECT_EQ(in_child([&] {
              if (::chdir(root_.c_str()) != 0 || !forbid(SYS_fsync, EIO)) return 1;
              return posix_files().make_directory("d") ? 2 : 0;
            }),
            0);
}

TEST_F(PosixFilesTest, SoIsOneThatAnotherProcessMade) {
  ASSERT_TRUE(posix_files().make_directory(path("d")));
  EXPECT_EQ(in_child([&] {
              if (!forbid(SYS_fsync, EIO)) return 1;
              return posix_files().make_directory(path("d")) ? 2 : 0;
            }),
            0);
}

TEST_F(PosixFilesTest, AParentThatMayNotBeReadIsLeftAlone) {
  constexpr uid_t kNobody = 65534;
  ASSERT_TRUE(posix_files().make_directory(path("d/mine")));
  if (::geteuid() == 0) {
    for (const std::string& owned : {root_, path("d"), path("d/mine")})
      ASSERT_EQ(::chown(owned.c_str(), kNobody, kNobody), 0);
  }
  ASSERT_EQ(::chmod(path("d").c_str(), 0300), 0);
  EXPECT_EQ(in_child([&] {
              if (::geteuid() == 0 && ::setuid(kNobody) != 0) return 1;
              return posix_files().make_directory(path("d/mine/inner")) ? 0 : 2;
            }),
            0);
  ASSERT_EQ(::chmod(path("d").c_str(), 0700), 0);
}

TEST_F(PosixFilesTest, DirectoriesThatCannotBeSyncedAreNoError) {
  EXPECT_EQ(in_child([&] {
              if (!forbid(SYS_fsync, EINVAL)) return 1;
              return posix_files().sync_directory(root_) ? 0 : 2;
            }),
            0);
}

TEST_F(PosixFilesTest, TimesThatCannotBeSetAreNoError) {
  put("a");
  EXPECT_EQ(in_child([&] {
              if (!forbid(SYS_utimensat, EPERM)) return 1;
              return posix_files().touch(path("a")).value_or(0u) == 10'000 ? 0 : 2;
            }),
            0);
}

TEST_F(PosixFilesTest, LockIsTakenThoughItsOwnerCannotBeWritten) {
  EXPECT_EQ(in_child([&] {
              if (!forbid(SYS_pwrite64, ENOSPC)) return 1;
              return posix_files().lock(path("lock"), "me") ? 0 : 2;
            }),
            0);
}

TEST_F(PosixFilesTest, ADirectoryOfAnotherUserIsNotLocked) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  ASSERT_TRUE(posix_files().make_directory(path("d")));
  ASSERT_EQ(::chown(path("d").c_str(), 65534, 65534), 0);
  const auto lock = posix_files().lock(path("d/lock"), "me");
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code(), Code::io);
  EXPECT_NE(lock.error().message().find("belongs to user 65534"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("d/lock")));
}

TEST_F(PosixFilesTest, DirectoryWithoutPermissionIsIo) {
  ASSERT_TRUE(posix_files().make_directory(path("d")));
  EXPECT_EQ(in_child([&] {
              if (::geteuid() == 0 && ::setuid(65534) != 0) return 1;
              ::chmod(path("d").c_str(), 0500);
              const auto made = posix_files().make_directory(path("d/x"));
              return !made && made.error().code() == Code::io &&
                             made.error().message().find("owner and mode") != std::string::npos
                         ? 0
                         : 2;
            }),
            0);
}

TEST_F(PosixFilesTest, DescriptorsAreNotInherited) {
  const auto file = posix_files().create(path("a"), false).value();
  const auto lock = posix_files().lock(path("lock"), "me").value();
  int found = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (!fs::read_symlink(entry.path(), gone).string().starts_with(root_)) continue;
    ++found;
    EXPECT_TRUE(::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC);
  }
  EXPECT_EQ(found, 2);
}

}  // namespace
}  // namespace belay::os
