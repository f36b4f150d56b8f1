// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/store/store_arguments.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace belay::tool {

Result<inspect::StoreView> open_store(const Shell& shell) {
  return within_memory([&] { return inspect::StoreView::open(os::posix_files(), shell.stores()); });
}

namespace {

Unexpected no_version(const inspect::StoreView& view, const std::string& wanted) {
  std::string there;
  for (const auto& version : view.versions()) {
    if (there.size() > 60) {
      there += ", ...";
      break;
    }
    there += (there.empty() ? "" : ", ") + version_text(view, version.key);
  }
  return fail(Code::not_found, "no version {} in {}; {}", in_quotes(wanted), view.stores().front(),
              there.empty() ? "there is none at all" : "there are " + there);
}

/// Has a version gone since the view was made?
bool has_changed(const inspect::StoreView& view) {
  for (const auto& version : view.versions())
    for (const auto& part : version.parts)
      if (!view.still_listed(part, version.key)) return true;
  return false;
}

Result<const inspect::VersionView*> find_latest(const inspect::StoreView& view) {
  if (const auto* newest = view.newest_whole()) return newest;
  if (!view.has_existed())
    return fail(Code::not_found, "{} has no versions", view.stores().front());
  return fail(Code::corruption,
              "{} has had versions, but none is whole; `belay check` says what is damaged",
              view.stores().front());
}

}  // namespace

Result<const inspect::VersionView*> find_version(const inspect::StoreView& view,
                                                 const std::string& wanted) {
  if (wanted == "latest") return find_latest(view);
  const std::size_t slash = wanted.find('/');
  const auto number =
      parse_count(slash == std::string::npos ? wanted : std::string_view(wanted).substr(slash + 1));
  const auto run = slash == std::string::npos
                       ? std::optional<std::uint64_t>(0)
                       : parse_count(std::string_view(wanted).substr(0, slash));
  if (!number || !run)
    return fail(Code::invalid_argument, "{} is no version; give {}", in_quotes(wanted),
                kVersionHelp);
  for (const auto& version : view.versions())
    if (version.key.version == *number && (slash == std::string::npos || version.key.run == *run))
      return &version;
  return no_version(view, wanted);
}

Exit with_store(Shell& shell, const StoreWork& work) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPatience(10);
  const auto started = Clock::now();
  for (;;) {
    auto view = open_store(shell);
    if (!view) return shell.fail(view.error());
    auto done = within_memory([&] { return work(*view); });
    if (done) return *done;
    const Code code = done.error().code();
    const bool may_be_gone =
        code == Code::not_found || code == Code::corruption || code == Code::busy;
    const bool patient = Clock::now() - started < kPatience;
    if (!may_be_gone || !patient || !has_changed(*view)) return shell.fail(done.error());
  }
}

Exit with_version(Shell& shell, const std::string& wanted, const VersionWork& work) {
  return with_store(shell, [&](const inspect::StoreView& view) -> Result<Exit> {
    BELAY_ASSIGN(const auto* version, find_version(view, wanted));
    return work(view, *version);
  });
}

Colour colour_of(inspect::VersionState state) {
  switch (state) {
    case inspect::VersionState::whole:
      return Colour::green;
    case inspect::VersionState::incomplete:
      return Colour::yellow;
    case inspect::VersionState::damaged:
      break;
  }
  return Colour::red;
}

std::string version_text(const inspect::StoreView& view, VersionKey key) {
  for (const auto& version : view.versions())  // newest first
    if (version.key.version == key.version)
      return version.key == key ? fmt::format("{}", key.version)
                                : fmt::format("{}/{}", key.run, key.version);
  return fmt::format("{}/{}", key.run, key.version);
}

std::string node_text(const inspect::StoreView& view, std::size_t node) {
  const inspect::NodeView& named = view.nodes()[node];
  const auto same = std::count_if(view.nodes().begin(), view.nodes().end(),
                                  [&](const auto& other) { return other.name == named.name; });
  return printable(same == 1 ? "node-" + named.name : named.directory);
}

std::string level_text(const Level& level, bool global, bool dump) {
  return name_of(level) + (global ? ", global" : "") + (dump ? ", dump" : "");
}

