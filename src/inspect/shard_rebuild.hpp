// SPDX-License-Identifier: Apache-2.0
// Missing and damaged shards made again, byte for byte, from their stripes.
#pragma once

#include <belay/result.hpp>

#include "inspect/node_homes.hpp"
#include "inspect/store_repair.hpp"
#include "inspect/store_view.hpp"

#include <set>
#include <string>
#include <utility>

namespace belay::inspect {

struct StripeView;

struct ShardRebuild {
  const StoreView& view;
  const NodeHomes& homes;
  /// Directories and names of files that are known to be damaged.
  const std::set<std::pair<std::string, std::string>>& damaged;
  /// The same of those that can only not be read here: they stay.
  const std::set<std::pair<std::string, std::string>>& unreadable;
  RepairReport& done;

  /// Of one stripe. What cannot be made again is told with the reason.
  Result<void> run(const StripeView& stripe);

 private:
  Result<std::string> home_of(const StripeView& stripe, std::uint32_t seat) const;
  Result<void> renew(const StripeView& stripe, std::uint32_t seat, std::uint32_t index);
};

}  // namespace belay::inspect
