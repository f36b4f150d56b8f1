// SPDX-License-Identifier: Apache-2.0
// Measurements that need many ranks: the benchmark starts a program of its own under mpirun, hands
// it a job in JSON, and gets one back.
#pragma once

#include "measure/team.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace belay::bench {

/// What starts a program that lies beside this one on so many ranks.
std::vector<std::string> mpirun(int ranks, const std::string& program);

/// The other side is run_rank_job(). None if it failed, which it has said on standard error.
/// `directory` is for the time of the call.
std::optional<nlohmann::json> run_on_ranks(int ranks, const std::string& program,
                                           const nlohmann::json& job,
                                           const std::filesystem::path& directory);

using RankJob = nlohmann::json (*)(Team& team, const nlohmann::json& job);
/// The whole main() of such a program. The result is rank 0's. Only in programs that link MPI.
int run_rank_job(int argc, char** argv, RankJob job);

}  // namespace belay::bench
