// SPDX-License-Identifier: Apache-2.0
// Hydro: a blast wave in a box of gas, as LULESH has it. Energy set free in one corner drives a
// spherical front through cold gas; ahead of it nothing changes. Finite volumes: sweeps along each
// axis with limited slopes, a half step forward (MUSCL-Hancock) and the HLL flux. All walls
// reflect, so that mass and energy stay what they were. For a given number of ranks the result is
// the same bit for bit, however often the program was killed and started again.
#include "job.hpp"
#include "picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace {

constexpr double kGamma = 1.4;
constexpr double kColdPressure = 1e-6;
constexpr double kQuiet = 1e-7;      ///< gas slower than this rests, as with LULESH's u_cut
constexpr double kCourant = 0.4;     ///< share of a cell that the fastest wave may cross in a step
constexpr double kBlast = 1.0;       ///< energy of the whole sphere; one eighth is in the box
constexpr double kSedov = 0.851072;  ///< of the self-similar solution: energy = kSedov R^5 / t^2
constexpr double kLastRadius = 0.75;
constexpr int kGhosts = 2;

struct Job : job::Settings {
  long size = 48;
};

/// The ranks as a box of boxes. Axis 0 is the slowest in memory.
struct Box {
  MPI_Comm comm = MPI_COMM_NULL;
  std::array<int, 3> boxes = {};
  std::array<int, 3> place = {};
  std::array<job::Part, 3> cells = {};
  double width = 0;  ///< of a cell

  std::size_t count(int axis) const {
    return static_cast<std::size_t>(cells[static_cast<std::size_t>(axis)].count);
  }
  std::size_t total() const { return count(0) * count(1) * count(2); }
  std::size_t stride(int axis) const {
    return axis == 0 ? count(1) * count(2) : axis == 1 ? count(2) : 1;
  }
};

/// Density, momentum along each axis, energy; per volume.
using Gas = std::array<std::vector<double>, 5>;
/// Density, velocity along the sweep and across, pressure.
using Cell = std::array<double, 5>;

struct State {
  long step = 0;
  double time = 0;
  Gas gas;
};

Box make_box(const Job& job) {
  Box box;
  const std::array<int, 3> periodic = {};
  MPI_Dims_create(job::ranks(), 3, box.boxes.data());
  if (job.size < kGhosts * *std::max_element(box.boxes.begin(), box.boxes.end()))
    job::refuse("--size: each rank needs two cells along each axis; use more cells or fewer ranks");
  MPI_Cart_create(MPI_COMM_WORLD, 3, box.boxes.data(), periodic.data(), 0, &box.comm);
  MPI_Cart_coords(box.comm, job::rank(), 3, box.place.data());
  for (std::size_t axis = 0; axis < 3; ++axis)
    box.cells[axis] = job::part_of(job.size, box.boxes[axis], box.place[axis]);
  box.width = 1.0 / static_cast<double>(job.size);
  return box;
}

/// Cold gas at rest, and the blast's energy in the cells next to the corner.
Gas cold_gas(const Box& box) {
  const auto is_hot = [](long i, long j, long k) { return i * i + j * j + k * k <= 4; };
  double hot_cells = 0;
  for (long i = 0; i < 27; ++i) hot_cells += is_hot(i / 9, i / 3 % 3, i % 3) ? 1 : 0;
  const double heat = kBlast / 8 / (hot_cells * std::pow(box.width, 3));
  Gas gas;
  for (auto& variable : gas) variable.assign(box.total(), 0.0);
  std::fill(gas[0].begin(), gas[0].end(), 1.0);
  std::size_t cell = 0;
  for (long i = 0; i < box.cells[0].count; ++i)
    for (long j = 0; j < box.cells[1].count; ++j)
      for (long k = 0; k < box.cells[2].count; ++k)
        gas[4][cell++] =
            kColdPressure / (kGamma - 1) +
            (is_hot(box.cells[0].first + i, box.cells[1].first + j, box.cells[2].first + k) ? heat
                                                                                            : 0);
  return gas;
}

double pressure_of(const Gas& gas, std::size_t cell) {
  double momentum = 0;
  for (std::size_t i = 1; i <= 3; ++i) momentum += gas[i][cell] * gas[i][cell];
  return std::max(1e-12, (kGamma - 1) * (gas[4][cell] - 0.5 * momentum / gas[0][cell]));
}

