// SPDX-License-Identifier: Apache-2.0
// Versions that are retired, until no rank has a manifest of them to hide. What they count on stays
// so long: whoever removes it may not be who hides them.
#pragma once

#include "base/nouns.hpp"
#include "vote/needs.hpp"
#include "vote/publish.hpp"

#include <optional>
#include <vector>

namespace belay::vote {

/// One thread.
class Retiring {
 public:
  /// `segments`: see RetiringVersion.
  void add(VersionKey key, std::optional<std::vector<SegmentId>> segments) {
    versions_.push_back({{key, true, std::move(segments)}, false});
  }
  /// All that was added by now is being hidden.
  void take();
  /// That is over, but for what is left. REQUIRES: a call for each one of take().
  void give_back(const Retired& left);

  void add_to(Needs& needs) const;
  /// `all`: what all ranks have said, after add_retiring().
  void forget_hidden(const Needs& all);

 private:
  struct Entry {
    RetiringVersion version;
    bool taken = false;
  };
  std::vector<Entry> versions_;
};

}  // namespace belay::vote
