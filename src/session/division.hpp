// SPDX-License-Identifier: Apache-2.0
// The processes of a job divided into those that compute and heads, with lines between them.
#pragma once

#include <belay/result.hpp>

#include "base/settings.hpp"
#include "comm/group.hpp"
#include "os/clock.hpp"
#include "os/line.hpp"
#include "session/head_line.hpp"
#include "session/roles.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace belay::session {

struct Division {
  std::unique_ptr<ranks::Group> group;  ///< of those that are alike: the application, or the heads
  Roles roles;
  bool is_head = false;
  std::unique_ptr<HeadLine> head;             ///< of a rank
  std::unique_ptr<DrainLine> drains;          ///< of a rank, with a global tier
  std::map<Rank, os::Line> lines;             ///< of a head, by rank
  std::vector<os::Line> drain_lines;          ///< of a head, with a global tier
  std::map<Rank, os::Line::Received> joined;  ///< what the rank brought
};

/// Collective over `whole`, all processes of the job. `node` is where this one is. All get their
/// division, or the same error.
Result<Division> divide(ranks::Group& whole, const Settings& settings, const std::string& node,
                        os::Random& random);

}  // namespace belay::session
