// SPDX-License-Identifier: Apache-2.0
#include "files/watched_files.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "os/clock.hpp"
#include "os/errno.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace belay::files {
namespace {

namespace fs = std::filesystem;

/// Of a regular file; unset: it is none, or has gone.
std::optional<FileStamp> stamp_without_opening(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const auto ns = [](const timespec& t) {
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  };
  return FileStamp{.bytes = static_cast<std::uint64_t>(status.st_size),
                   .mode = status.st_mode & 07777u,
                   .mtime_ns = ns(status.st_mtim),
                   .atime_ns = ns(status.st_atim),
                   .ctime_ns = ns(status.st_ctim),
                   .device = status.st_dev,
                   .inode = status.st_ino};
}

}  // namespace

Result<WatchedFiles> WatchedFiles::open(WatchPlace place) {
  std::error_code error;
  const fs::path real = fs::canonical(place.directory, error);
  if (error || !fs::is_directory(real))
    return fail(Code::not_found, "{} is not a directory that can be watched",
                in_quotes(place.directory));
  place.directory = real.string();
  place.leave_out = fs::weakly_canonical(place.leave_out, error).string();
  BELAY_ASSIGN(auto watch, DirectoryWatch::make());
  return WatchedFiles(std::move(place), std::move(watch));
}

void WatchedFiles::note(const fs::path& path, const std::string& name, bool closed) {
  if (place_.marker)
    if (const auto mark = place_.marker->match(name)) markers_.insert({mark->step, mark->rank});
  if (!place_.pattern.match(name)) return;
  const auto stamp = stamp_without_opening(path);
  if (!stamp) return;
  const std::uint64_t now = os::system_clock().now_ns();
  const auto [at, fresh] = seen_.try_emplace(name);
  Seen& seen = at->second;
  seen.here = true;
  if (!fresh && seen.stamp.same_content(*stamp)) {
    seen.closed = seen.closed || closed;
    return;
  }
  seen = {.stamp = *stamp, .changed_ns = now, .closed = closed, .released = false, .here = true};
  if (!first_) return;
  // Files that were here before us have been quiet for as long as their times tell.
  const std::int64_t age = os::system_clock().wall_ns() - stamp->mtime_ns;
  if (age > 0) seen.changed_ns = now - std::min(now, static_cast<std::uint64_t>(age));
}

Result<void> WatchedFiles::walk(const fs::path& directory, const std::string& below,
                                const std::set<std::string>& finished) {
  if (directory == place_.leave_out) return {};
  (void)watch_.add(directory.string(), below);  // else quiet alone must tell
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error && below.empty())
    return fail(Code::io, "{}: {}", in_quotes(directory.string()), error.message());
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string leaf = entries->path().filename().string();
    const std::string name = below.empty() ? leaf : below + "/" + leaf;
    std::error_code gone;
    const fs::file_status status = entries->symlink_status(gone);
    if (fs::is_directory(status) && place_.pattern.goes_below())
      BELAY_TRY(walk(entries->path(), name, finished));
    else if (fs::is_regular_file(status) && check_path(name))
      note(entries->path(), name, finished.contains(name));
  }
  return {};
}

/// Asked until the answer is yes: files that were packed long ago are left alone.
bool WatchedFiles::is_released(const std::string& name, Seen& seen) const {
  if (!seen.released)
    seen.released = !is_being_written(place_.directory + "/" + name).value_or(false);
  return seen.released;
}

bool WatchedFiles::is_finished(const std::string& name, const StepMatch& match, Seen& seen) const {
  switch (place_.finished) {
    case Finished::rename:
      return true;
    case Finished::marker:
      // A marker may be older than the files, where a restarted program writes these again.
      return (markers_.contains({match.step, match.rank}) || markers_.contains({match.step, {}})) &&
             is_released(name, seen);
    case Finished::close:
      break;
  }
  const bool quiet = os::system_clock().now_ns() - seen.changed_ns >= place_.settle_ns;
  return (seen.closed || quiet) && is_released(name, seen);
}

Result<Groups> WatchedFiles::look() {
  for (auto& [name, seen] : seen_) seen.here = false;
  markers_.clear();
  const std::set<std::string> finished = watch_.take_finished();
  BELAY_TRY(walk(place_.directory, "", finished));
  first_ = false;
  std::erase_if(seen_, [](const auto& entry) { return !entry.second.here; });
  Groups groups;
  const std::uint64_t now = os::system_clock().now_ns();
  for (auto& [name, seen] : seen_) {
    const auto match = place_.pattern.match(name);
    groups[match->step].files.push_back({.path = name,
                                         .alias = match->alias,
                                         .stamp = seen.stamp,
                                         .quiet_ns = now - seen.changed_ns,
                                         .finished = is_finished(name, *match, seen)});
  }
  for (auto& [step, group] : groups) group.marked = markers_.contains({step, {}});
  return groups;
}

void WatchedFiles::distrust(const Group& group) {
  for (const WatchedFile& file : group.files) {
    const auto found = seen_.find(file.path);
    if (found == seen_.end()) continue;
    found->second.changed_ns = os::system_clock().now_ns();
    found->second.closed = false;
    found->second.released = false;
  }
}

}  // namespace belay::files
