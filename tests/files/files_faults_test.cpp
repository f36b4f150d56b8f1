// SPDX-License-Identifier: Apache-2.0
// pack and watch, whose n-th operation on files of the set fails or is the last of the process, for
// every n: versions that were there must stay as they were, nothing half-made may be seen, the same
// call again must succeed, and then nothing is left over.
#include "base/try.hpp"
#include "crash/temporary_directory.hpp"
#include "files/unpack.hpp"
#include "files/watcher.hpp"
#include "os/faulty_files.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <new>

namespace belay::files {
namespace {

namespace fs = std::filesystem;

using Tree = std::map<std::string, std::string>;  ///< content by path

constexpr std::uint64_t kKeep = 2;  ///< of watch

enum class Fault { kill, once, until_the_end };

struct Mode {
  const char* name;
  Fault fault;
  int error = 0;
};

/// Shared with processes that a fork makes.
struct Counter {
  std::atomic<std::uint64_t> operations{0};
};

std::string noise(std::uint64_t seed, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>(seed >> 56);
  }
  return text;
}

/// Three files; from step to step one changes, one does in part, one does not.
Tree step_files(std::uint64_t step) {
  const std::string end = "." + std::to_string(step);
  return {{"changed" + end, noise(step, 40'000)},
          {"partly" + end, noise(99, 60'000) + noise(step, 5'000)},
          {"same" + end, noise(98, 20'000)}};
}

void write_tree(const std::string& directory, const Tree& tree) {
  fs::create_directories(directory);
  for (const auto& [path, content] : tree)
    std::ofstream(directory + "/" + path, std::ios::binary) << content;
}

Tree read_tree(const std::string& directory) {
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    tree[fs::relative(entry.path(), directory).string()] =
        std::string(std::istreambuf_iterator<char>(file), {});
  }
  return tree;
}

/// With the times of files, which tell a watcher what is new.
void copy_all(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(from))
    if (entry.is_regular_file())
      fs::last_write_time(to / fs::relative(entry.path(), from), entry.last_write_time());
}

class FilesFaults : public testing::TestWithParam<Mode> {
 protected:
  /// One call of pack or watch.
  using Call = std::function<Result<void>(os::Files&)>;
  using Contents = std::vector<Tree>;  ///< of whole versions, newest first

  FilesFaults() {
    void* shared =
        ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    counter_ = new (shared) Counter;
    ::setenv("BELAY_STAGING", "1MiB", 1);  // most of the time would go into memory of no use
  }
  ~FilesFaults() override { ::munmap(counter_, sizeof(Counter)); }

  std::string at(const std::string& name) const { return directory_.path() + "/" + name; }

  Result<void> pack_step(os::Files& files, std::uint64_t step, const std::string& set,
                         const std::string& base = {}) const {
    PackRequest request;
    request.set = at(set);
    request.base = base.empty() ? base : at(base);
    request.files = &files;
    const std::string from = at("step" + std::to_string(step));
    BELAY_ASSIGN(auto found, find_sources({from}, "", ""));
    request.sources = std::move(found.sources);
    BELAY_TRY(pack(request, {.progress = {}, .warning = [](const std::string&) {}}));
    return {};
  }

  Result<void> watch_all(os::Files& files) const {
    WatchRequest request;
    request.place.directory = at("run");
    request.place.finished = Finished::rename;
    BELAY_ASSIGN(request.place.pattern, StepPattern::parse("*.{step}"));
    request.rules = {.files = 3, .by_marker = false, .settle_ns = 0, .once = true};
    request.pack.set = at("set");
    request.pack.keep = kKeep;
    request.pack.files = &files;
    BELAY_ASSIGN(auto watcher,
                 Watcher::make(std::move(request), {.packed = [](const auto&, const auto&, auto) {},
                                                    .warning = [](const std::string&) {}}));
    int stop[2];
    if (::pipe(stop) != 0) return fail(Code::io, "no pipe");
    auto done = watcher.run(stop[0]);
    ::close(stop[0]);
    ::close(stop[1]);
    return done;
  }

  os::Action decide(std::uint64_t fail_at) const {
    const std::uint64_t number = ++counter_->operations;
    const bool hit =
        GetParam().fault == Fault::until_the_end ? number >= fail_at : number == fail_at;
    if (!hit) return {};
    if (GetParam().fault == Fault::kill) ::kill(0, SIGKILL);
    return {.error = GetParam().error, .torn = true};
  }

  /// The call with the fault. Has it come to its operation at all?
  bool disturb(const Call& call, std::uint64_t n) {
    new (counter_) Counter;
    os::FaultyFiles files(os::posix_files(), [&](const os::Operation&) { return decide(n); });
    if (GetParam().fault == Fault::kill) {
      run_killed(call, files);
    } else if (const auto done = call(files); !done) {
      ++errors_;
      EXPECT_GT(done.error().message().size(), 20u) << done.error().message();
    }
    return counter_->operations >= n;
  }

  /// In processes of their own, all of which have ended when it returns.
  void run_killed(const Call& call, os::Files& files) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      ::_exit(call(files) ? 0 : 1);
    }
    ::close(ends[1]);
    char nothing = 0;
    while (::read(ends[0], &nothing, 1) > 0) continue;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
  }

  /// What the whole versions of a set hold. Fails if one is damaged or does not unpack.
  Contents contents_of(const std::string& set) {
    Contents contents;
    const auto view = inspect::StoreView::open(os::posix_files(), {at(set)});
    if (!view) {
      EXPECT_EQ(view.error().code(), Code::not_found) << view.error().message();
      return contents;
    }
    // The mark that versions exist comes after the first version, and with the next one at last.
    for (const inspect::Flaw& flaw : view->flaws())
      EXPECT_TRUE(disturbed_ && flaw.file == "settled") << flaw.file << " " << flaw.reason;
    for (const inspect::VersionView& version : view->versions()) {
      EXPECT_TRUE(version.flaws.empty()) << version.flaws.front().reason;
      if (version.state != inspect::VersionState::whole) continue;
      fs::remove_all(at("out"));
      const auto report = unpack(*view, version, {at("out"), false}, {});
      EXPECT_TRUE(report && report->failures.empty()) << "version " << version.key.version;
      contents.push_back(read_tree(at("out")));
    }
    fs::remove_all(at("out"));
    return contents;
  }

  /// Temporaries, segments that nobody needs, and parts of versions.
  std::vector<std::string> leftovers_of(const std::string& set) const {
    const auto view = inspect::StoreView::open(os::posix_files(), {at(set)});
    if (!view) return {view.error().message()};
    std::vector<std::string> names;
    const inspect::SegmentUses uses(*view);
    for (const inspect::NodeView& node : view->nodes())
      for (const inspect::FoundFile& file : node.files) {
        const bool unneeded =
            file.parsed && file.parsed->kind == format::NameKind::segment &&
            uses.of({file.parsed->key, file.parsed->rank}) != inspect::SegmentUse::needed;
        if (unneeded || file.name.ends_with(".tmp")) names.push_back(file.name);
      }
    for (const inspect::VersionView& version : view->versions())
      if (version.state != inspect::VersionState::whole)
        names.push_back("version " + std::to_string(version.key.version));
    return names;
  }

  /// A run that is cut short leaves files behind; the next version at the latest takes them away.
  void expect_nothing_left(const std::string& set, const std::set<std::string>& beside,
                           const std::function<Result<void>()>& next_version) {
    if (!leftovers_of(set).empty()) {
      ASSERT_TRUE(next_version());
    }
    EXPECT_EQ(leftovers_of(set), std::vector<std::string>());
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(directory_.path()))
      found.insert(entry.path().filename().string());
    EXPECT_EQ(found, beside);
  }

  /// For every n: `prepared` is put in place, the n-th operation of `call` fails, `check` looks at
  /// what is left, `call` must succeed, and `check_again` looks once more.
  void at_every_operation(const Call& call, const std::function<void()>& check,
                          const std::function<void()>& check_again) {
    copy_all(directory_.path(), prepared_.path());
    std::uint64_t n = 1;
    for (;; ++n) {
      SCOPED_TRACE("operation " + std::to_string(n));
      directory_.clear();
      copy_all(prepared_.path(), directory_.path());
      if (!disturb(call, n)) break;
      disturbed_ = true;
      check();
      const auto done = call(os::posix_files());
      disturbed_ = false;
      ASSERT_TRUE(done) << done.error().message();
      check_again();
      if (HasFailure()) return;
    }
    EXPECT_GT(n, 40u);
    if (GetParam().fault != Fault::kill) {
      EXPECT_GT(errors_, 20u);
    }
    RecordProperty("operations", static_cast<int>(n));
  }

  crash::TemporaryDirectory directory_;
  crash::TemporaryDirectory prepared_;
  Counter* counter_;
  std::uint64_t errors_ = 0;
  bool disturbed_ = false;  ///< and nothing has been done since
};

TEST_P(FilesFaults, CostAFirstPackNothingButItself) {
  write_tree(at("step1"), step_files(1));
  const Contents all{step_files(1)};
  at_every_operation([&](os::Files& files) { return pack_step(files, 1, "set"); },
                     [&] {
                       const Contents found = contents_of("set");
                       EXPECT_TRUE(found.empty() || found == all);
                     },
                     [&] {
                       const Contents found = contents_of("set");
                       ASSERT_FALSE(found.empty());
                       EXPECT_EQ(found.front(), all.front());
                       expect_nothing_left("set", {"step1", "set"},
                                           [&] { return pack_step(os::posix_files(), 1, "set"); });
                     });
}

TEST_P(FilesFaults, CostALaterPackNoEarlierVersion) {
  for (std::uint64_t step = 1; step <= 3; ++step) {
    write_tree(at("step" + std::to_string(step)), step_files(step));
    if (step < 3) {
      ASSERT_TRUE(pack_step(os::posix_files(), step, "set"));
    }
  }
  const Contents former{step_files(2), step_files(1)};
  const Contents all{step_files(3), step_files(2), step_files(1)};
  at_every_operation([&](os::Files& files) { return pack_step(files, 3, "set"); },
                     [&] {
                       const Contents found = contents_of("set");
                       EXPECT_TRUE(found == former || found == all);
                     },
                     [&] {
                       Contents found = contents_of("set");
                       // If the disturbed call got so far, this is its version once more.
                       if (found.size() > 3) found.erase(found.begin());
                       EXPECT_EQ(found, all);
                       expect_nothing_left("set", {"step1", "step2", "step3", "set"},
                                           [&] { return pack_step(os::posix_files(), 3, "set"); });
                     });
}

TEST_P(FilesFaults, CostASetFromABaseNothingButItself) {
  write_tree(at("step1"), step_files(1));
  write_tree(at("step2"), step_files(2));
  ASSERT_TRUE(pack_step(os::posix_files(), 1, "base"));
  const Contents former{step_files(1)};
  const Contents all{step_files(2), step_files(1)};
  at_every_operation([&](os::Files& files) { return pack_step(files, 2, "set", "base"); },
                     [&] {
                       const Contents found = contents_of("set");
                       EXPECT_TRUE(found.empty() || found == all);
                       EXPECT_EQ(contents_of("base"), former);
                     },
                     [&] {
                       Contents found = contents_of("set");
                       if (found.size() > 2) found.erase(found.begin());
                       EXPECT_EQ(found, all);
                       EXPECT_EQ(contents_of("base"), former);
                       expect_nothing_left("set", {"step1", "step2", "base", "set"},
                                           [&] { return pack_step(os::posix_files(), 2, "set"); });
                     });
}

TEST_P(FilesFaults, CostAWatcherNoStepThatWasPacked) {
  std::map<Tree, std::uint64_t> steps;
  for (std::uint64_t step = 1; step <= 4; ++step) {
    steps[step_files(step)] = step;
    write_tree(at("run"), step_files(step));
    if (step == 3) {
      ASSERT_TRUE(watch_all(os::posix_files()));
    }
  }
  const auto check = [&](std::uint64_t least_newest) {
    const Contents found = contents_of("set");
    ASSERT_GE(found.size(), kKeep);
    std::uint64_t newest = 0;
    for (const Tree& tree : found) {
      ASSERT_TRUE(steps.contains(tree)) << "a version that is no step";
      const std::uint64_t step = steps[tree];
      EXPECT_TRUE(newest == 0 || step + 1 == newest) << step << " after " << newest;
      if (newest == 0) {
        EXPECT_GE(step, least_newest);
      }
      newest = step;
    }
  };
  at_every_operation([&](os::Files& files) { return watch_all(files); }, [&] { check(3); },
                     [&] {
                       check(4);
                       expect_nothing_left("set", {"run", "set"}, [&] {
                         write_tree(at("run"), step_files(5));
                         return watch_all(os::posix_files());
                       });
                     });
}

INSTANTIATE_TEST_SUITE_P(All, FilesFaults,
                         testing::Values(Mode{"kill", Fault::kill}, Mode{"eio", Fault::once, EIO},
                                         Mode{"full", Fault::until_the_end, ENOSPC}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace belay::files
