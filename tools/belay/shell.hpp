// SPDX-License-Identifier: Apache-2.0
// What every command of the tool shares: options, output, exit codes. A command is one file with
// one add_...() function, and one line in commands.cpp.
#pragma once

#include <belay/result.hpp>

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;  // its header costs every file that includes it seconds
}

namespace belay::tool {

/// What the process ends with. The numbers are promised to scripts.
enum class Exit { ok = 0, damage = 1, usage = 2, not_found = 3, busy = 4, io = 5, unsupported = 6 };

Exit exit_of(Code code);

/// One run of the tool. Text goes to standard output, complaints and progress to standard error;
/// with --json standard output is one JSON document and nothing else.
class Shell {
 public:
  /// Declares a command that takes --store, --json and --color; `run` is called if it is chosen.
  /// `examples` are shown below its help, one line each.
  CLI::App& add(CLI::App& tool, const std::string& name, const std::string& summary,
                const std::vector<std::string>& examples, std::function<Exit()> run);

  /// Declares a command that has another way to name a store than --store, or none.
  CLI::App& add_without_store(CLI::App& tool, const std::string& name, const std::string& summary,
                              const std::vector<std::string>& examples, std::function<Exit()> run);
  /// As if --store had named this one.
  void use_store(const std::string& store) { stores_ = {store}; }

  /// The directories named by --store, else BELAY_STORE, else ./belay-store.
  std::vector<std::string> stores() const;
  bool json() const { return json_; }

  void say(const std::string& line) const;      ///< to standard output; not with --json
  void answer(const nlohmann::json& document);  ///< to standard output; only with --json
  /// "belay: message" to standard error.
  void complain(const std::string& message) const;
  /// complain(), and {"error": ...} with --json. The exit code that fits.
  Exit fail(const Error& error);
  /// Is there a terminal to draw on, and did nobody ask for quiet?
  bool draws() const;
  bool colours() const;

  Exit exit() const { return exit_; }

 private:
  CLI::App& complete(CLI::App& command, const std::vector<std::string>& examples,
                     std::function<Exit()> run);

  std::vector<std::string> stores_;
  bool json_ = false;
  std::string color_ = "auto";
  Exit exit_ = Exit::ok;
};

}  // namespace belay::tool
