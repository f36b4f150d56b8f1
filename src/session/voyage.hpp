// SPDX-License-Identifier: Apache-2.0
// Everything that ranks do together for a version once each has captured its part: plan who stores
// what, complete the manifest, exchange copies. It knows no application: it runs inside
// checkpoint(), or later on the worker, from blocks that were held.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "comm/group.hpp"
#include "dedup/node_layout.hpp"
#include "session/copy_exchange.hpp"
#include "session/equipment.hpp"
#include "session/flight.hpp"
#include "session/version_plan.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace belay::session {

/// What capture hands on besides the manifest.
struct Cargo {
  std::vector<UnsafeBlock> unsafe;     ///< must be stored by somebody; in the manifest's order
  std::uint16_t own_segment = 0;       ///< of the manifest's segments, if anything is unsafe
  std::vector<SegmentRef> counted_on;  ///< by the version before: segments of other ranks
  capture::StagingBuffer* scratch = nullptr;  ///< for writing, if the blocks are held

  std::uint64_t bytes() const;
};

class Voyage {
 public:
  /// Where it goes: the ranks, the nodes that they are on, and the windows that stay open between
  /// versions. All must outlive the voyage.
  struct Course {
    ranks::Group& group;
    const dedup::NodeLayout& layout;
    ExchangeWindows& windows;
  };

  Voyage(Equipment& equipment, std::shared_ptr<Flight> flight, Cargo cargo, Course course);

  /// Collective. Who stores what, and for whom; completes manifest and byte counts of the ledger.
  /// All succeed, or all fail.
  Result<void> plan();
  /// Collective. Copies, parity and manifests go to their keepers, where `worker` writes them.
  Result<void> exchange(Worker& worker);
  /// Blocks that this rank stores, in the order of its segment. After plan().
  std::vector<UnsafeBlock> stored() const;

  std::uint64_t bytes() const { return cargo_.bytes(); }

  // Of blocks that are held. These never throw; what fails is the flight's outcome.
  /// Collective. Plans and exchanges.
  void share();
  /// After share(): writes what this rank stores, and votes.
  void finish();
  void run() {
    share();
    finish();
  }

 private:
  void place();
  Result<void> exchange_copies(Worker& worker);
  Result<void> exchange_shards(Worker& worker);
  std::uint64_t window_bytes() const;
  /// Blocks that are left to others get another holder, equal ones elsewhere in memory too.
  void relabel(std::uint8_t elsewhere);
  void keep_counting_on();

  Equipment& equipment_;
  std::shared_ptr<Flight> flight_;
  Manifest& manifest_;
  Cargo cargo_;
  Course course_;
  std::vector<dedup::Block> blocks_;
  std::vector<BroughtBlock> brought_;
  std::optional<VersionPlan> plan_;
};

}  // namespace belay::session
