// SPDX-License-Identifier: Apache-2.0
// The one place where ranks tell each other about failures.
#pragma once

#include <belay/result.hpp>

#include "comm/group.hpp"

#include <span>
#include <string>
#include <vector>

namespace belay::vote {

/// Collective. Success if every rank has success; else the error of the lowest failing rank, the
/// same on all ranks ("rank 2: ..."). peer_lost if the ranks could not be asked.
Result<void> agree(ranks::Group& group, const Result<void>& mine);

/// The same for a result with a value, which is kept.
template <class T>
Result<T> agree_on(ranks::Group& group, Result<T> mine) {
  const auto status = mine ? Result<void>{} : Result<void>(Unexpected(mine.error()));
  if (auto all = agree(group, status); !all) return Unexpected(std::move(all).error());
  return mine;
}

/// Collective. Every rank's text, by rank.
Result<std::vector<std::string>> gather_texts(ranks::Group& group, std::string_view mine);

}  // namespace belay::vote