/// Two layers of cells at either side, as the neighbours along an axis have them.
struct Ghosts {
  int before = MPI_PROC_NULL;
  int after = MPI_PROC_NULL;
  std::vector<double> low, high;  ///< by pencil, layer and variable
};

/// The pencils along an axis: calls visit(number, first cell).
template <class Visit>
void for_each_pencil(const Box& box, int axis, Visit visit) {
  const int outer = axis == 0 ? 1 : 0, inner = axis == 2 ? 1 : 2;
  std::size_t number = 0;
  for (std::size_t i = 0; i < box.count(outer); ++i)
    for (std::size_t j = 0; j < box.count(inner); ++j)
      visit(number++, i * box.stride(outer) + j * box.stride(inner));
}

Ghosts exchange_ghosts(const Box& box, const Gas& gas, int axis) {
  Ghosts ghosts;
  MPI_Cart_shift(box.comm, axis, 1, &ghosts.before, &ghosts.after);
  std::vector<double> first, last;
  for_each_pencil(box, axis, [&](std::size_t, std::size_t start) {
    for (std::size_t layer = 0; layer < kGhosts; ++layer)
      for (const auto& variable : gas) {
        first.push_back(variable[start + layer * box.stride(axis)]);
        last.push_back(variable[start + (box.count(axis) - kGhosts + layer) * box.stride(axis)]);
      }
  });
  ghosts.low.resize(first.size());
  ghosts.high.resize(first.size());
  const int count = static_cast<int>(first.size());
  MPI_Sendrecv(first.data(), count, MPI_DOUBLE, ghosts.before, 0, ghosts.high.data(), count,
               MPI_DOUBLE, ghosts.after, 0, box.comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(last.data(), count, MPI_DOUBLE, ghosts.after, 1, ghosts.low.data(), count,
               MPI_DOUBLE, ghosts.before, 1, box.comm, MPI_STATUS_IGNORE);
  return ghosts;
}

/// `state` has density, momenta and energy; `axis` becomes the first of the velocities.
Cell primitive(const std::array<double, 5>& state, int axis) {
  const auto along = static_cast<std::size_t>(1 + axis);
  const auto across = static_cast<std::size_t>(1 + (axis + 1) % 3);
  const auto aside = static_cast<std::size_t>(1 + (axis + 2) % 3);
  const double density = state[0];
  const double kinetic =
      0.5 * (state[1] * state[1] + state[2] * state[2] + state[3] * state[3]) / density;
  return {density, state[along] / density, state[across] / density, state[aside] / density,
          std::max(1e-12, (kGamma - 1) * (state[4] - kinetic))};
}

/// One pencil with its ghosts, as primitive variables.
void load_pencil(const Box& box, const Gas& gas, const Ghosts& ghosts, int axis, std::size_t number,
                 std::size_t start, std::vector<Cell>& pencil) {
  const std::size_t count = box.count(axis);
  pencil.resize(count + 2 * kGhosts);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t cell = start + i * box.stride(axis);
    pencil[kGhosts + i] =
        primitive({gas[0][cell], gas[1][cell], gas[2][cell], gas[3][cell], gas[4][cell]}, axis);
  }
  const auto fill = [&](const std::vector<double>& layers, bool wall, std::size_t layer,
                        std::size_t ghost, std::size_t mirror) {
    if (wall) {
      pencil[ghost] = pencil[mirror];
      pencil[ghost][1] = -pencil[mirror][1];
    } else {
      const double* from = layers.data() + (number * kGhosts + layer) * 5;
      pencil[ghost] = primitive({from[0], from[1], from[2], from[3], from[4]}, axis);
    }
  };
  for (std::size_t layer = 0; layer < kGhosts; ++layer) {
    fill(ghosts.low, ghosts.before == MPI_PROC_NULL, layer, layer, 2 * kGhosts - 1 - layer);
    fill(ghosts.high, ghosts.after == MPI_PROC_NULL, layer, kGhosts + count + layer,
         kGhosts + count - 1 - layer);
  }
}

/// What is at a cell's two faces after half a step.
struct Edges {
  Cell left, right;
};

