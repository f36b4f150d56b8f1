// SPDX-License-Identifier: Apache-2.0
#include "session/division.hpp"

#include "base/try.hpp"
#include "vote/agreement.hpp"

#include <algorithm>
#include <optional>
#include <span>

namespace belay::session {
namespace {

std::size_t place_in(const std::vector<Rank>& processes, Rank process) {
  const auto found = std::find(processes.begin(), processes.end(), process);
  return static_cast<std::size_t>(found - processes.begin());
}

/// The process that is the head of a rank.
Rank head_of(const Roles& roles, Rank rank) {
  std::size_t head = 0;
  while (place_in(roles.crews[head], rank) == roles.crews[head].size()) ++head;
  return roles.heads[head];
}

/// Lets the ranks of this head call it.
Result<void> receive_crew(os::Listener& listener, std::size_t crew, const Settings& settings,
                          Division& division) {
  // Less than what the others wait for this one, so that all hear who did not call.
  const std::uint64_t patience = settings.timeout_ns / 2;
  const std::size_t draining = settings.has_global_tier() ? crew : 0;
  while (division.lines.size() < crew || division.drain_lines.size() < draining) {
    BELAY_ASSIGN(auto line, listener.accept(patience));
    BELAY_ASSIGN(auto joined, line.receive(patience));
    const auto body = std::span(joined.message);
    BELAY_ASSIGN(const Join join, decode_join(body.subspan(std::min<std::size_t>(1, body.size()))));
    if (join.purpose == Purpose::drains) {
      division.drain_lines.push_back(std::move(line));
      continue;
    }
    division.lines.emplace(join.rank, std::move(line));
    division.joined.emplace(join.rank, std::move(joined));
  }
  return {};
}

/// Calls the head that listens under this name.
Result<void> call_head(const std::string& name, Rank rank, const Settings& settings,
                       Division& division) {
  BELAY_ASSIGN(division.head, HeadLine::join(name, rank, settings.timeout_ns));
  if (!settings.has_global_tier()) return {};
  BELAY_ASSIGN(division.drains, DrainLine::join(name, rank, settings.timeout_ns));
  return {};
}

/// Collective. Heads listen, and their ranks call them.
Result<void> connect(ranks::Group& whole, const Settings& settings, os::Random& random,
                     Division& division) {
  std::optional<os::Listener> listener;
  Result<void> mine;
  if (division.is_head) {
    auto opened = os::Listener::open(random);
    if (opened)
      listener.emplace(*std::move(opened));
    else
      mine = Unexpected(opened.error());
  }
  BELAY_ASSIGN(const auto names, vote::gather_texts(whole, listener ? listener->name() : ""));
  BELAY_TRY(vote::agree(whole, mine));
  const Roles& roles = division.roles;
  if (listener) {
    const auto& crew = roles.crews[place_in(roles.heads, whole.rank())];
    return vote::agree(whole, receive_crew(*listener, crew.size(), settings, division));
  }
  const auto rank = static_cast<Rank>(place_in(roles.application, whole.rank()));
  return vote::agree(whole, call_head(names[head_of(roles, rank)], rank, settings, division));
}

}  // namespace

Result<Division> divide(ranks::Group& whole, const Settings& settings, const std::string& node,
                        os::Random& random) {
  Division division;
  BELAY_ASSIGN(const auto nodes, vote::gather_texts(whole, node));
  BELAY_ASSIGN(division.roles, assign_roles(nodes, settings.heads_per_node));
  const Roles& roles = division.roles;
  division.is_head = place_in(roles.heads, whole.rank()) < roles.heads.size();
  BELAY_ASSIGN(division.group, whole.subset(division.is_head ? roles.heads : roles.application));
  BELAY_TRY(connect(whole, settings, random, division));
  return division;
}

}  // namespace belay::session
