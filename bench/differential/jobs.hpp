// SPDX-License-Identifier: Apache-2.0
// The parts of the benchmark. Each runs in a process, or an mpirun, of its own, so that none
// inherits the memory of another. A job is a JSON object: its kind, where to work (`dir`, which is
// empty and stays the caller's), and how large and how often.
#pragma once

#include "measure/image.hpp"
#include "measure/team.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace belay::bench {

using Json = nlohmann::json;

inline constexpr std::uint64_t kBlockBytes = 16 << 10;

/// {case, bytes (of a rank), repetitions}: dirty 0 to 100 %, both patterns, restores, baselines.
Json run_rows(Team& team, const Json& job);
/// {bytes, share, versions}: many versions in a row.
Json run_series(Team& team, const Json& job);
/// {bytes}: memory that a session takes beyond what it protects.
Json run_memory(Team& team, const Json& job);
/// {sizes, repetitions}: the same share dirty at several sizes.
Json run_sizes(Team& team, const Json& job);
/// {blocks_per_region, repetitions}: the same memory as 1, 100 and 10,000 regions.
Json run_regions(Team& team, const Json& job);
/// {regions, bytes, repetitions}: many regions of a few bytes.
Json run_small(Team& team, const Json& job);
/// {bytes, repetitions}: block sizes 512 B to 32 KiB.
Json run_sweep(Team& team, const Json& job);

/// The one that the job's kind names; writes what rank 0 found to `result`.
void run_job(Team& team, const Json& job, const std::filesystem::path& result);

/// Options of a session with its store in `name` below the job's directory. What they leave open
/// the environment may set.
Options store_options(const Json& job, const std::string& name);

}  // namespace belay::bench
