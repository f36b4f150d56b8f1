// SPDX-License-Identifier: Apache-2.0
#include "files/step_groups.hpp"

#include <algorithm>
#include <iterator>

namespace belay::files {
namespace {

// A last step has no newer one that would show it to be complete; after so many times the usual
// quiet it is. What comes later still makes one more version of it.
constexpr std::uint64_t kLastStepFactor = 5;

std::optional<std::size_t> expected(const PackedSteps& packed, const GroupRules& rules) {
  return rules.files ? rules.files : packed.last_count();
}

bool is_complete(const Group& group, bool newer_begun, const PackedSteps& packed,
                 const GroupRules& rules) {
  if (rules.by_marker) return group.marked && group.finished();
  if (!group.finished()) return false;
  const auto count = expected(packed, rules);
  if (count && group.files.size() >= *count) return true;
  if (rules.files) return false;
  const std::uint64_t quiet = group.quiet_ns();
  if (newer_begun || rules.once) return quiet >= rules.settle_ns;
  return quiet >= kLastStepFactor * rules.settle_ns;
}

/// Without a step there is no order, and no count that could tell: only quiet does.
bool is_settled(const Group& group, const GroupRules& rules) {
  if (rules.by_marker) return group.marked && group.finished();
  if (!group.finished()) return false;
  if (rules.files && group.files.size() < *rules.files) return false;
  return group.quiet_ns() >= rules.settle_ns;
}

}  // namespace

std::int64_t Group::newest_ns() const {
  std::int64_t newest = 0;
  for (const WatchedFile& file : files) newest = std::max(newest, file.stamp.mtime_ns);
  return newest;
}

std::uint64_t Group::quiet_ns() const {
  std::uint64_t least = ~std::uint64_t{0};
  for (const WatchedFile& file : files) least = std::min(least, file.quiet_ns);
  return least;
}

bool Group::finished() const {
  return !files.empty() && std::all_of(files.begin(), files.end(),
                                       [](const WatchedFile& file) { return file.finished; });
}

void PackedSteps::add(const Contents& contents) {
  Version version{.step = contents.step, .files = {}};
  for (const PackedFile& file : contents.files) {
    version.files[file.path] = {file.bytes, file.mtime_ns};
    newest_ns_ = std::max(newest_ns_, file.mtime_ns);
  }
  last_count_ = contents.files.size();
  highest_ = std::max(highest_, version.step);
  versions_.push_back(std::move(version));
}

bool PackedSteps::is_new(const Step& step, const Group& group) const {
  const auto has_all = [&](const Version& version) {
    return version.step == step &&
           std::all_of(group.files.begin(), group.files.end(), [&](const WatchedFile& file) {
             const auto found = version.files.find(file.path);
             return found != version.files.end() &&
                    found->second == std::pair(file.stamp.bytes, file.stamp.mtime_ns);
           });
  };
  if (std::any_of(versions_.begin(), versions_.end(), has_all)) return false;
  if (versions_.empty() || step >= highest_) return true;
  // An older step, whose version is retired; unless a restarted application wrote it again.
  return group.newest_ns() > newest_ns_;
}

NextStep next_step(const Groups& groups, const PackedSteps& packed, const GroupRules& rules) {
  NextStep next;
  for (auto at = groups.begin(); at != groups.end(); ++at) {
    const auto& [step, group] = *at;
    if (group.files.empty() || !packed.is_new(step, group)) continue;
    const auto newer = std::next(at);
    const bool complete =
        step ? is_complete(group, newer != groups.end(), packed, rules) : is_settled(group, rules);
    if (complete) {
      next.pack.emplace(step);
      return next;
    }
    const bool overtaken = std::any_of(newer, groups.end(), [&](const auto& later) {
      return is_complete(later.second, false, packed, rules);
    });
    if (overtaken && group.quiet_ns() >= rules.settle_ns) {
      next.given_up.push_back(step);
      continue;
    }
    next.waiting.push_back(step);
    return next;  // steps are packed in their order
  }
  return next;
}

}  // namespace belay::files
