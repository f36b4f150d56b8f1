// SPDX-License-Identifier: Apache-2.0
// A store held still: the locks of all its nodes, for whoever removes files.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_view.hpp"
#include "os/files.hpp"

#include <memory>
#include <string>
#include <vector>

namespace belay::inspect {

/// A view that stays true for as long as this lives, as far as Belay's programs go.
struct LockedStore {
  std::vector<std::unique_ptr<os::Lock>> locks;  ///< by node
  StoreView view;
};

/// busy, with host and process, if a job or another tool holds a lock; nobody is waited for.
/// `purpose` goes into the lock files, for those who find them taken.
Result<LockedStore> lock_store(os::Files& files, const std::vector<std::string>& stores,
                               const std::string& purpose);

}  // namespace belay::inspect