std::string flaw_text(const inspect::Flaw& flaw) {
  std::string place = flaw.directory;
  if (!flaw.file.empty()) place += (place.empty() ? "" : "/") + flaw.file;
  std::string reason = flaw.reason;
  // Messages from below name the file themselves.
  if (reason.starts_with(place + ": ")) reason = reason.substr(place.size() + 2);
  if (!flaw.bundles.empty()) {
    place = flaw.directory + "/" + flaw.bundles.front();
    if (reason.starts_with(place + ": ")) reason = reason.substr(place.size() + 2);
    const auto others = flaw.bundles.size() - 1;
    reason = flaw.file +
             (others > 0 ? fmt::format(", which {} more bundles have a part of", others) : "") +
             ": " + reason;
  }
  std::string about;
  const auto add = [&](const std::string& text) { about += (about.empty() ? "" : ", ") + text; };
  if (flaw.version) add(fmt::format("run {} version {}", flaw.version->run, flaw.version->version));
  if (flaw.rank) add(fmt::format("rank {}", *flaw.rank));
  if (!flaw.region.empty()) add("region " + in_quotes(flaw.region));
  if (flaw.blocks > 0) add(count_text(flaw.blocks, "block"));
  return printable(place + ": " + reason) + (about.empty() ? "" : " (" + about + ")");
}

void say_flaws(const Shell& shell, const std::vector<inspect::Flaw>& flaws, std::size_t most) {
  if (shell.json()) return;
  for (std::size_t i = 0; i < std::min(most, flaws.size()); ++i)
    shell.complain(flaw_text(flaws[i]));
  if (flaws.size() > most)
    shell.complain(fmt::format("... and {} more; --json has them all", flaws.size() - most));
}

Exit exit_of(const std::vector<inspect::Flaw>& flaws) {
  if (flaws.empty()) return Exit::ok;
  const auto all = [&](Code code) {
    return std::all_of(flaws.begin(), flaws.end(), [&](const auto& f) { return f.code == code; });
  };
  if (all(Code::io)) return Exit::io;
  return all(Code::unsupported) ? Exit::unsupported : Exit::damage;
}

nlohmann::json json_of(VersionKey key) { return {{"run", key.run}, {"version", key.version}}; }

nlohmann::json json_of(const inspect::Flaw& flaw) {
  nlohmann::json json = {{"code", flaw.code == Code::not_found ? "missing" : name_of(flaw.code)},
                         {"directory", flaw.directory},
                         {"file", flaw.bundles.empty() ? flaw.file : flaw.bundles.front()},
                         {"reason", flaw.reason}};
  if (!flaw.bundles.empty()) json["part"] = flaw.file;
  if (flaw.version) json.update(json_of(*flaw.version));
  if (flaw.rank) json["rank"] = *flaw.rank;
  if (!flaw.region.empty()) json["region"] = flaw.region;
  if (flaw.blocks > 0) json["blocks"] = flaw.blocks;
  return json;
}

nlohmann::json json_of(const std::vector<inspect::Flaw>& flaws) {
  auto list = nlohmann::json::array();
  for (const auto& flaw : flaws) list.push_back(json_of(flaw));
  return list;
}

// Without durable_ns: a manifest is written before it is known.
nlohmann::json json_of(const Ledger& ledger) {
  return {{"protected_bytes", ledger.protected_bytes},
          {"untouched_bytes", ledger.untouched_bytes},
          {"unchanged_bytes", ledger.unchanged_bytes},
          {"duplicate_here_bytes", ledger.duplicate_here_bytes},
          {"duplicate_elsewhere_bytes", ledger.duplicate_elsewhere_bytes},
          {"written_bytes", ledger.written_bytes},
          {"carried_bytes", ledger.carried_bytes},
          {"encoded_bytes", ledger.encoded_bytes},
          {"file_bytes", ledger.file_bytes},
          {"settle_ns", ledger.settle_ns},
          {"detect_ns", ledger.detect_ns},
          {"stage_ns", ledger.stage_ns},
          {"wait_ns", ledger.wait_ns},
          {"blocking_ns", ledger.blocking_ns}};
}

nlohmann::json level_json(const Manifest* manifest) {
  if (manifest == nullptr) return {{"level", nullptr}, {"global", nullptr}, {"dump", nullptr}};
  return {
      {"level", name_of(manifest->level)}, {"global", manifest->global}, {"dump", manifest->dump}};
}

nlohmann::json json_start(const char* schema, const inspect::StoreView& view) {
  nlohmann::json json = {{"schema", schema}, {"stores", view.stores()}};
  if (view.identities().empty()) return json;
  const vote::Identity& identity = view.identities().front();
  json["store"] = {{"id", to_hex(identity.store)},
                   {"application", identity.application},
                   {"ranks", identity.ranks}};
  return json;
}

}  // namespace belay::tool
