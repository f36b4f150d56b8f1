// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/store/check_losses.hpp"

#include "base/try.hpp"
#include "inspect/survival.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace belay::tool {
namespace {

using inspect::DeadlyLoss;
using inspect::StoreView;
using inspect::SurvivalReport;
using inspect::VersionSurvival;

constexpr std::size_t kNamedSets = 5;

/// "{node-1, node-3}"
std::string nodes_text(const StoreView& view, const std::vector<std::size_t>& nodes) {
  std::string text;
  for (const std::size_t node : nodes) text += (text.empty() ? "" : ", ") + node_text(view, node);
  return "{" + text + "}";
}

/// "37 blocks of rank 2, manifest and 4 blocks of rank 3, and 5 more ranks"
std::string lacking_text(const DeadlyLoss& loss) {
  std::string text;
  for (const auto& [rank, blocks, manifest] : loss.parts) {
    if (!text.empty()) text += ", ";
    if (manifest) text += "the manifest";
    if (blocks > 0) text += (manifest ? " and " : "") + count_text(blocks, "block");
    text += fmt::format(" of rank {}", rank);
  }
  if (loss.ranks > loss.parts.size())
    text += ", and of " + count_text(loss.ranks - loss.parts.size(), "more rank");
  return text;
}

void say_version(const Shell& shell, const StoreView& view, const SurvivalReport& report,
                 const VersionSurvival& version) {
  const std::string name = "version " + version_text(view, version.key);
  const std::string level =
      fmt::format(" ({})", level_text(version.level, version.global, version.dump));
  const std::string losses = count_text(report.losses, "node");
  if (version.deadly.empty()) {
    shell.say(name + ": " + paint("survives", Colour::green, shell.colours()) +
              fmt::format(" every loss of {}", losses) + level);
    return;
  }
  const Colour colour = version.breaks_promise() ? Colour::red : Colour::yellow;
  const std::string lost = paint("is lost", colour, shell.colours());
  if (version.lost_already()) {
    shell.say(name + ": " + lost + " already: nobody has " + lacking_text(version.deadly.front()) +
              level);
    return;
  }
  for (std::size_t i = 0; i < std::min(version.deadly.size(), kNamedSets); ++i)
    shell.say(fmt::format("{}: {} with {}: {}", name, lost,
                          nodes_text(view, version.deadly[i].nodes),
                          lacking_text(version.deadly[i])));
  shell.say(fmt::format("{}: {} with {} of {} losses of {}{}", name, lost, version.deadly.size(),
                        report.sampled
                            ? fmt::format("{} drawn by lot of {}", *report.sampled, report.sets)
                            : std::to_string(report.sets),
                        losses, level));
}

nlohmann::json loss_json(const StoreView& view, const DeadlyLoss& loss) {
  nlohmann::json json = {{"nodes", nlohmann::json::array()},
                         {"ranks", loss.ranks},
                         {"blocks", loss.blocks},
                         {"manifests", loss.manifests},
                         {"parts", nlohmann::json::array()}};
  for (const std::size_t node : loss.nodes) json["nodes"].push_back(view.nodes()[node].directory);
  for (const auto& [rank, blocks, manifest] : loss.parts)
    json["parts"].push_back({{"rank", rank}, {"blocks", blocks}, {"manifest", manifest}});
  return json;
}

nlohmann::json losses_json(const StoreView& view, const SurvivalReport& report) {
  nlohmann::json json = {{"nodes", report.losses},
                         {"sets", report.sets},
                         {"sampled", nullptr},
                         {"versions", nlohmann::json::array()}};
  if (report.sampled) json["sampled"] = *report.sampled;
  for (const VersionSurvival& version : report.versions) {
    nlohmann::json one = json_of(version.key);
    one["state"] = name_of(version.state);
    one["level"] = belay::name_of(version.level);
    one["promised"] = version.promises(report.losses);
    one["lost_already"] = version.lost_already();
    one["survives"] = version.deadly.empty();
    one["deadly"] = nlohmann::json::array();
    for (const DeadlyLoss& loss : version.deadly) one["deadly"].push_back(loss_json(view, loss));
    json["versions"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

Exit check_losses(Shell& shell, std::size_t losses) {
  const auto judge = [&](const StoreView& view) -> Result<Exit> {
    BELAY_ASSIGN(const auto report, inspect::judge_losses(view, losses));
    const auto flaws = view.all_flaws();
    say_flaws(shell, flaws);
    if (report.versions.empty()) shell.say("no versions");
    for (const VersionSurvival& version : report.versions)
      say_version(shell, view, report, version);
    nlohmann::json json = json_start("belay/check/1", view);
    json["losses"] = losses_json(view, report);
    json["flaws"] = json_of(flaws);
    shell.answer(json);
    return report.keeps_promises() ? Exit::ok : Exit::damage;
  };
  return with_store(shell, judge);
}

}  // namespace belay::tool