Edges edges_of(const Cell& before, const Cell& here, const Cell& after, double half_step) {
  Cell slope = {};
  for (std::size_t i = 0; i < 5; ++i) {
    const double a = here[i] - before[i], b = after[i] - here[i];
    slope[i] = a * b <= 0 ? 0 : std::abs(a) < std::abs(b) ? a : b;
  }
  const double speed = here[1];
  const Cell rate = {speed * slope[0] + here[0] * slope[1], speed * slope[1] + slope[4] / here[0],
                     speed * slope[2], speed * slope[3],
                     speed * slope[4] + kGamma * here[4] * slope[1]};
  Edges edges;
  for (std::size_t i = 0; i < 5; ++i) {
    edges.left[i] = here[i] - 0.5 * slope[i] - half_step * rate[i];
    edges.right[i] = here[i] + 0.5 * slope[i] - half_step * rate[i];
  }
  const bool sound = std::min({edges.left[0], edges.right[0], edges.left[4], edges.right[4]}) > 0;
  return sound ? edges : Edges{here, here};
}

/// HLL: of density, momentum along, across, aside, and energy.
Cell flux_between(const Cell& left, const Cell& right) {
  // Without this, sound too faint to matter would run ahead of the front and change every cell.
  if (std::abs(left[1]) < kQuiet && std::abs(right[1]) < kQuiet)
    return {0, 0.5 * (left[4] + right[4]), 0, 0, 0};
  const double sound_left = std::sqrt(kGamma * left[4] / left[0]);
  const double sound_right = std::sqrt(kGamma * right[4] / right[0]);
  const double slow = std::min({left[1] - sound_left, right[1] - sound_right, 0.0});
  const double fast = std::max({left[1] + sound_left, right[1] + sound_right, 0.0});
  const auto conserved = [](const Cell& c) {
    const double square = c[1] * c[1] + c[2] * c[2] + c[3] * c[3];
    return Cell{c[0], c[0] * c[1], c[0] * c[2], c[0] * c[3],
                c[4] / (kGamma - 1) + 0.5 * c[0] * square};
  };
  const Cell u = conserved(left), v = conserved(right);
  Cell flux = {};
  for (std::size_t i = 0; i < 5; ++i) {
    const double from_left = u[i] * left[1] + (i == 1 ? left[4] : i == 4 ? left[4] * left[1] : 0);
    const double from_right = v[i] * right[1] + (i == 1   ? right[4]
                                                 : i == 4 ? right[4] * right[1]
                                                          : 0);
    flux[i] = (fast * from_left - slow * from_right + fast * slow * (v[i] - u[i])) / (fast - slow);
  }
  return flux;
}

void sweep(const Box& box, Gas& gas, int axis, double step_per_width) {
  const Ghosts ghosts = exchange_ghosts(box, gas, axis);
  const std::size_t count = box.count(axis);
  const std::array<std::size_t, 5> variable = {0, static_cast<std::size_t>(1 + axis),
                                               static_cast<std::size_t>(1 + (axis + 1) % 3),
                                               static_cast<std::size_t>(1 + (axis + 2) % 3), 4};
  std::vector<Cell> pencil;
  std::vector<Edges> edges(count + 2);
  for_each_pencil(box, axis, [&](std::size_t number, std::size_t start) {
    load_pencil(box, gas, ghosts, axis, number, start, pencil);
    for (std::size_t i = 0; i < count + 2; ++i)
      edges[i] = edges_of(pencil[i], pencil[i + 1], pencil[i + 2], 0.5 * step_per_width);
    Cell in = flux_between(edges[0].right, edges[1].left);
    for (std::size_t i = 0; i < count; ++i) {
      const Cell out = flux_between(edges[i + 1].right, edges[i + 2].left);
      for (std::size_t j = 0; j < 5; ++j)
        gas[variable[j]][start + i * box.stride(axis)] += step_per_width * (in[j] - out[j]);
      in = out;
    }
  });
}

double fastest_wave(const Gas& gas) {
  double fastest = 0;
  for (std::size_t cell = 0; cell < gas[0].size(); ++cell) {
    const double speed =
        std::max({std::abs(gas[1][cell]), std::abs(gas[2][cell]), std::abs(gas[3][cell])});
    fastest = std::max(
        fastest, speed / gas[0][cell] + std::sqrt(kGamma * pressure_of(gas, cell) / gas[0][cell]));
  }
  return job::max_over_ranks(fastest);
}

