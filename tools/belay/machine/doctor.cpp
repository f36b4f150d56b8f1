// SPDX-License-Identifier: Apache-2.0
// belay doctor: is this place usable, and if not, what can be done?
#include "tools/belay/machine/doctor.hpp"

#include "os/clock.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/machine/place.hpp"
#include "tools/belay/rehearse/process_tree.hpp"
#include "tools/belay/status_line.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

namespace belay::tool {
namespace {

constexpr std::uint64_t kPatienceNs = 5'000'000'000;

const char* name_of(Health health) {
  return health == Health::ok ? "ok" : health == Health::warn ? "warn" : "fail";
}

bool any_fails(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.health == Health::fail; });
}

/// A thread of its own, since a file system that hangs keeps whoever asks it.
std::future<Findings> start_examining(const std::string& store, std::uint64_t deadline_ns) {
  auto task = std::make_shared<std::packaged_task<Findings()>>(
      [store, deadline_ns] { return examine_place(store, deadline_ns); });
  auto findings = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  return findings;
}

void say_finding(const Shell& shell, const Finding& finding) {
  const char* const colours[] = {"\x1b[32m", "\x1b[33m", "\x1b[31m"};
  const bool colourful = shell.colours();
  const auto place = static_cast<std::size_t>(finding.health);
  shell.say(fmt::format("{}{:<4}{}  {:<14} {}", colourful ? colours[place] : "",
                        name_of(finding.health), colourful ? "\x1b[0m" : "", finding.name,
                        finding.found));
  if (!finding.fix.empty()) shell.say(fmt::format("      {:<14} -> {}", "", finding.fix));
}

struct Report {
  std::string store;
  Findings place;
  Findings options;
  Findings rest;

  Exit exit() const {
    if (any_fails(place)) return Exit::io;
    return any_fails(options) ? Exit::usage : Exit::ok;
  }
};

void print(Shell& shell, const Report& report) {
  auto checks = nlohmann::json::array();
  for (const Findings* findings : {&report.place, &report.rest, &report.options})
    for (const Finding& finding : *findings) {
      say_finding(shell, finding);
      checks.push_back(
          {{"name", finding.name},
           {"health", name_of(finding.health)},
           {"found", finding.found},
           {"fix", finding.fix.empty() ? nlohmann::json() : nlohmann::json(finding.fix)}});
    }
  const bool usable = report.exit() == Exit::ok;
  shell.say(usable ? "usable" : "not usable: see the lines that fail");
  shell.answer({{"schema", "belay/doctor/1"},
                {"store", report.store},
                {"usable", usable},
                {"checks", checks}});
}

Exit run_doctor(Shell& shell) {
  const auto store = only_one(shell.stores());
  if (!store) return shell.fail(store.error());
  const Interrupts interrupts;  // what was made for the look goes before a signal takes effect
  const std::uint64_t deadline = os::system_clock().now_ns() + kPatienceNs;
  StatusLine status(shell.draws());
  status.show("trying the store's directory and MPI ...");
  Report report{.store = *store, .place = {}, .options = {}, .rest = {}};
  auto place = start_examining(report.store, deadline);
  report.rest = examine_machine();
  for (const Finding& finding : examine_mpi(deadline)) report.rest.push_back(finding);
  report.options = examine_options();
  const std::uint64_t now = os::system_clock().now_ns();
  const bool answered =
      place.wait_for(std::chrono::nanoseconds(deadline > now ? deadline - now : 0) +
                     std::chrono::seconds(1)) == std::future_status::ready;
  report.place = answered
                     ? place.get()
                     : Findings{{"store", Health::fail, report.store + " does not answer",
                                 "its file system hangs or is very slow: look at the mount, or "
                                 "set BELAY_STORE to a directory elsewhere"}};
  status.clear();
  print(shell, report);
  if (!answered) {
    // The thread is still inside the file system, and nothing that it uses may go before it.
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(Exit::io));
  }
  return report.exit();
}

}  // namespace

void add_doctor(CLI::App& tool, Shell& shell) {
  shell.add(tool, "doctor",
            "Tell whether this place is usable for checkpoints, and what to do if not",
            {"belay doctor", "belay doctor --store /local/scratch/store",
             "belay doctor --json | jq '.checks[] | select(.health != \"ok\")'"},
            [&shell] { return run_doctor(shell); });
}

}  // namespace belay::tool
