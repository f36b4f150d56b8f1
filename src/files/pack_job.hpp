// SPDX-License-Identifier: Apache-2.0
// Packing in a child process: a file that is cut short meanwhile costs the version, not the caller.
#pragma once

#include <belay/result.hpp>

#include "files/child.hpp"
#include "files/pack.hpp"

#include <optional>

namespace belay::files {

class PackJob {
 public:
  /// REQUIRES: this process has one thread.
  static Result<PackJob> start(PackRequest request);

  int descriptor() const { return child_.descriptor(); }  ///< for poll(): step() will not wait
  /// Takes one message, which the listener hears of. Set: it was the last, and this is what came of
  /// the version. Errors as those of pack().
  Result<std::optional<PackReport>> step(const PackListener& listener);

 private:
  PackJob(PackRequest request, Child child)
      : request_(std::move(request)), child_(std::move(child)) {}
  Error death();

  PackRequest request_;
  Child child_;
};

/// Waits for it.
Result<PackReport> pack_in_child(const PackRequest& request, const PackListener& listener);

}  // namespace belay::files