void advance(const Box& box, State& state) {
  const double step = kCourant * box.width / fastest_wave(state.gas);
  for (int i = 0; i < 3; ++i)
    sweep(box, state.gas, state.step % 2 == 0 ? i : 2 - i, step / box.width);
  state.time += step;
}

double radius_at(double time) { return std::pow(kBlast * time * time / kSedov, 0.2); }

void explode(const Job& job, const Box& box, State& state, belay::Session& session) {
  for (; state.step < job.steps && radius_at(state.time) < kLastRadius; ++state.step) {
    if (session.due()) session.checkpoint();  // belay
    advance(box, state);
    job::keep_pace(job);
  }
  job::say("ended at step %ld, time %.6f", state.step, state.time);
}

double total_of(const Box& box, const std::vector<double>& variable) {
  double sum = 0;
  for (const double value : variable) sum += value;
  return job::sum_over_ranks(sum) * std::pow(box.width, 3);
}

/// Of the ball whose eighth is filled by cells with more than half the pressure in the corner. All
/// gas behind a strong front has that and none ahead of it.
double front_radius(const Box& box, const Gas& gas) {
  double corner = pressure_of(gas, 0);
  MPI_Bcast(&corner, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  double cells = 0;
  for (std::size_t cell = 0; cell < gas[0].size(); ++cell)
    cells += pressure_of(gas, cell) > 0.5 * corner ? 1 : 0;
  return std::cbrt(6 / M_PI * job::sum_over_ranks(cells)) * box.width;
}

int check(const Box& box, const State& state) {
  job::Verdict verdict;
  verdict.demand("mass gained", total_of(box, state.gas[0]) - 1, 1e-10);
  verdict.demand("energy gained, of the blast",
                 (total_of(box, state.gas[4]) - kColdPressure / (kGamma - 1)) * 8 / kBlast - 1,
                 1e-10);
  const double radius = radius_at(state.time);
  if (radius < 8 * box.width)
    job::say("the front is at %.3f, too close to its source to be checked", radius);
  else
    verdict.demand("front against Sedov's, in cells",
                   (front_radius(box, state.gas) - radius) / box.width, 2);
  return verdict.exit_code();
}

/// The density of the lowest layer.
void draw(const Job& job, const Box& box, const State& state) {
  picture::Tile tile = {box.cells[1].first, 0, box.cells[2].first, box.cells[2].count, {}};
  if (box.place[0] == 0) {
    tile.rows = box.cells[1].count;
    tile.values.assign(state.gas[0].begin(), state.gas[0].begin() + tile.rows * tile.cols);
  }
  picture::write(job.picture, job.size, job.size, tile);
}

int run(const Job& job) {
  const Box box = make_box(job);
  State state = {0, 0, cold_gas(box)};
  auto session = belay::open(MPI_COMM_WORLD);  // belay
  if (!session) job::stop(session.error());
  session->protect("step", state.step), session->protect("time", state.time),
      session->protect("density", state.gas[0]), session->protect("momentum x", state.gas[1]),
      session->protect("momentum y", state.gas[2]), session->protect("momentum z", state.gas[3]),
      session->protect("energy", state.gas[4]);  // belay
  job::restore_or_start(*session, state.step);   // belay
  if (state.gas[0].size() != box.total())
    job::stop("the checkpoint is of a box of another size: give the same --size");
  explode(job, box, state, *session);
  if (const auto closed = session->close(); !closed) job::stop(closed.error());  // belay
  if (!job.picture.empty()) draw(job, box, state);
  const auto bytes = [&](std::size_t i) { return std::as_bytes(std::span(state.gas[i])); };
  job::print_digest({bytes(0), bytes(1), bytes(2), bytes(3), bytes(4)});
  return check(box, state);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Job job;
  job.steps = 100000;
  job::parse("A blast wave in a box: mpirun -n RANKS hydro [options]",
             {{"--size", "cells along each edge of the box", &job.size, 8, 2000}}, job, argc, argv);
  const int code = run(job);
  MPI_Finalize();
  return code;
}
