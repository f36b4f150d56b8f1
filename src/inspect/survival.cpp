// SPDX-License-Identifier: Apache-2.0
#include "inspect/survival.hpp"

#include "base/node_sets.hpp"
#include "base/try.hpp"
#include "inspect/stripes.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <set>

namespace belay::inspect {
namespace {

constexpr std::size_t kNamedParts = 8;
constexpr std::uint64_t kMostSets = std::numeric_limits<std::uint64_t>::max();

using Nodes = std::vector<std::size_t>;

/// How many sets of `chosen` there are among `all`; kMostSets if there are more.
std::uint64_t count_sets(std::uint64_t all, std::uint64_t chosen) {
  unsigned __int128 count = 1;
  for (std::uint64_t i = 1; i <= std::min(chosen, all - chosen); ++i) {
    count = count * (all - i + 1) / i;
    if (count > kMostSets / all) return kMostSets;
  }
  return static_cast<std::uint64_t>(count);
}

/// The next set of the same size, in order; false: it was the last.
bool advance(Nodes& nodes, std::size_t all) {
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (nodes[i] + (nodes.size() - i) >= all) continue;
    ++nodes[i];
    for (std::size_t k = i + 1; k < nodes.size(); ++k) nodes[k] = nodes[k - 1] + 1;
    return true;
  }
  return false;
}

Nodes first_nodes(std::size_t count) {
  Nodes nodes(count);
  for (std::size_t i = 0; i < count; ++i) nodes[i] = i;
  return nodes;
}

/// With as many others as it takes to be a set of `size`.
Nodes filled_up(Nodes nodes, std::size_t size) {
  for (std::size_t node = 0; nodes.size() < size; ++node)
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

/// By node, as the stripes that the version has made tell: those of one set have their seats on the
/// same nodes.
std::vector<std::uint32_t> sets_of(const StoreView& view, VersionKey key) {
  std::vector<std::uint32_t> sets;
  for (const StripeView& stripe : view.stripes().all()) {
    if (stripe.stripe.key != key) continue;
    sets.resize(view.nodes().size(), kNoSet);
    for (std::uint32_t seat = 0; seat < stripe.stripe.seats(); ++seat)
      if (const auto node = stripe.node_of(seat))
        sets[*node] = std::min(sets[*node], stripe.stripe.number);
  }
  return sets;
}

class Judge {
 public:
  Judge(const StoreView& view, std::size_t losses, std::size_t most_sets)
      : view_(view), givers_(view), most_sets_(most_sets) {
    report_.losses = losses;
    report_.sets = count_sets(view.nodes().size(), losses);
    if (report_.sets > most_sets_) draw_lots();
  }

  Result<SurvivalReport> run() {
    for (const VersionView& version : view_.versions())
      if (version.state != VersionState::incomplete) BELAY_TRY(judge(version));
    return std::move(report_);
  }

 private:
  void draw_lots();
  Result<void> judge(const VersionView& version);
  void look_at_all(VersionSurvival& survival);
  void look_at_some(VersionSurvival& survival);
  void look_at(const Nodes& nodes, VersionSurvival& survival);

  const StoreView& view_;
  BlockGivers givers_;
  std::size_t most_sets_;
  std::set<Nodes> drawn_;
  std::vector<Dependence> dangerous_;  ///< of the version being judged
  SurvivalReport report_;
};

void Judge::draw_lots() {
  std::mt19937_64 lots(20261116);  // always the same, so that two runs can be compared
  Nodes nodes = first_nodes(view_.nodes().size());
  while (drawn_.size() < most_sets_) {
    for (std::size_t i = 0; i < report_.losses; ++i)
      std::swap(nodes[i], nodes[i + lots() % (nodes.size() - i)]);
    Nodes set(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(report_.losses));
    std::sort(set.begin(), set.end());
    drawn_.insert(std::move(set));
  }
  report_.sampled = drawn_.size();
}

Result<void> Judge::judge(const VersionView& version) {
  VersionSurvival survival{.key = version.key, .state = version.state};
  if (const Manifest* manifest = version.any_manifest()) {
    survival.level = manifest->level;
    survival.global = manifest->global;
    survival.dump = manifest->dump;
  }
  if (survival.level.has_parity()) survival.sets = sets_of(view_, version.key);
  BELAY_ASSIGN(dangerous_, dependences_of(view_, version, givers_));
  std::erase_if(dangerous_, [&](const Dependence& dependence) {
    return givers_.least_losses(dependence.givers) > report_.losses;
  });
  if (!dangerous_.empty()) look_at({}, survival);
  if (!dangerous_.empty() && !survival.lost_already())
    report_.sampled ? look_at_some(survival) : look_at_all(survival);
  report_.versions.push_back(std::move(survival));
  return {};
}

void Judge::look_at_all(VersionSurvival& survival) {
  if (report_.losses == 0) return;
  Nodes nodes = first_nodes(report_.losses);
  do look_at(nodes, survival);
  while (advance(nodes, view_.nodes().size()));
}

void Judge::look_at_some(VersionSurvival& survival) {
  std::set<Nodes> sets = drawn_;
  for (const Dependence& dependence : dangerous_) {
    const Nodes nodes = givers_.nodes_of(dependence.givers);
    if (nodes.size() <= report_.losses) sets.insert(filled_up(nodes, report_.losses));
    if (sets.size() >= 2 * most_sets_) break;
  }
  for (const Nodes& nodes : sets) look_at(nodes, survival);
}

void Judge::look_at(const Nodes& nodes, VersionSurvival& survival) {
  std::vector<bool> lost(view_.nodes().size());
  for (const std::size_t node : nodes) lost[node] = true;
  DeadlyLoss loss{.nodes = nodes, .parts = {}};
  std::optional<Rank> last;
  for (const Dependence& dependence : dangerous_) {
    if (givers_.survives(dependence.givers, lost)) continue;
    if (last != dependence.rank) {
      ++loss.ranks;
      if (loss.parts.size() < kNamedParts) loss.parts.push_back({dependence.rank, 0, false});
      last = dependence.rank;
    }
    const bool manifest = dependence.blocks == 0;
    loss.blocks += dependence.blocks;
    loss.manifests += manifest ? 1 : 0;
    if (loss.parts.back().rank != dependence.rank) continue;
    loss.parts.back().blocks += dependence.blocks;
    loss.parts.back().manifest = loss.parts.back().manifest || manifest;
  }
  if (loss.ranks > 0) survival.deadly.push_back(std::move(loss));
}

}  // namespace

bool VersionSurvival::promises(const DeadlyLoss& loss) const {
  if (promises(loss.nodes.size())) return true;
  if (sets.empty()) return false;
  std::vector<std::uint32_t> lost;
  for (const std::size_t node : loss.nodes) lost.push_back(sets[node]);
  return std::find(lost.begin(), lost.end(), kNoSet) == lost.end() &&
         most_lost(lost, level.losses()) == lost.size();
}

bool VersionSurvival::breaks_promise() const {
  return std::any_of(deadly.begin(), deadly.end(),
                     [&](const DeadlyLoss& loss) { return promises(loss); });
}

bool SurvivalReport::keeps_promises() const {
  return std::none_of(versions.begin(), versions.end(),
                      [](const VersionSurvival& version) { return version.breaks_promise(); });
}

Result<SurvivalReport> judge_losses(const StoreView& view, std::size_t losses,
                                    std::size_t most_sets) {
  if (losses > view.nodes().size())
    return fail(Code::invalid_argument, "{} nodes cannot be lost: the store has {}", losses,
                view.nodes().size());
  return within_memory([&] { return Judge(view, losses, most_sets).run(); });
}

}  // namespace belay::inspect
