// SPDX-License-Identifier: Apache-2.0
#include "compress/belay_way.hpp"
#include "compress/cpu_timer.hpp"
#include "compress/trials.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>

namespace belay::bench {
namespace {

using Ranks = std::span<const Checkpoint>;

std::vector<Scheme> all_schemes(bool quick) {
  std::vector<Scheme> schemes = {
      {Merging::agnostic, 0, 1, false},       {Merging::agnostic_block, 4096, 1, false},
      {Merging::aware, 0, 1, false},          {Merging::aware, 0, 2, false},
      {Merging::aware_block, 1024, 2, false}, {Merging::aware, 0, 2, true}};
  if (!quick)
    schemes.insert(schemes.end(), {{Merging::agnostic, 0, 2, false},
                                   {Merging::agnostic_block, 4096, 2, false},
                                   {Merging::aware_block, 1024, 1, false},
                                   {Merging::aware_block, 8192, 2, false},
                                   {Merging::aware, 0, 1, true},
                                   {Merging::aware_block, 1024, 2, true}});
  return schemes;
}

/// What one way made of all sets of a moment, each time.
struct Outcome {
  std::uint64_t packed_bytes = 0;
  std::vector<double> pack_s, unpack_s;
};

/// One way with one set.
struct Way {
  std::function<std::span<const std::byte>(Ranks)> pack;
  std::function<void(std::span<const std::byte>, std::span<Checkpoint>)> unpack;
};

void add_set(Ranks ranks, const Way& way, std::span<Checkpoint> room, Outcome& outcome) {
  const CpuTimer packing;
  const std::span<const std::byte> packed = way.pack(ranks);
  outcome.pack_s.back() += packing.seconds();
  outcome.packed_bytes += packed.size();
  const CpuTimer unpacking;
  way.unpack(packed, room);
  outcome.unpack_s.back() += unpacking.seconds();
  if (!std::equal(ranks.begin(), ranks.end(), room.begin(), room.end()))
    die("what came back is not what went in");
}

/// All schemes with the sets of one size, and `auto` beside them.
class SetTrials {
 public:
  SetTrials(const std::vector<Moment>& moments, std::size_t set_ranks,
            const TrialSettings& settings)
      : moments_(moments), set_ranks_(set_ranks), settings_(settings) {
    for (const Moment& moment : moments) rooms_.push_back(blank(moment.ranks));
    outcomes_.resize(moments.size());
  }

  Json run() {
    for (int turn = 0; turn < settings_.repetitions; ++turn) {
      // A job has one aggregator for each set, from its first version to its last.
      std::deque<BelayWay> aggregators;
      for (std::size_t first = 0; first < moments_[0].ranks.size(); first += set_ranks_)
        aggregators.emplace_back("auto", kBandwidth, memory_);
      for (std::size_t i = 0; i < moments_.size(); ++i) {
        for (const Scheme& scheme : all_schemes(settings_.quick))
          if (turn == 0 || is_best(scheme, i)) try_scheme(scheme, i);
        try_auto(aggregators, i);
      }
    }
    return rows();
  }

 private:
  bool is_best(const Scheme& scheme, std::size_t moment) const {
    const auto size_of = [&](const std::string& name) {
      return outcomes_[moment].at(name).packed_bytes;
    };
    for (const Scheme& other : all_schemes(settings_.quick))
      if (other.fpzip_for_doubles == scheme.fpzip_for_doubles &&
          size_of(other.name()) < size_of(scheme.name()))
        return false;
    return true;
  }

  void try_scheme(const Scheme& scheme, std::size_t moment) {
    Bytes packed;
    const Way way = {
        [&](Ranks ranks) { return std::span<const std::byte>(packed = pack(ranks, scheme)); },
        [&](std::span<const std::byte> bytes, std::span<Checkpoint> ranks) {
          unpack(bytes, scheme, ranks);
        }};
    try_sets(moment, outcomes_[moment][scheme.name()], [&](std::size_t) { return way; });
  }

  void try_auto(std::deque<BelayWay>& aggregators, std::size_t moment) {
    try_sets(moment, outcomes_[moment]["auto"], [&](std::size_t set) {
      BelayWay& belay = aggregators[set];
      return Way{[&](Ranks ranks) { return belay.pack(ranks); },
                 [&](std::span<const std::byte> packed, std::span<Checkpoint> ranks) {
                   belay.unpack(packed, ranks);
                 }};
    });
  }

  void try_sets(std::size_t moment, Outcome& outcome,
                const std::function<Way(std::size_t set)>& way_of) {
    outcome.packed_bytes = 0;
    outcome.pack_s.push_back(0);
    outcome.unpack_s.push_back(0);
    const std::vector<Checkpoint>& ranks = moments_[moment].ranks;
    for (std::size_t first = 0; first < ranks.size(); first += set_ranks_) {
      const std::size_t count = std::min(set_ranks_, ranks.size() - first);
      add_set(Ranks(ranks).subspan(first, count), way_of(first / set_ranks_),
              std::span(rooms_[moment]).subspan(first, count), outcome);
    }
  }

  Json row_of(std::size_t moment, const std::string& name, const char* chain) const {
    const Outcome& outcome = outcomes_[moment].at(name);
    const auto bytes = total_bytes(Ranks(moments_[moment].ranks));
    return {{"application", moments_[moment].application},
            {"when", moments_[moment].when},
            {"set", set_ranks_},
            {"scheme", name},
            {"chain", chain},
            {"bytes", bytes},
            {"ratio", static_cast<double>(bytes) / static_cast<double>(outcome.packed_bytes)},
            {"pack_s", median(outcome.pack_s)},
            {"unpack_s", median(outcome.unpack_s)}};
  }

  Json rows() const {
    Json rows = Json::array();
    for (std::size_t i = 0; i < moments_.size(); ++i) {
      for (const Scheme& scheme : all_schemes(settings_.quick))
        rows.push_back(row_of(i, scheme.name(), scheme.fpzip_for_doubles ? "fpzip" : "paper"));
      rows.push_back(row_of(i, "auto", "belay"));
    }
    return rows;
  }

  const std::vector<Moment>& moments_;
  const std::size_t set_ranks_;
  const TrialSettings& settings_;
  const std::shared_ptr<BelayMemory> memory_ = make_belay_memory();
  std::vector<std::vector<Checkpoint>> rooms_;
  std::vector<std::map<std::string, Outcome>> outcomes_;  ///< by moment and scheme
};

}  // namespace

Json try_schemes(const std::vector<Moment>& moments, const TrialSettings& settings) {
  Json rows = Json::array();
  for (const int set : settings.set_sizes)
    for (const Json& row : SetTrials(moments, static_cast<std::size_t>(set), settings).run())
      rows.push_back(row);
  return rows;
}

}  // namespace belay::bench
