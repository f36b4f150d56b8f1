// SPDX-License-Identifier: Apache-2.0
// Making a damaged store one that opens cleanly, with the versions that are still whole.
//
// What copies elsewhere have is made again by store_rebuild. Without them no damaged byte comes
// back, so nothing that is damaged is destroyed:
// what belongs to damaged versions goes to `quarantine/` in its node's directory, where no job
// looks. Only what no version ever needs again is removed. What a whole or incomplete version needs
// stays, as do files that could merely not be read or understood. A store without any whole version
// is left as it is.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_check.hpp"
#include "inspect/store_view.hpp"

#include <string>
#include <vector>

namespace belay::inspect {

struct RepairStep {
  std::string action;  ///< "moved to quarantine", "removed", "made again", "left as a trace"
  std::string directory;
  std::string file;
  std::string reason;
};

struct RepairReport {
  std::vector<RepairStep> steps;     ///< done, in this order
  std::vector<std::string> refused;  ///< what was not tried, and why
};

/// `report` is of `view`. Order: the marks that prove that versions have existed, then manifests,
/// durably, then segments, then leftovers. The highest number in use keeps a trace.
/// REQUIRES: the locks are held since before both were made.
Result<RepairReport> repair_store(const StoreView& view, const CheckReport& report);

}  // namespace belay::inspect
