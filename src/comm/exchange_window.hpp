// SPDX-License-Identifier: Apache-2.0
// A window made of gather() and exchange(): for groups whose ranks cannot write into each other's
// memory, or must not, since they are only played.
#pragma once

#include <belay/result.hpp>

#include "comm/group.hpp"

#include <cstdint>
#include <memory>

namespace belay::ranks {

/// Collective: Group::open_window() for `group`. Landings that disagree with puts are noticed:
/// invalid_argument on all ranks, and nothing is put.
Result<std::unique_ptr<Window>> open_exchange_window(Group& group, std::uint64_t bytes);

}  // namespace belay::ranks
