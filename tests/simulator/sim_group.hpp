// SPDX-License-Identifier: Apache-2.0
// Groups of simulated ranks, with virtual deadlines. As with MPI there is no agreement about
// failures: when a rank gives up or dies in a collective, others may still complete it.
#pragma once

#include "comm/group.hpp"
#include "simulator/world.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace belay::simulator {

enum class Collective { reduce, gather, broadcast, duplicate, close };

/// What the groups of one run share.
class SimHub {
 public:
  /// `complain` is told of ranks that call different collectives: a bug of the caller.
  SimHub(World& world, Rank size, std::function<void(const std::string&)> complain);

 private:
  friend class SimGroup;
  struct Round {
    Collective collective = Collective::reduce;
    std::uint64_t detail = 0;  ///< what all ranks must agree on: length, reduction, root
    std::vector<std::vector<std::byte>> parts;
    std::vector<bool> arrived;
  };
  Round& round(std::size_t number);
  bool complete(const Round& round) const;
  /// The hub of the duplicates that collective `number` made.
  SimHub& duplicate(std::size_t number);

  World* world_;
  Rank size_;
  std::function<void(const std::string&)> complain_;
  std::deque<Round> rounds_;
  /// Under way, by sender and receiver.
  std::map<std::pair<Rank, Rank>, std::deque<std::vector<std::byte>>> messages_;
  std::map<std::size_t, std::unique_ptr<SimHub>> duplicates_;
};

/// The group of one process. `hub` outlives it. `one_thread`: it has no duplicates.
std::unique_ptr<ranks::Group> make_sim_group(SimHub& hub, Process& process,
                                             std::uint64_t timeout_ns, bool one_thread = false);

}  // namespace belay::simulator
