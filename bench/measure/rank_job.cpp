// SPDX-License-Identifier: Apache-2.0
#include "measure/rank_job.hpp"

#include "measure/process.hpp"

#include <fstream>

namespace belay::bench {
namespace fs = std::filesystem;

std::vector<std::string> mpirun(int ranks, const std::string& program) {
  return {"mpirun", "-n", std::to_string(ranks), (this_program().parent_path() / program).string()};
}

std::optional<nlohmann::json> run_on_ranks(int ranks, const std::string& program,
                                           const nlohmann::json& job, const fs::path& directory) {
  const Workplace workplace(directory);
  const fs::path result = workplace.path() / "result.json";
  std::vector<std::string> command = mpirun(ranks, program);
  command.insert(command.end(), {"--job", job.dump(), "--result", result.string()});
  if (!run_program(command)) return std::nullopt;
  return nlohmann::json::parse(std::ifstream(result));
}

}  // namespace belay::bench
