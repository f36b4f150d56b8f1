// SPDX-License-Identifier: Apache-2.0
#include "base/level.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

#include <algorithm>

namespace belay {
namespace {

constexpr std::uint64_t kMost = 255;  // copies, and members and shards together
constexpr std::uint64_t kMostEvery = 1'000'000'000;

/// What is before the first `separator`, which is then gone with it.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = std::min(text.find(separator), text.size());
  const auto taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Result<Level> parse_replicas(std::string_view text) {
  const auto copies = parse_count(text).value_or(0);
  if (copies < 1 || copies > kMost)
    return fail(Code::invalid_argument,
                "replicas:K: K from 1 to {} says on how many nodes every block shall be, such as "
                "replicas:2",
                kMost);
  return Level::replicas(static_cast<std::uint8_t>(copies));
}

Result<Level> parse_erasure(std::string_view text) {
  const auto members = parse_count(take_until(text, '+')).value_or(0);
  const auto shards = parse_count(text).value_or(0);
  if (members < 1 || shards < 1 || members > kMost || members + shards > kMost)
    return fail(Code::invalid_argument,
                "erasure:k+m: k nodes give to m others, from 1 each to {} together, such as "
                "erasure:4+2",
                kMost);
  return Level::erasure(static_cast<std::uint8_t>(members), static_cast<std::uint8_t>(shards));
}

Result<std::uint64_t> parse_every(std::string_view text) {
  if (text.empty()) return 1;
  const auto every = parse_count(text).value_or(0);
  if (every < 1 || every > kMostEvery)
    return fail(Code::invalid_argument, "'{}': every how many-th version? A number from 1", text);
  return every;
}

}  // namespace

Result<Level> parse_redundancy(std::string_view text) {
  std::string_view rest = text;
  const auto word = take_until(rest, ':');
  if (same_word(text, "none")) return Level{};
  if (same_word(word, "replicas")) return parse_replicas(rest);
  if (same_word(word, "erasure")) return parse_erasure(rest);
  return fail(Code::invalid_argument,
              "must be none, replicas:K (such as replicas:2) or erasure:k+m (such as erasure:4+2)");
}

Result<LevelPlan> parse_levels(std::string_view text) {
  LevelPlan plan;
  while (!text.empty()) {
    std::string_view rest = without_blanks(take_until(text, ','));
    const auto word = take_until(rest, ':');
    if (same_word(word, "global")) {
      BELAY_ASSIGN(plan.global, parse_every(rest));
      continue;
    }
    LevelRule rule;
    if (same_word(word, "replicas")) {
      BELAY_ASSIGN(rule.level, parse_replicas(take_until(rest, ':')));
    } else if (same_word(word, "erasure")) {
      BELAY_ASSIGN(rule.level, parse_erasure(take_until(rest, ':')));
    } else if (!same_word(word, "local")) {
      return fail(
          Code::invalid_argument,
          "'{}' is no level; write them as in local:1,replicas:2:4,erasure:4+2:16,global:32 "
          "(the last number: every so-many-th version)",
          word);
    }
    BELAY_ASSIGN(rule.every, parse_every(rest));
    plan.rules.push_back(rule);
  }
  return plan;
}

std::string name_of(const Level& level) {
  if (level.kind == Level::Kind::replicas) return fmt::format("replicas:{}", level.copies);
  if (level.kind == Level::Kind::erasure)
    return fmt::format("erasure:{}+{}", level.members, level.shards);
  return "local";
}

Level LevelPlan::level_of(Version version) const {
  const LevelRule* chosen = nullptr;
  for (const LevelRule& rule : rules)
    if (version % rule.every == 0 &&
        (chosen == nullptr || chosen->level.losses() < rule.level.losses()))
      chosen = &rule;
  return chosen != nullptr ? chosen->level : levels().front();
}

std::vector<Level> LevelPlan::levels() const {
  std::vector<Level> all;
  for (const LevelRule& rule : rules)
    if (std::find(all.begin(), all.end(), rule.level) == all.end()) all.push_back(rule.level);
  if (all.empty()) all.emplace_back();
  std::stable_sort(all.begin(), all.end(),
                   [](const Level& a, const Level& b) { return a.losses() < b.losses(); });
  return all;
}

Level LevelPlan::nearest(const Level& level) const {
  const auto all = levels();
  Level found = all.front();
  for (const Level& each : all)
    if (each.losses() <= level.losses()) found = each;
  return found;
}

std::string to_text(const LevelPlan& plan) {
  std::string text;
  for (const LevelRule& rule : plan.rules)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", name_of(rule.level), rule.every);
  if (plan.global) text += fmt::format("{}global:{}", text.empty() ? "" : ",", *plan.global);
  return text;
}

}  // namespace belay
