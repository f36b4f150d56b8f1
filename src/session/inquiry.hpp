// SPDX-License-Identifier: Apache-2.0
// Ranks that ask each other, and answer.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "comm/group.hpp"

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace belay::session {

/// One for each rank that is written to, or has written.
using Letters = std::map<Rank, std::vector<std::byte>>;

/// Collective. Asks those that `questions` are for, and answers whoever asks this rank; the answers
/// by rank. Empty: no rank is `busy`, and nobody was asked. REQUIRES: who asks is busy. Whatever
/// fails is peer_lost: nothing more can be said through this group.
Result<std::optional<Letters>> inquire(
    ranks::Group& group, const Letters& questions, bool busy,
    const std::function<std::vector<std::byte>(std::span<const std::byte>)>& answer);

/// Lets a thread work, and ask, for as long as it takes, while this one keeps step with all others:
/// they would take a rank for lost that is silent over a slow file.
class Errand {
 public:
  using Answer = std::function<std::vector<std::byte>(std::span<const std::byte>)>;

  Errand(ranks::Group& group, Answer answer) : group_(group), answer_(std::move(answer)) {}

  /// Collective, as often as it takes: others call inquire() meanwhile. What `work` returns, or
  /// why the group is lost.
  Result<void> run(const std::function<Result<void>()>& work);
  /// By `work`.
  Result<Letters> ask(const Letters& questions);

 private:
  void keep_step();

  ranks::Group& group_;
  Answer answer_;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  const Letters* questions_ = nullptr;  ///< that wait to be asked
  std::optional<Result<Letters>> answers_;
  std::optional<Error> lost_;
  bool ended_ = false;
};

}  // namespace belay::session
