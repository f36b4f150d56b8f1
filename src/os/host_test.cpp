// SPDX-License-Identifier: Apache-2.0
#include "os/host.hpp"

#include <gtest/gtest.h>

#include "os/cgroup.hpp"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace belay::os {
namespace {

namespace fs = std::filesystem;

class CgroupTest : public ::testing::Test {
 protected:
  CgroupTest() {
    std::string pattern = (fs::temp_directory_path() / "belay-cgroup-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~CgroupTest() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  std::string root_;
};

TEST_F(CgroupTest, WithoutFilesThereIsNoQuota) { EXPECT_FALSE(cgroup_processors(root_)); }

TEST_F(CgroupTest, SecondVersionTakesTheSmallestQuotaUpToTheRoot) {
  put("/proc/self/cgroup", "0::/job/step\n");
  put("/sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_FALSE(cgroup_processors(root_));
  put("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_processors(root_), 1.5);
  put("/sys/fs/cgroup/job/step/cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_processors(root_), 1.5);
  put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_processors(root_), 0.5);
}

TEST_F(CgroupTest, FirstVersionReadsQuotaAndPeriod) {
  put("/proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n");
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(cgroup_processors(root_));
  put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(cgroup_processors(root_), 3.0);
}

TEST_F(CgroupTest, MemoryIsLimitedByTheSmallestOfAllGroups) {
  EXPECT_FALSE(cgroup_memory_bytes(root_));
  put("/proc/self/cgroup", "0::/job/step\n");
  put("/sys/fs/cgroup/job/step/memory.max", "max\n");
  EXPECT_FALSE(cgroup_memory_bytes(root_));
  put("/sys/fs/cgroup/job/memory.max", "1073741824\n");
  EXPECT_EQ(cgroup_memory_bytes(root_), 1073741824u);
  put("/proc/self/cgroup", "5:memory:/job\n");
  put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(cgroup_memory_bytes(root_));
  put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(cgroup_memory_bytes(root_), 4096u);
}

TEST(Host, UsableProcessorsFollowTheAffinity) {
  EXPECT_GE(usable_processors(), 1u);
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int some = 0;
  while (!CPU_ISSET(some, &before)) ++some;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(some, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(), 1u);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Host, NamesOfHostProgramAndProcess) {
  EXPECT_FALSE(host_name().empty());
  EXPECT_EQ(program_name(), fs::read_symlink("/proc/self/exe").filename().string());
  EXPECT_EQ(process_id(), static_cast<std::uint64_t>(::getpid()));
}

TEST(Host, AHostsNameCannotLeadOutOfADirectory) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string name = "../../a\x1b b\xff";
    if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname(name.data(), name.size()) != 0) ::_exit(2);
    const bool harmless = host_name() == ".._.._a__b_";
    const bool named = ::sethostname("", 0) == 0 && host_name() == "localhost";
    ::_exit(harmless && named ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "only root may rename a host";
  EXPECT_EQ(status, 0);
}

TEST(Host, EnvironmentIsFilteredByPrefixAndSorted) {
  ::setenv("BELAYTEST_B", "2=two", 1);
  ::setenv("BELAYTEST_A", "1", 1);
  ::setenv("BELAYTES", "no", 1);
  using Variables = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(environment("BELAYTEST_"), (Variables{{"BELAYTEST_A", "1"}, {"BELAYTEST_B", "2=two"}}));
  EXPECT_TRUE(environment("BELAYTEST_NONE").empty());
}

}  // namespace
}  // namespace belay::os
