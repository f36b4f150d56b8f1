// SPDX-License-Identifier: Apache-2.0
// Moves copies between ranks, as a VersionPlan says: first what each receiver is to expect, then
// the bytes, in rounds through windows of bounded size.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "comm/group.hpp"
#include "dedup/exchange_plan.hpp"
#include "session/kept_copies.hpp"
#include "session/version_plan.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace belay::session {

/// Memory of this rank that others put blocks into. Two, so that one fills while the other is
/// written. They stay open from version to version.
class ExchangeWindows {
 public:
  static constexpr std::size_t kCount = 2;

  /// Collective. `needed` is by rank, the same on all: if one is too small, all are made anew.
  Result<void> provide(ranks::Group& group, const std::vector<std::uint64_t>& needed);
  /// Collective.
  Result<void> close();
  ranks::Window& window(std::size_t i) { return *windows_[i]; }

 private:
  std::array<std::unique_ptr<ranks::Window>, kCount> windows_;
  std::vector<std::uint64_t> bytes_;  ///< by rank
};

/// A block that this rank brought to the plan: what it is and where it lies.
struct BroughtBlock {
  dedup::Block block;
  std::span<const std::byte> bytes;
};

struct CopyExchange {
  ranks::Group& group;
  const dedup::NodeLayout& layout;
  const VersionPlan& plan;
  std::span<const BroughtBlock> brought;

  /// Collective. What others will send here.
  Result<std::vector<KeptCopies::Source>> announce(std::span<const std::byte> manifest) const;

  /// What a receiver does with a window that was filled: `done` is set when it is free again.
  using Arrived = std::function<void(std::vector<KeptCopies::Arrival>, std::atomic<bool>& done)>;

  /// Collective. `wait` is called while a window is not free.
  Result<void> move_blocks(const std::vector<KeptCopies::Source>& sources,
                           const dedup::Rounds& rounds, ExchangeWindows& windows,
                           const Arrived& arrived, const std::function<void()>& wait) const;
};

}  // namespace belay::session
