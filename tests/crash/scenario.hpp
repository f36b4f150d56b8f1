// SPDX-License-Identifier: Apache-2.0
// A scripted run for crash tests: several versions with growth, carry, retention and incremental
// completion. What memory holds at a step is a function of step and rank, so that whatever comes
// back can be checked without a record of what was saved.
#pragma once

#include <belay/belay.hpp>

#include "comm/group.hpp"
#include "os/files.hpp"
#include "session/seams.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace belay::crash {

inline constexpr std::uint64_t kLastStep = 7;

/// Everything that a rank of the scenario protects.
struct State {
  std::uint64_t step = 0;
  std::vector<double> field;              ///< grows
  std::vector<std::uint32_t> table;       ///< shrinks and grows; much of it is equal blocks
  std::map<std::string, int> dictionary;  ///< through a serializer

  bool operator==(const State&) const = default;
};

State state_at(std::uint64_t step, Rank rank);

/// Protects the members of `state` by name.
Result<void> protect(Session& session, State& state);

/// Opens a session of one rank of a group over `files`.
Result<Session> open_rank(os::Files& files, std::unique_ptr<ranks::Group> group, Options options);

/// Small blocks and few segments, so that every version carries.
Options small_options(const std::string& store);

/// How a rank's steps go on; any member may be empty.
struct Hooks {
  /// wait() has returned this step's version.
  std::function<void(std::uint64_t step)> exists = {};
  /// A call has failed.
  std::function<void(const Error& error)> failed = {};
};

/// Restores if there is anything, checks it, and goes on to kLastStep with a version each step.
/// Returns the step that it started from, or what was wrong with what was restored.
Result<std::uint64_t> run_rank(Session& session, Rank rank, State& state, const Hooks& hooks);

}  // namespace belay::crash
