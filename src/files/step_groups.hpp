// SPDX-License-Identifier: Apache-2.0
// Which files make up the next version: groups of files of one step, in rising order, once they are
// complete.
#pragma once

#include "files/contents.hpp"
#include "files/file_bytes.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace belay::files {

using Step = std::optional<std::uint64_t>;  ///< unset: names of files have none

/// A file as the last look has found it.
struct WatchedFile {
  std::string path;
  std::string alias;
  FileStamp stamp;
  std::uint64_t quiet_ns = 0;  ///< since it was last seen to change
  bool finished = false;       ///< its writer is done with it
};

struct Group {
  std::vector<WatchedFile> files;  ///< sorted by path
  bool marked = false;             ///< the application says that the step is complete

  std::int64_t newest_ns() const;  ///< the latest time of a file
  std::uint64_t quiet_ns() const;  ///< since any of them changed
  bool finished() const;           ///< all of them
};
using Groups = std::map<Step, Group>;

struct GroupRules {
  std::optional<std::size_t> files = {};  ///< so many make a step
  bool by_marker = false;                 ///< only a mark completes a step
  std::uint64_t settle_ns = 5'000'000'000;
  bool once = false;  ///< nobody will write any more
};

/// What the set has already.
class PackedSteps {
 public:
  void add(const Contents& contents);
  /// Files that differ from what was packed of this step, or of a step that is newer than all.
  bool is_new(const Step& step, const Group& group) const;
  /// Of the version that was added last.
  std::optional<std::size_t> last_count() const { return last_count_; }

 private:
  struct Version {
    Step step;
    std::map<std::string, std::pair<std::uint64_t, std::int64_t>> files;  ///< size and time
  };
  std::vector<Version> versions_;
  Step highest_;
  std::int64_t newest_ns_ = 0;
  std::optional<std::size_t> last_count_;
};

/// What to do with the groups that are there.
struct NextStep {
  std::optional<Step> pack;    ///< this group is complete
  std::vector<Step> given_up;  ///< these never will be: newer steps are, and nothing moves here
  std::vector<Step> waiting;   ///< these are not complete yet
};
NextStep next_step(const Groups& groups, const PackedSteps& packed, const GroupRules& rules);

}  // namespace belay::files
