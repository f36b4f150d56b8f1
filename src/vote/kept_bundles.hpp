// SPDX-License-Identifier: Apache-2.0
// Bundles that this rank looks after, and which of them may go.
#pragma once

#include "base/nouns.hpp"
#include "store/retention.hpp"
#include "vote/needs.hpp"
#include "vote/survey.hpp"

#include <utility>
#include <vector>

namespace belay::vote {

/// One thread.
class KeptBundles {
 public:
  KeptBundles() = default;
  explicit KeptBundles(std::vector<KeptBundle> bundles) : bundles_(std::move(bundles)) {}

  void reserve(std::size_t more) { bundles_.reserve(bundles_.size() + more); }
  void add(KeptBundle bundle) { bundles_.push_back(std::move(bundle)); }
  const std::vector<KeptBundle>& all() const { return bundles_; }
  /// The newest one that cannot be read: nobody knows what the manifests in it count on.
  VersionKey unread() const;

  /// Those whose manifests do not count any more, since their version is none of `known`, and of
  /// whose blocks nobody needs any. Give back what stays after all before taking again.
  std::vector<SegmentId> take(const Needs& needs, const std::vector<store::KnownVersion>& known,
                              const store::RetentionRule& rule);
  /// Returns those of `stayed` that were not taken from here.
  std::vector<SegmentId> give_back(std::vector<SegmentId> stayed);

 private:
  std::vector<KeptBundle> bundles_;
  std::vector<KeptBundle> retiring_;  ///< taken, and not given back yet
};

}  // namespace belay::vote
