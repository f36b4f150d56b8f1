// SPDX-License-Identifier: Apache-2.0
// Where checkpoints come from: runs of the examples and of LAMMPS, and one field dealt out to
// ranks.
#pragma once

#include "compress/checkpoints.hpp"

#include <functional>
#include <optional>

namespace belay::bench {

/// Runs that need some seconds each. `directory` is for the time of the call.
struct SourceSettings {
  int ranks = 32;
  bool quick = false;
  std::filesystem::path directory;
};

struct Source {
  std::string name;
  /// Early, middle and late moments. None: it failed, which is said on standard error.
  std::function<std::optional<std::vector<Moment>>(const SourceSettings& settings)> make;
};

std::vector<Source> all_sources();

/// LAMMPS is no part of Belay: it may not be installed.
bool has_lammps();
std::optional<std::vector<Moment>> run_lammps(const SourceSettings& settings);

/// One field of waves, its rows dealt out to the ranks in turn, as double and as float: the paper's
/// figure 1(b). Neighbours in the field are in other ranks.
std::vector<Moment> make_strided(int ranks, bool quick);

}  // namespace belay::bench
