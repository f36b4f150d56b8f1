// SPDX-License-Identifier: Apache-2.0
#include "inspect/node_homes.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <set>

namespace belay::inspect {

NodeHomes::NodeHomes(const StoreView& view) : view_(view) {
  for (std::size_t node = 0; node < view.nodes().size(); ++node) {
    bool has_segments = false;
    for (const FoundFile& file : view.nodes()[node].files) {
      const auto& parsed = file.parsed;
      if (!file.regular || !parsed || parsed->temporary) continue;
      if (parsed->kind == format::NameKind::copy)
        keepers_.insert({parsed->rank, view.nodes()[node].directory});
      if (parsed->kind != format::NameKind::segment) continue;
      has_segments = true;
      homes_[parsed->rank][parsed->key.run] = node;
    }
    if (!has_segments) without_segments_.push_back(node);
  }
}

/// Of nodes that are named by a number, rank / ranks_per_node. Unset if they are not, or if several
/// numbers of ranks per node would explain what is known: where segments lie, and that copies are
/// on other nodes than these.
std::optional<std::string> NodeHomes::numbered(Rank rank) const {
  if (homes_.empty() || view_.stores().size() != 1) return {};
  std::set<std::string> answers;
  const Rank most = std::max(homes_.rbegin()->first, rank) + 1;
  for (Rank per_node = 1; per_node <= most && answers.size() < 2; ++per_node) {
    const bool fits = std::all_of(homes_.begin(), homes_.end(), [&](const auto& home) {
      const std::size_t node = home.second.rbegin()->second;
      return view_.nodes()[node].name == std::to_string(home.first / per_node);
    });
    std::string answer = fmt::format("{}/node-{}", view_.stores().front(), rank / per_node);
    if (fits && !keepers_.contains({rank, answer})) answers.insert(std::move(answer));
  }
  if (answers.size() != 1) return {};
  return *answers.begin();
}

std::optional<std::size_t> NodeHomes::node_of(Rank rank, Run run) const {
  const auto known = homes_.find(rank);
  if (known == homes_.end()) return {};
  const auto same_run = known->second.find(run);
  if (same_run == known->second.end()) return {};
  return same_run->second;
}

Result<std::string> NodeHomes::directory_of(Rank rank, Run run) const {
  if (const auto node = node_of(rank, run)) return view_.nodes()[*node].directory;
  if (const auto known = homes_.find(rank); known != homes_.end())
    return view_.nodes()[known->second.rbegin()->second].directory;
  if (auto directory = numbered(rank)) return *std::move(directory);
  if (without_segments_.size() == 1) return view_.nodes()[without_segments_.front()].directory;
  return fail(Code::not_found,
              "nothing here says on which node rank {} was; make the directory node-... of that "
              "node anew, empty, and try again",
              rank);
}

}  // namespace belay::inspect
