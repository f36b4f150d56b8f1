// SPDX-License-Identifier: Apache-2.0
// Everything that a session takes from outside, so that tests can put their own in its place.
#pragma once

#include <belay/belay.hpp>

#include "capture/tracker.hpp"
#include "comm/group.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "session/worker.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace belay::session {

struct Seams {
  os::Files* files = nullptr;  ///< not owned, as clock and random
  os::Clock* clock = nullptr;
  os::Random* random = nullptr;
  std::function<std::unique_ptr<Worker>()> make_worker;             ///< empty: as `background` says
  std::function<std::unique_ptr<capture::Tracker>()> make_tracker;  ///< empty: as `track` says
  unsigned hash_threads = 0;                                        ///< 0: one per free processor
  unsigned read_threads = 24;  ///< requests that a restore has under way; they wait, not compute
  std::optional<std::uint64_t> drain_bytes;  ///< memory of an aggregator; unset: as `staging` says
  std::string host;
  std::string program;
  std::uint64_t pid = 0;
  std::vector<std::pair<std::string, std::string>> environment;  ///< BELAY_* variables
};

/// The real ones.
Seams system_seams();

/// Makes the group once the settings are known (its deadline is one of them).
using MakeGroup = std::function<Result<std::unique_ptr<ranks::Group>>(std::uint64_t timeout_ns,
                                                                      os::Clock& clock)>;

/// Collective over the group that `make_group` gives.
Result<Session> open_session(const Seams& seams, const MakeGroup& make_group, Options options);

}  // namespace belay::session
