// SPDX-License-Identifier: Apache-2.0
// Somebody's solver, which knows nothing of Belay: Poisson's equation on a square by successive
// over-relaxation. belay.patch beside it adds the five lines.
#include <array>
#include <cmath>
#include <cstdio>

namespace {

constexpr int kCells = 128;
constexpr int kSweeps = 20000;
constexpr double kRelaxation = 1.2;

struct State {
  int sweep = 0;
  double change = 0;
  std::array<std::array<double, kCells + 2>, kCells + 2> field{};
};

double source(int row, int column) {
  const double x = double(column) / kCells;
  const double y = double(row) / kCells;
  return (x - 0.3) * (y * y - 0.5) / (kCells * kCells);
}

void sweep(State& state) {
  state.change = 0;
  for (int row = 1; row <= kCells; ++row)
    for (int column = 1; column <= kCells; ++column) {
      double& cell = state.field[row][column];
      const double around = state.field[row - 1][column] + state.field[row + 1][column] +
                            state.field[row][column - 1] + state.field[row][column + 1];
      const double step = kRelaxation * (0.25 * (around + source(row, column)) - cell);
      cell += step;
      state.change = std::fmax(state.change, std::fabs(step));
    }
  ++state.sweep;
}

int fail(const char* why) {
  std::fprintf(stderr, "solver: %s\n", why);
  return 1;
}

}  // namespace

int main() {
  static State state;
  std::printf("starting after sweep %d\n", state.sweep);
  while (state.sweep < kSweeps) {
    sweep(state);
    if (state.sweep % 100 == 0) std::printf("sweep %d\n", state.sweep), std::fflush(stdout);
  }
  double sum = 0;
  for (const auto& row : state.field)
    for (const double cell : row) sum += cell * cell;
  if (!std::isfinite(sum)) return fail("the solution diverged");
  std::printf("change %.17g, norm %.17g\n", state.change, std::sqrt(sum));
  return 0;
}
