// SPDX-License-Identifier: Apache-2.0
// Watching a directory: each step that an application writes there becomes a version of a set. All
// that must be remembered is in the set, so that a watcher may be killed and started again.
#pragma once

#include <belay/result.hpp>

#include "files/pack_job.hpp"
#include "files/watched_files.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace belay::files {

struct WatchRequest {
  WatchPlace place;
  GroupRules rules;
  PackRequest pack;  ///< but for its sources and step
};

struct WatchListener {
  std::function<void(const Step&, const PackReport&, std::uint64_t time_ns)> packed;
  std::function<void(const std::string&)> warning;
};

/// One thread, and the process must have no other. Ignores SIGIO, which leases would send.
class Watcher {
 public:
  /// Learns from the set what is packed already.
  static Result<Watcher> make(WatchRequest request, WatchListener listener);

  /// Until `stop`, a descriptor, is readable, or with `once` until all that is complete has been
  /// packed. A version under way is finished first. Errors of single versions are told and tried
  /// again later; with `once` the first is returned.
  Result<void> run(int stop);

 private:
  struct Underway {
    PackJob job;
    Step step;
    Group group;
    Contents contents;  ///< as far as PackedSteps wants to know
    std::uint64_t start_ns = 0;
  };

  Watcher(WatchRequest request, WatchListener listener, WatchedFiles files)
      : request_(std::move(request)), listener_(std::move(listener)), files_(std::move(files)) {}
  Result<void> learn();
  /// False: there is nothing to do now.
  Result<bool> start_next();
  Result<void> start(const Step& step, const Group& group);
  Result<void> step_underway();
  Result<void> fail_underway(const Error& error);
  void give_up(const std::vector<Step>& steps);
  int patience_ms() const;

  WatchRequest request_;
  WatchListener listener_;
  WatchedFiles files_;
  PackedSteps packed_;
  std::unique_ptr<Underway> underway_;
  std::uint64_t next_try_ns_ = 0;  ///< after an error
  bool waiting_ = false;           ///< for files that will be complete by themselves
  std::set<Step> given_up_;        ///< and told
};

}  // namespace belay::files
