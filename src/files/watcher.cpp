// SPDX-License-Identifier: Apache-2.0
#include "files/watcher.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/set_base.hpp"
#include "files/unpack.hpp"
#include "os/clock.hpp"
#include "os/errno.hpp"

#include <poll.h>

#include <algorithm>
#include <csignal>

namespace belay::files {
namespace {

constexpr std::size_t kMostVersionsRead = 64;
constexpr std::uint64_t kRetryNs = 10'000'000'000;
constexpr std::uint64_t kMillisecond = 1'000'000;

std::string name_of(const Step& step) {
  return step ? fmt::format("step {}", *step) : std::string("the files");
}

enum class Change { none, changed, gone };

/// What has become of files since they were found.
Change change_of(const std::string& directory, const Group& group) {
  Change change = Change::none;
  for (const WatchedFile& file : group.files) {
    const auto now = stamp_of(directory + "/" + file.path);
    if (!now && now.error().code() == Code::not_found) return Change::gone;
    if (!now || !now->same_content(file.stamp)) change = Change::changed;
  }
  return change;
}

}  // namespace

Result<Watcher> Watcher::make(WatchRequest request, WatchListener listener) {
  std::signal(SIGIO, SIG_IGN);  // who breaks a lease need not tell us
  BELAY_ASSIGN(auto files, WatchedFiles::open(request.place));
  Watcher watcher(std::move(request), std::move(listener), std::move(files));
  BELAY_TRY(watcher.learn());
  return watcher;
}

Result<void> Watcher::learn() {
  auto view = inspect::StoreView::open(*request_.pack.files, {request_.pack.set});
  if (!view && view.error().code() == Code::not_found) return {};
  if (!view) return Unexpected(view.error());
  std::vector<const inspect::VersionView*> versions;  // newest first
  for (const inspect::VersionView& version : view->versions())
    if (version.state == inspect::VersionState::whole && versions.size() < kMostVersionsRead)
      versions.push_back(&version);
  std::reverse(versions.begin(), versions.end());
  for (const inspect::VersionView* version : versions) {
    const auto contents = read_contents(*view, *version);
    if (contents)
      packed_.add(*contents);
    else if (contents.error().code() == Code::invalid_argument)
      return Unexpected(explain_failure(*request_.pack.files, request_.pack.set, contents.error()));
    else
      listener_.warning(contents.error().message());
  }
  return {};
}

Result<void> Watcher::start(const Step& step, const Group& group) {
  PackRequest request = request_.pack;
  request.step = step;
  Contents contents{.step = step, .files = {}};
  for (const WatchedFile& file : group.files) {
    request.sources.push_back(
        {request_.place.directory + "/" + file.path, file.path, file.alias, file.stamp});
    contents.files.push_back({.path = file.path,
                              .bytes = file.stamp.bytes,
                              .mode = 0,
                              .mtime_ns = file.stamp.mtime_ns,
                              .atime_ns = 0,
                              .format = {},
                              .digest = {},
                              .regions = {}});
  }
  const std::uint64_t now = os::system_clock().now_ns();
  BELAY_ASSIGN(auto job, PackJob::start(std::move(request)));
  underway_ =
      std::make_unique<Underway>(Underway{std::move(job), step, group, std::move(contents), now});
  return {};
}

void Watcher::give_up(const std::vector<Step>& steps) {
  for (const Step& step : steps)
    if (given_up_.insert(step).second)
      listener_.warning(fmt::format(
          "{} is left out: it has fewer files than it should, and newer steps are complete",
          name_of(step)));
}

Result<bool> Watcher::start_next() {
  BELAY_ASSIGN(const Groups groups, files_.look());
  const NextStep next = next_step(groups, packed_, request_.rules);
  give_up(next.given_up);
  waiting_ = false;
  if (next.pack) {
    BELAY_TRY(start(*next.pack, groups.at(*next.pack)));
    return true;
  }
  // Only quiet comes by itself; files and marks that are missing will not.
  for (const Step& step : next.waiting) {
    const Group& group = groups.at(step);
    const bool count_missing = request_.rules.files && group.files.size() < *request_.rules.files;
    waiting_ = waiting_ || (!request_.rules.by_marker && !count_missing);
  }
  return false;
}

Result<void> Watcher::fail_underway(const Error& error) {
  files_.distrust(underway_->group);
  const Change change = error.code() == Code::busy
                            ? change_of(request_.place.directory, underway_->group)
                            : Change::none;
  const std::string step = name_of(underway_->step);
  const std::string what = step + ": " + error.message();
  underway_.reset();
  if (change == Change::gone)
    listener_.warning(step + " is not packed whole: files of it went before they were packed");
  // A file that was not finished is looked at again when it has been quiet.
  if (change != Change::none) {
    next_try_ns_ = os::system_clock().now_ns() + request_.rules.settle_ns;
    return {};
  }
  if (request_.rules.once) return Unexpected(Error(error.code(), what));
  listener_.warning(what + "; it is tried again");
  next_try_ns_ = os::system_clock().now_ns() + kRetryNs;
  return {};
}

Result<void> Watcher::step_underway() {
  const auto report = underway_->job.step({.progress = {}, .warning = listener_.warning});
  if (!report) return fail_underway(report.error());
  if (!*report) return {};
  packed_.add(underway_->contents);
  listener_.packed(underway_->step, **report, os::system_clock().now_ns() - underway_->start_ns);
  underway_.reset();
  return {};
}

/// Events wake us up; but quiet is told by nobody, nor are writes of other hosts.
int Watcher::patience_ms() const {
  const std::uint64_t pause =
      std::clamp(request_.rules.settle_ns / 4, 20 * kMillisecond, 1000 * kMillisecond);
  return static_cast<int>(pause / kMillisecond);
}

Result<void> Watcher::run(int stop) {
  for (;;) {
    const bool pausing = os::system_clock().now_ns() < next_try_ns_;
    if (!underway_ && !pausing) {
      BELAY_ASSIGN(const bool started, start_next());
      if (!started && request_.rules.once && !waiting_) return {};
    }
    // While a version is under way, or after an error, events wait in the kernel's queue.
    const int events = pausing ? -1 : files_.descriptor();
    pollfd waits[] = {{stop, POLLIN, 0},
                      {underway_ ? underway_->job.descriptor() : events, POLLIN, 0}};
    const int ready = ::poll(waits, 2, underway_ ? -1 : patience_ms());
    if (ready < 0 && errno != EINTR) return Unexpected(os::error_of(errno, "wait for", "files"));
    if (ready <= 0) continue;
    if (waits[0].revents != 0) {
      while (underway_) BELAY_TRY(step_underway());
      return {};
    }
    if (underway_) BELAY_TRY(step_underway());
  }
}

}  // namespace belay::files
