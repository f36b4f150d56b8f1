// SPDX-License-Identifier: Apache-2.0
// The files of a watched directory, looked at again and again.
#pragma once

#include <belay/result.hpp>

#include "files/directory_watch.hpp"
#include "files/step_groups.hpp"
#include "files/step_pattern.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace belay::files {

/// When a file is finished.
enum class Finished {
  close,   ///< nobody has it open for writing, and it was closed or has been quiet
  rename,  ///< as soon as it has its name
  marker,  ///< when its marker is there, and nobody has it open for writing
};

struct WatchPlace {
  std::string directory;
  std::string leave_out;  ///< a set may lie in the directory that it is made of
  StepPattern pattern;
  std::optional<StepPattern> marker;
  Finished finished = Finished::close;
  std::uint64_t settle_ns = 0;
};

/// One thread.
class WatchedFiles {
 public:
  static Result<WatchedFiles> open(WatchPlace place);

  int descriptor() const { return watch_.descriptor(); }  ///< for poll(): something has happened
  /// Looks at all files. io if the directory cannot be read; what vanishes meanwhile is no error.
  Result<Groups> look();
  /// These have proved to be unfinished after all.
  void distrust(const Group& group);

 private:
  struct Seen {
    FileStamp stamp;
    std::uint64_t changed_ns = 0;  ///< monotonic
    bool closed = false;           ///< by its writer, since it changed
    bool released = false;         ///< nobody had it open for writing, since it changed
    bool here = true;
  };
  using MarkerKey = std::pair<Step, std::optional<std::uint64_t>>;  ///< step and rank

  WatchedFiles(WatchPlace place, DirectoryWatch watch)
      : place_(std::move(place)), watch_(std::move(watch)) {}
  Result<void> walk(const std::filesystem::path& directory, const std::string& below,
                    const std::set<std::string>& finished);
  void note(const std::filesystem::path& path, const std::string& name, bool closed);
  bool is_finished(const std::string& name, const StepMatch& match, Seen& seen) const;
  bool is_released(const std::string& name, Seen& seen) const;

  WatchPlace place_;
  DirectoryWatch watch_;
  std::map<std::string, Seen> seen_;  ///< by path below the directory
  std::set<MarkerKey> markers_;
  bool first_ = true;
};

}  // namespace belay::files
