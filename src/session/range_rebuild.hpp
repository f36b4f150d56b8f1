// SPDX-License-Identifier: Apache-2.0
// Ranges of lost members, computed from ranges of other members and shards that other ranks read.
#pragma once

#include <belay/result.hpp>

#include "base/stripe.hpp"
#include "catalog/whereabouts.hpp"
#include "comm/group.hpp"
#include "redundancy/erasure_code.hpp"
#include "redundancy/stripe_rebuild.hpp"
#include "session/range_server.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace belay::session {

struct WantedRange {
  const Stripe* stripe = nullptr;
  std::uint32_t seat = 0;  ///< of the member
  std::uint64_t offset = 0;
  std::span<std::byte> into;
  bool lost = false;  ///< too little is left of the stripe
};

/// One rank's side. All ranks make one and call it in step.
class RangeRebuild {
 public:
  RangeRebuild(ranks::Group& group, const catalog::Whereabouts& whereabouts, RangeServer& server)
      : group_(group), whereabouts_(whereabouts), server_(server) {}

  /// Collective: fills what can be had. Only what ends it for all ranks is an error.
  Result<void> run(std::vector<WantedRange>& wanted);

 private:
  /// A part of a wanted range that one codeword gives.
  struct Task {
    WantedRange* wanted = nullptr;
    redundancy::Range range;            ///< in the member
    std::vector<std::uint32_t> absent;  ///< seats that could not give what was asked of them
    redundancy::RebuildStep step;       ///< as planned for this round
    std::vector<std::vector<std::byte>> sources;
    bool asked = false;
  };
  /// A question of this round: which source of which task.
  struct Asked {
    Task* task = nullptr;
    std::size_t source = 0;
    RangeQuestion question;
  };
  struct Code {
    redundancy::StripeLayout layout;
    redundancy::ErasureCode code;
  };

  Result<const Code*> code_of(const Stripe& stripe);
  Result<void> cut(WantedRange& wanted);
  Result<void> plan_round();
  /// False: too little is left.
  Result<bool> plan(Task& task);
  const catalog::Whereabouts::Holder* holder_of(const Stripe& stripe,
                                                const redundancy::StripePart& part,
                                                SegmentId& id) const;
  Result<bool> ask_and_answer();
  void take(std::vector<Asked>& asked, std::span<const std::byte> answer);
  Result<void> compute(Task& task);

  ranks::Group& group_;
  const catalog::Whereabouts& whereabouts_;
  RangeServer& server_;
  std::map<const Stripe*, std::unique_ptr<Code>> codes_;
  std::vector<Task> tasks_;
  std::map<Rank, std::vector<Asked>> asked_;
};

}  // namespace belay::session
