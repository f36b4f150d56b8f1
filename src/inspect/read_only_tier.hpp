// SPDX-License-Identifier: Apache-2.0
// A tier for those who only look: nothing that goes through it changes a file, a name or a time.
#pragma once

#include "store/tier.hpp"

#include <memory>

namespace belay::inspect {

/// touch() answers with the size and leaves the time alone; sync_names() has nothing to do; what
/// would write is `unsupported`.
std::unique_ptr<store::Tier> make_read_only_tier(std::unique_ptr<store::Tier> tier);

}  // namespace belay::inspect
