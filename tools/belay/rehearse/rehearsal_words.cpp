// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/rehearse/rehearsal_words.hpp"

#include <fmt/format.h>

namespace belay::tool {

std::string question_about(const std::string& names, Difference::Kind kind) {
  switch (kind) {
    case Difference::Kind::only_in_first:
    case Difference::Kind::only_in_second:
      return fmt::format("Is {} protected in the same way on a first start and on a restart?",
                         names);
    case Difference::Kind::size:
      return fmt::format(
          "Is everything that {} is computed from protected? If it has functions of its own to "
          "save and load: does load bring back all that save has written?",
          names);
    case Difference::Kind::type:
    case Difference::Kind::content:
      break;
  }
  return fmt::format(
      "Is everything that {} is computed from protected? e.g. a random generator's state, a time, "
      "a counter",
      names);
}

std::string why_no_version(const RehearsalRun& run, const VersionWatch& watch,
                           const std::string& time_allowed) {
  const std::string when = run.end == RehearsalRun::End::timeout
                               ? fmt::format("took no version within {}", time_allowed)
                               : std::string("ended by itself without a version");
  const auto [votes, ranks] = watch.incomplete();
  if (votes > 0)
    return fmt::format(
        "the program {} that is whole here: only {} of {} ranks were seen; if they run on "
        "several "
        "nodes, name a --scratch directory that all of them share",
        when, votes, ranks);
  if (watch.highest_run() == 0)
    return fmt::format(
        "the program {}, and never opened the store that BELAY_STORE names; does it call "
        "belay::open(), and do its ranks get the environment (mpirun -x BELAY_STORE ... on "
        "several nodes)? A `store` set in code wins over BELAY_STORE: leave it unset",
        when);
  return fmt::format(
      "the program {}, though it opened the store; does it reach checkpoint()? An `interval` set "
      "in code wins over BELAY_INTERVAL: leave it unset. If a step takes longer, raise --timeout",
      when);
}

}  // namespace belay::tool
