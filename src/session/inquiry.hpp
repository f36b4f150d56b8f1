// SPDX-License-Identifier: Apache-2.0
// Ranks that ask each other, and answer.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "comm/group.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace belay::session {

/// One for each rank that is written to, or has written.
using Letters = std::map<Rank, std::vector<std::byte>>;

/// Collective. Asks those that `questions` are for, and answers whoever asks this rank; the answers
/// by rank. Empty: no rank is `busy`, and nobody was asked. REQUIRES: who asks is busy.
Result<std::optional<Letters>> inquire(
    ranks::Group& group, const Letters& questions, bool busy,
    const std::function<std::vector<std::byte>(std::span<const std::byte>)>& answer);

}  // namespace belay::session
