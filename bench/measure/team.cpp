// SPDX-License-Identifier: Apache-2.0
#include "measure/team.hpp"

namespace belay::bench {
namespace {

class SoloTeam final : public Team {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void barrier() override {}
  double max(double value) override { return value; }
  double sum(double value) override { return value; }
  Result<Session> open(Options options) override { return belay::open(std::move(options)); }
};

}  // namespace

std::unique_ptr<Team> make_solo_team() { return std::make_unique<SoloTeam>(); }

}  // namespace belay::bench
