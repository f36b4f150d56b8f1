// SPDX-License-Identifier: Apache-2.0
// What `belay doctor` looks at. Nothing here changes anything for longer than the look takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace belay::tool {

enum class Health { ok, warn, fail };

struct Finding {
  std::string name;  ///< of the check, promised to scripts
  Health health = Health::ok;
  std::string found;
  std::string fix = {};  ///< if it is not ok
};

using Findings = std::vector<Finding>;

/// The directory of the store: may files be made there, how fast, and are they safe?
/// Looks at the clock between operations and gives up measuring at `deadline_ns`.
Findings examine_place(const std::string& store, std::uint64_t deadline_ns);
/// Kernel, processors, memory.
Findings examine_machine();
/// BELAY_* variables and the file that BELAY_CONFIG names.
Findings examine_options();
/// mpirun, and the thread level that it grants, asked of a small program until `deadline_ns`.
Findings examine_mpi(std::uint64_t deadline_ns);

}  // namespace belay::tool
