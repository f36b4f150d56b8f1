// SPDX-License-Identifier: Apache-2.0
// What the commands about stores have in common: opening one, naming a version, saying flaws.
#pragma once

#include "inspect/store_view.hpp"
#include "tools/belay/shell.hpp"
#include "tools/belay/table.hpp"

#include <functional>
#include <string>
#include <vector>

namespace belay::tool {

/// The store that --store and the environment name.
Result<inspect::StoreView> open_store(const Shell& shell);

/// "latest", "12" (the newest run that has one) or "3/12": run and version.
Result<const inspect::VersionView*> find_version(const inspect::StoreView& view,
                                                 const std::string& wanted);
/// How VERSION may be written, for help.
inline constexpr const char* kVersionHelp = "latest, a number, or RUN/NUMBER";

/// Opens the store, finds the version, and works on it. A running job may retire the version
/// meanwhile: if its files are gone, it starts over with the newer state. Errors are told.
using VersionWork =
    std::function<Result<Exit>(const inspect::StoreView&, const inspect::VersionView&)>;
Exit with_version(Shell& shell, const std::string& wanted, const VersionWork& work);
/// The same for work on a whole store, or on several versions.
using StoreWork = std::function<Result<Exit>(const inspect::StoreView&)>;
Exit with_store(Shell& shell, const StoreWork& work);

Colour colour_of(inspect::VersionState state);
/// "12", and "3/12" where the number alone would name another one.
std::string version_text(const inspect::StoreView& view, VersionKey key);

/// "node-3"; with its store in front where two have the same name.
std::string node_text(const inspect::StoreView& view, std::size_t node);
/// "replicas:2", "local, global", "replicas:3, dump"
std::string level_text(const Level& level, bool global, bool dump);

/// "node-a/segment-...: reason (version 3, rank 0, region "grid": 2 blocks)"
std::string flaw_text(const inspect::Flaw& flaw);
/// All of them to standard error, at most `most`.
void say_flaws(const Shell& shell, const std::vector<inspect::Flaw>& flaws, std::size_t most = 100);
/// 0 without flaws; 5 if files could only not be read, 6 if only not understood, else 1.
Exit exit_of(const std::vector<inspect::Flaw>& flaws);

nlohmann::json json_of(const inspect::Flaw& flaw);
nlohmann::json json_of(const std::vector<inspect::Flaw>& flaws);
nlohmann::json json_of(const Ledger& ledger);
nlohmann::json json_of(VersionKey key);  ///< {"run": ..., "version": ...}
/// "level", "global", "dump"; null if no manifest can be read.
nlohmann::json level_json(const Manifest* manifest);
/// "schema", and who is spoken of: "stores", and "store" (id, application, ranks) where known.
nlohmann::json json_start(const char* schema, const inspect::StoreView& view);

}  // namespace belay::tool
