// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/store/show_nodes.hpp"

#include "base/settings.hpp"
#include "base/try.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <string>

namespace belay::tool {
namespace {

using inspect::FileSum;
using inspect::NodeShare;

/// "0-3, 7"
std::string ranks_text(const std::set<Rank>& ranks) {
  std::string text;
  for (auto first = ranks.begin(); first != ranks.end();) {
    auto last = first;
    for (auto next = std::next(last); next != ranks.end() && *next == *last + 1; ++next)
      last = next;
    text += (text.empty() ? "" : ", ") + std::to_string(*first);
    if (last != first) text += "-" + std::to_string(*last);
    first = std::next(last);
  }
  return text.empty() ? "-" : text;
}

/// "412 on 2 nodes, 30 on 4"
std::string spread_text(const std::map<std::size_t, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [nodes, count] : counts) {
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", count, nodes);
    if (nodes == counts.begin()->first) text += nodes == 1 ? " node" : " nodes";
  }
  return text.empty() ? "none" : text;
}

std::string short_text(const inspect::Spread& spread) {
  std::string text;
  if (spread.short_blocks > 0) text += count_text(spread.short_blocks, "block");
  if (spread.short_manifests > 0)
    text += (text.empty() ? "" : " and ") + count_text(spread.short_manifests, "manifest");
  return text;
}

nlohmann::json sum_json(const FileSum& sum) {
  return {{"count", sum.count}, {"bytes", sum.bytes}, {"ranks", sum.ranks}};
}

nlohmann::json spread_json(const std::map<std::size_t, std::uint64_t>& counts) {
  auto list = nlohmann::json::array();
  for (const auto& [nodes, count] : counts) list.push_back({{"nodes", nodes}, {"count", count}});
  return list;
}

}  // namespace

Result<ShownNodes> look_at_nodes(const inspect::StoreView& view,
                                 const inspect::VersionView& version) {
  ShownNodes shown{inspect::node_shares(view, version), {}};
  BELAY_ASSIGN(shown.spread, inspect::spread_of(view, version));
  return shown;
}

void say_safety(const Shell& shell, const inspect::VersionView& version, const ShownNodes& shown) {
  const Manifest& manifest = *version.any_manifest();
  const std::string level = name_of(manifest.level);
  shell.say("  level        " + level_text(manifest.level, manifest.global, manifest.dump));
  shell.say(fmt::format("  copies       blocks: {}; manifests: {}",
                        spread_text(shown.spread.blocks), spread_text(shown.spread.manifests)));
  const std::string lacking = short_text(shown.spread);
  shell.say(lacking.empty()
                ? fmt::format("  safety       {}: every block and manifest is on as many nodes as "
                              "{} says",
                              paint("good", Colour::green, shell.colours()), level)
                : fmt::format(
                      "  safety       {}: {} {} on fewer nodes than {} says",
                      paint("less", Colour::red, shell.colours()), lacking,
                      shown.spread.short_blocks + shown.spread.short_manifests == 1 ? "is" : "are",
                      level));
}

void say_nodes(const Shell& shell, const inspect::StoreView& view, const ShownNodes& shown) {
  Table table({"NODE", ">MANIFESTS", "OF RANKS", ">SEGMENTS", ">SIZE", "OF RANKS", ">COPIES",
               ">SIZE", "OF RANKS", ">SHARDS", ">SIZE"});
  for (std::size_t node = 0; node < shown.shares.size(); ++node) {
    const auto& [manifests, segments, copies, shards] = shown.shares[node];
    table.add({node_text(view, node), std::to_string(manifests.count), ranks_text(manifests.ranks),
               std::to_string(segments.count), format_bytes(segments.bytes),
               ranks_text(segments.ranks), std::to_string(copies.count), format_bytes(copies.bytes),
               ranks_text(copies.ranks), std::to_string(shards.count), format_bytes(shards.bytes)});
  }
  shell.say(paint("Nodes", Colour::bold, shell.colours()));
  for (const std::string& line : table.lines(shell.colours(), 2)) shell.say(line);
}

nlohmann::json nodes_json(const inspect::StoreView& view, const ShownNodes& shown) {
  nlohmann::json json = {{"nodes", nlohmann::json::array()}};
  for (std::size_t node = 0; node < shown.shares.size(); ++node) {
    const NodeShare& share = shown.shares[node];
    json["nodes"].push_back({{"node", view.nodes()[node].name},
                             {"directory", view.nodes()[node].directory},
                             {"manifests", sum_json(share.manifests)},
                             {"segments", sum_json(share.segments)},
                             {"copies", sum_json(share.copies)},
                             {"shards", sum_json(share.shards)}});
  }
  const inspect::Spread& spread = shown.spread;
  json["safety"] = {{"as_level", spread.short_blocks == 0 && spread.short_manifests == 0},
                    {"short_blocks", spread.short_blocks},
                    {"short_manifests", spread.short_manifests},
                    {"blocks", spread_json(spread.blocks)},
                    {"manifests", spread_json(spread.manifests)}};
  return json;
}

}  // namespace belay::tool
