// SPDX-License-Identifier: Apache-2.0
// What must hold in the arguments of Group::exchange() and Window::put(), for all groups alike.
#pragma once

#include <belay/result.hpp>

#include "comm/group.hpp"

#include <cstdint>
#include <span>

namespace belay::ranks {

/// What is wrong with the arguments of `rank`'s exchange in a group of `size`: invalid_argument.
Result<void> check_exchange(Rank rank, Rank size, std::span<const Message> out,
                            std::span<const Rank> from);

/// What is wrong with the arguments of `rank`'s put: invalid_argument. `windows` has the size in
/// bytes of every rank's window.
Result<void> check_round(Rank rank, std::span<const Put> puts, std::span<const Landing> landings,
                         std::span<const std::uint64_t> windows);

/// The bytes of all its pieces.
std::uint64_t bytes_of(const Put& put);

}  // namespace belay::ranks
