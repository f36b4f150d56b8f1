// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/rehearse/rehearsal_run.hpp"

#include "base/try.hpp"
#include "os/clock.hpp"
#include "tools/belay/table.hpp"

#include <algorithm>
#include <filesystem>

namespace belay::tool {
namespace {

namespace fs = std::filesystem;
using End = RehearsalRun::End;

constexpr std::uint64_t kShortestSleepNs = 1'000'000;
constexpr std::uint64_t kLongestSleepNs = 50'000'000;
constexpr std::uint64_t kStoreSearchNs = 100'000'000;
constexpr std::uint64_t kOtherStorePatienceNs = 1'000'000'000;

ProgramStart start_of(const RehearsalPlan& plan, const std::string& store, const std::string& log) {
  return {.command = plan.command,
          .environment = {{"BELAY_STORE", store},
                          {"BELAY_SEED", fmt::format("{:016x}", plan.seed)},
                          {"BELAY_KEEP", "1000000"},
                          {"BELAY_INTERVAL", fmt::format("{} calls", plan.every)},
                          {"BELAY_LATE", "wait"}},
          .output = log};
}

/// The directory of a store outside of `scratch` that one of the processes holds the lock of.
std::string store_elsewhere(const std::vector<pid_t>& processes, const std::string& scratch) {
  for (const pid_t pid : processes) {
    std::error_code gone;
    for (fs::directory_iterator entry(fmt::format("/proc/{}/fd", pid), gone), last; entry != last;
         entry.increment(gone)) {
      const fs::path target = fs::read_symlink(entry->path(), gone);
      const fs::path node = target.parent_path();
      if (target.filename() == "lock" && node.filename().string().starts_with("node-") &&
          !target.string().starts_with(scratch + "/"))
        return node.parent_path().string();
    }
  }
  return {};
}

/// Looks from time to time whether a program that leaves the scratch store alone has another one.
class StoreSearch {
 public:
  explicit StoreSearch(const std::string& scratch) : scratch_(scratch) {}

  void look(const Program& program, std::uint64_t now_ns) {
    if (now_ns < next_ns_) return;
    next_ns_ = now_ns + kStoreSearchNs;
    const std::string found = store_elsewhere(program.members(), scratch_);
    if (found.empty()) return;
    if (found_.empty()) since_ns_ = now_ns;
    found_ = found;
  }
  /// A program may have two stores, and open the other one first.
  bool sure(std::uint64_t now_ns) const {
    return !found_.empty() && now_ns - since_ns_ > kOtherStorePatienceNs;
  }
  const std::string& found() const { return found_; }

 private:
  const std::string& scratch_;
  std::string found_;
  std::uint64_t next_ns_ = 0;
  std::uint64_t since_ns_ = 0;
};

/// Watches until one of the ends comes.
Result<End> watch_program(const RehearsalPlan& plan, const RunOrder& order, VersionWatch& watch,
                          const Interrupts& interrupts, const Watcher& watcher, Program& program,
                          StoreSearch& search) {
  os::Clock& clock = os::system_clock();
  const std::uint64_t start = clock.now_ns();
  for (;;) {
    const std::uint64_t now = clock.now_ns();
    // Asked before the last look, so that nothing comes between the look and the end.
    const bool ended = program.ended().has_value();
    BELAY_TRY(watch.look());
    if (interrupts.pending()) return fail(Code::busy, "interrupted");
    if (order.enough()) return End::killed;
    if (watch.highest_run() == 0) search.look(program, now);
    if (watch.highest_run() == 0 && (ended ? !search.found().empty() : search.sure(now)))
      return End::other_store;
    if (ended) return End::ended;
    if (now - start > plan.timeout_ns) return End::timeout;
    watcher(fmt::format("{} run: {}, {} s", order.name,
                        count_text(watch.versions().size(), "version"),
                        (now - start) / 1'000'000'000));
    clock.sleep_ns(std::clamp(2 * (clock.now_ns() - now), kShortestSleepNs, kLongestSleepNs));
  }
}

}  // namespace

Result<RehearsalRun> run_program(const RehearsalPlan& plan, const RunOrder& order,
                                 VersionWatch& watch, const Interrupts& interrupts,
                                 const Watcher& watcher) {
  os::Clock& clock = os::system_clock();
  const std::uint64_t start = clock.now_ns();
  const std::size_t versions_before = watch.versions().size();
  RehearsalRun run;
  run.name = order.name;
  run.log = fmt::format("{}/{}.log", plan.scratch, order.name);
  BELAY_ASSIGN(Program program, Program::start(start_of(plan, watch.store(), run.log)));
  StoreSearch search(plan.scratch);
  BELAY_ASSIGN(run.end, watch_program(plan, order, watch, interrupts, watcher, program, search));
  BELAY_TRY(program.kill());
  BELAY_TRY(watch.look());
  run.status = program.ended().value_or(0);
  run.other_store = search.found();
  run.versions = watch.versions().size() - versions_before;
  run.seconds = static_cast<double>(clock.now_ns() - start) * 1e-9;
  return run;
}

}  // namespace belay::tool
