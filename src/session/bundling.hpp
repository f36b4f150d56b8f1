// SPDX-License-Identifier: Apache-2.0
// A version whose only files are bundles: each rank brings its unsafe blocks and its manifest, the
// aggregator of its set pulls them out of memory, and the bundle's name is the vote of all of them.
#pragma once

#include "aggregate/sets.hpp"
#include "session/drain.hpp"
#include "session/equipment.hpp"
#include "session/flight.hpp"
#include "session/voyage.hpp"

#include <memory>
#include <vector>

namespace belay::session {

class Bundling {
 public:
  /// `places.group` is the group of the voyage. `set` is what this rank aggregates; perhaps none.
  Bundling(Equipment& equipment, std::shared_ptr<Flight> flight, std::shared_ptr<Voyage> voyage,
           DrainPlaces places, aggregate::RankSet set);

  /// Collective. Never throws; what fails is the flight's outcome.
  void run();

 private:
  Result<OwnShare> make_share();
  DrainReport drain();
  /// All that this rank may write: how many it does shows when members say what they have.
  std::vector<vote::KeptBundle> possible_bundles() const;

  Equipment& equipment_;
  std::shared_ptr<Flight> flight_;
  std::shared_ptr<Voyage> voyage_;
  DrainPlaces places_;
  aggregate::RankSet set_;
};

}  // namespace belay::session
