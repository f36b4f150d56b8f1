// SPDX-License-Identifier: Apache-2.0
// PIC: electrons oscillate in a square of plasma that repeats itself in both directions. In each
// step they leave their charge on a mesh, the potential is found from it by Hartley transforms, and
// its field pushes them on. The ranks share the square by rows; electrons move between them, so
// that each has more or fewer at every step. For a given number of ranks the result is the same bit
// for bit, however often the program was killed and started again.
//
// Units: a cell, the electron's charge and mass, and the plasma frequency are one.
#include "job.hpp"
#include "picture.hpp"
#include "poisson.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace {

constexpr double kStep = 0.1;     ///< a plasma period is 2 pi
constexpr double kThermal = 0.5;  ///< speed along each axis
constexpr double kWave = 0.1;     ///< by which share the density waves at the start

struct Job : job::Settings {
  long size = 64;
  long particles = 4;
};

/// One rank's rows of the mesh, and who has those before and after.
struct Strip {
  long size;
  Poisson poisson;
  job::Part rows = {};
  int before = 0;
  int after = 0;
  double particle_charge = 0;  ///< of one with weight one
  double wave_number = 0;      ///< along each axis

  std::size_t width() const { return static_cast<std::size_t>(size); }
  std::size_t cells() const { return width() * static_cast<std::size_t>(rows.count); }
  double low() const { return static_cast<double>(rows.first); }
  double high() const { return static_cast<double>(rows.first + rows.count); }
};

/// A step, seen as a whole.
struct Sample {
  double wave = 0;  ///< how much of the first wave is in the charge
  double energy = 0;
  std::array<double, 2> momentum = {};
};

struct Plasma {
  long step = 0;
  std::array<long, 2> mesh = {};             ///< size and particles, as the job has them
  std::vector<double> x, y, vx, vy, weight;  ///< of electrons
  std::vector<Sample> samples;               ///< the same on all ranks

  std::array<std::vector<double>*, 5> electrons() { return {&x, &y, &vx, &vy, &weight}; }
};

Strip make_strip(const Job& job) {
  const int rank = job::rank(), ranks = job::ranks();
  if (job.size < ranks) job::refuse("--size: each rank needs a row; use more cells or fewer ranks");
  Strip strip = {job.size, Poisson(job.size)};
  strip.rows = job::part_of(job.size, ranks, rank);
  strip.before = (rank + ranks - 1) % ranks;
  strip.after = (rank + 1) % ranks;
  strip.particle_charge = 1.0 / static_cast<double>(job.particles * job.particles);
  strip.wave_number = 2 * M_PI / static_cast<double>(job.size);
  return strip;
}

/// A number in (0, 1) that belongs to `index`: splitmix64.
double random_share(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

/// Electrons on a lattice, with the velocities of a warm gas; their weights make the wave.
Plasma make_plasma(const Job& job, const Strip& strip) {
  Plasma plasma;
  plasma.mesh = {job.size, job.particles};
  const long edge = job.size * job.particles;
  const double pitch = 1.0 / static_cast<double>(job.particles);
  for (long i = strip.rows.first * job.particles;
       i < (strip.rows.first + strip.rows.count) * job.particles; ++i)
    for (long j = 0; j < edge; ++j) {
      const double x = (static_cast<double>(j) + 0.5) * pitch;
      const double y = (static_cast<double>(i) + 0.5) * pitch;
      const auto index = static_cast<std::uint64_t>(2 * (i * edge + j));
      const double speed = kThermal * std::sqrt(-2 * std::log(random_share(index)));
      const double angle = 2 * M_PI * random_share(index + 1);
      plasma.x.push_back(x);
      plasma.y.push_back(y);
      plasma.vx.push_back(speed * std::cos(angle));
      plasma.vy.push_back(speed * std::sin(angle));
      plasma.weight.push_back(1 + kWave * std::cos(strip.wave_number * x) *
                                      std::cos(strip.wave_number * y));
    }
  return plasma;
}

/// The four mesh points around an electron and its share in each. The upper two may lie in the row
/// after the strip.
struct Stencil {
  std::array<std::size_t, 4> points;
  std::array<double, 4> shares;

  Stencil(const Strip& strip, double x, double y) {
    const auto column = static_cast<std::size_t>(x);
    const auto row = static_cast<std::size_t>(y - strip.low());
    const double right = x - static_cast<double>(column);
    const double up = y - strip.low() - static_cast<double>(row);
    const std::size_t next = column + 1 < strip.width() ? column + 1 : 0;
    points = {row * strip.width() + column, row * strip.width() + next,
              (row + 1) * strip.width() + column, (row + 1) * strip.width() + next};
    shares = {(1 - right) * (1 - up), right * (1 - up), (1 - right) * up, right * up};
  }
};

/// Sends a row to one neighbour while the same comes from the other.
void pass_row(const Strip& strip, const double* row, int to, double* into, int from) {
  MPI_Sendrecv(row, static_cast<int>(strip.size), MPI_DOUBLE, to, 0, into,
               static_cast<int>(strip.size), MPI_DOUBLE, from, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

/// The electrons' density on the mesh.
std::vector<double> deposit(const Strip& strip, const Plasma& plasma) {
  std::vector<double> density(strip.cells() + strip.width(), 0.0), arrived(strip.width());
  for (std::size_t i = 0; i < plasma.x.size(); ++i) {
    const Stencil stencil(strip, plasma.x[i], plasma.y[i]);
    for (std::size_t k = 0; k < 4; ++k)
      density[stencil.points[k]] += strip.particle_charge * plasma.weight[i] * stencil.shares[k];
  }
  pass_row(strip, density.data() + strip.cells(), strip.after, arrived.data(), strip.before);
  density.resize(strip.cells());
  for (std::size_t i = 0; i < strip.width(); ++i) density[i] += arrived[i];
  return density;
}

/// The sum over all ranks of what each has in `field`.
double total_of(const std::vector<double>& field) {
  double sum = 0;
  for (const double value : field) sum += value;
  return job::sum_over_ranks(sum);
}

/// The force on an electron at the mesh points, also those of the row after the strip.
std::array<std::vector<double>, 2> force_of(const Strip& strip,
                                            const std::vector<double>& potential) {
  const std::size_t width = strip.width();
  std::vector<double> below(width), above(width);
  pass_row(strip, potential.data() + strip.cells() - width, strip.after, below.data(),
           strip.before);
  pass_row(strip, potential.data(), strip.before, above.data(), strip.after);
  std::array<std::vector<double>, 2> force;
  for (auto& along : force) along.resize(strip.cells() + width);
  for (std::size_t cell = 0; cell < strip.cells(); ++cell) {
    const std::size_t column = cell % width, row = cell - column;
    const double left = potential[row + (column + width - 1) % width];
    const double right = potential[row + (column + 1) % width];
    const double down = cell < width ? below[column] : potential[cell - width];
    const double up = cell + width < strip.cells() ? potential[cell + width] : above[column];
    force[0][cell] = 0.5 * (right - left);
    force[1][cell] = 0.5 * (up - down);
  }
  for (auto& along : force)
    pass_row(strip, along.data(), strip.before, along.data() + strip.cells(), strip.after);
  return force;
}

/// Pushes all electrons; returns their kinetic energy in the middle of it, and their momentum.
std::array<double, 3> push(const Strip& strip, const std::vector<double>& potential,
                           Plasma& plasma) {
  const auto force = force_of(strip, potential);
  std::array<double, 3> sums = {};
  for (std::size_t i = 0; i < plasma.x.size(); ++i) {
    const Stencil stencil(strip, plasma.x[i], plasma.y[i]);
    double fx = 0, fy = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      fx += stencil.shares[k] * force[0][stencil.points[k]];
      fy += stencil.shares[k] * force[1][stencil.points[k]];
    }
    const double vx = plasma.vx[i] + kStep * fx, vy = plasma.vy[i] + kStep * fy;
    const double mass = strip.particle_charge * plasma.weight[i];
    sums[0] += 0.5 * mass * (vx * plasma.vx[i] + vy * plasma.vy[i]);
    sums[1] += mass * vx;
    sums[2] += mass * vy;
    plasma.vx[i] = vx;
    plasma.vy[i] = vy;
    plasma.x[i] += kStep * vx;
    plasma.y[i] += kStep * vy;
  }
  return sums;
}

/// Back into [0, size), but never onto the other side: what just left below must not round up to
/// it.
double wrapped(double place, double size) {
  if (place < 0) return std::min(place + size, std::nextafter(size, 0.0));
  return place >= size ? place - size : place;
}

std::vector<double> pass_electrons(const std::vector<double>& leaving, int to, int from) {
  const int leave = static_cast<int>(leaving.size());
  int arrive = 0;
  MPI_Sendrecv(&leave, 1, MPI_INT, to, 1, &arrive, 1, MPI_INT, from, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  std::vector<double> arriving(static_cast<std::size_t>(arrive));
  MPI_Sendrecv(leaving.data(), leave, MPI_DOUBLE, to, 2, arriving.data(), arrive, MPI_DOUBLE, from,
               2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return arriving;
}

/// Those who come take the places of those who left, so that the others stay where they are: what
/// does not change need not be saved.
void fill_gaps(Plasma& plasma, const std::vector<std::size_t>& gaps,
               const std::vector<double>& arriving) {
  const std::size_t arrivals = arriving.size() / 5;
  for (std::size_t array = 0; array < 5; ++array) {
    std::vector<double>& values = *plasma.electrons()[array];
    for (std::size_t i = 0; i < arrivals; ++i) {
      if (i < gaps.size())
        values[gaps[i]] = arriving[5 * i + array];
      else
        values.push_back(arriving[5 * i + array]);
    }
    for (std::size_t i = gaps.size(); i > arrivals; --i) {
      values[gaps[i - 1]] = values.back();
      values.pop_back();
    }
  }
}

void move_between_ranks(const Strip& strip, Plasma& plasma) {
  const auto size = static_cast<double>(strip.size);
  std::vector<std::size_t> gaps;
  std::vector<double> down, up;
  for (std::size_t i = 0; i < plasma.x.size(); ++i) {
    plasma.x[i] = wrapped(plasma.x[i], size);
    const double y = plasma.y[i];
    if (y >= strip.low() && y < strip.high()) continue;
    plasma.y[i] = wrapped(y, size);
    gaps.push_back(i);
    for (const std::vector<double>* values : plasma.electrons())
      (y < strip.low() ? down : up).push_back((*values)[i]);
  }
  std::vector<double> arriving = pass_electrons(down, strip.before, strip.after);
  const std::vector<double> more = pass_electrons(up, strip.after, strip.before);
  arriving.insert(arriving.end(), more.begin(), more.end());
  fill_gaps(plasma, gaps, arriving);
  for (const double y : plasma.y)
    if (!(y >= strip.low() && y < strip.high()))
      job::stop("an electron flew over a whole rank in one step; use more cells or fewer ranks");
}

/// The charge of ions and electrons on the mesh.
std::vector<double> charge_of(const Strip& strip, const Plasma& plasma) {
  std::vector<double> charge = deposit(strip, plasma);
  for (double& value : charge) value = 1 - value;
  return charge;
}

double wave_of(const Strip& strip, std::vector<double> charge) {
  for (std::size_t cell = 0; cell < charge.size(); ++cell) {
    const long row = strip.rows.first + static_cast<long>(cell / strip.width());
    charge[cell] *= std::cos(strip.wave_number * static_cast<double>(cell % strip.width())) *
                    std::cos(strip.wave_number * static_cast<double>(row));
  }
  return total_of(charge);
}

void advance(const Strip& strip, Plasma& plasma) {
  const std::vector<double> charge = charge_of(strip, plasma);
  const std::vector<double> potential = strip.poisson.potential_of(charge);
  std::vector<double> field_energy = charge;
  for (std::size_t cell = 0; cell < charge.size(); ++cell)
    field_energy[cell] *= 0.5 * potential[cell];
  const std::array<double, 3> sums = push(strip, potential, plasma);
  plasma.samples.push_back({wave_of(strip, charge),
                            total_of(field_energy) + job::sum_over_ranks(sums[0]),
                            {job::sum_over_ranks(sums[1]), job::sum_over_ranks(sums[2])}});
  move_between_ranks(strip, plasma);
}

void oscillate(const Job& job, const Strip& strip, Plasma& plasma, belay::Session& session) {
  for (; plasma.step < job.steps; ++plasma.step) {
    if (session.due()) session.checkpoint();  // belay
    advance(strip, plasma);
    job::keep_pace(job);
  }
}

/// From the first to the last time that the wave went through zero; 0 if it did so once at most.
double measured_frequency(const std::vector<Sample>& samples) {
  std::vector<double> zeros;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const double a = samples[i - 1].wave, b = samples[i].wave;
    if (a * b < 0) zeros.push_back(kStep * (static_cast<double>(i) - b / (b - a)));
  }
  if (zeros.size() < 2) return 0;
  return M_PI * static_cast<double>(zeros.size() - 1) / (zeros.back() - zeros.front());
}

int check(const Job& job, const Strip& strip, const Plasma& plasma) {
  job::Verdict verdict;
  const auto cells = static_cast<double>(job.size * job.size);
  const double electrons = job::sum_over_ranks(static_cast<double>(plasma.x.size()));
  const double ones = total_of(deposit(strip, plasma));
  verdict.demand("electrons gained", electrons - cells / strip.particle_charge, 0);
  verdict.demand("charge gained, of all", ones / cells - 1, 1e-12);
  if (plasma.samples.empty()) return verdict.exit_code();
  const Sample &first = plasma.samples.front(), &last = plasma.samples.back();
  verdict.demand("energy gained, of all", last.energy / first.energy - 1, 0.02);
  for (std::size_t axis = 0; axis < 2; ++axis)
    verdict.demand("momentum gained, of all thermal",
                   (last.momentum[axis] - first.momentum[axis]) / (cells * kThermal), 1e-10);
  const double square = 2 * strip.wave_number * strip.wave_number;
  const double theory = std::sqrt(1 + 3 * square * kThermal * kThermal);
  if (const double frequency = measured_frequency(plasma.samples); frequency > 0)
    verdict.demand("frequency against Bohm and Gross", frequency / theory - 1, 0.03);
  else
    job::say("too few steps to measure the plasma frequency");
  return verdict.exit_code();
}

int run(const Job& job) {
  const Strip strip = make_strip(job);
  Plasma plasma = make_plasma(job, strip);
  auto session = belay::open(MPI_COMM_WORLD);  // belay
  if (!session) job::stop(session.error());
  session->protect("step", plasma.step), session->protect("mesh", plasma.mesh),
      session->protect("x", plasma.x), session->protect("y", plasma.y),
      session->protect("vx", plasma.vx), session->protect("vy", plasma.vy),
      session->protect("weight", plasma.weight),
      session->protect("samples", plasma.samples);  // belay
  job::restore_or_start(*session, plasma.step);     // belay
  if (plasma.mesh != std::array{job.size, job.particles})
    job::stop("the checkpoint is of another plasma: give the same --size and --particles");
  oscillate(job, strip, plasma, *session);
  if (const auto closed = session->close(); !closed) job::stop(closed.error());  // belay
  if (!job.picture.empty())
    picture::write(job.picture, job.size, job.size,
                   {strip.rows.first, strip.rows.count, 0, strip.size,
                    strip.poisson.potential_of(charge_of(strip, plasma))});
  const auto bytes = [](const auto& array) { return std::as_bytes(std::span(array)); };
  job::print_digest({bytes(plasma.x), bytes(plasma.y), bytes(plasma.vx), bytes(plasma.vy),
                     bytes(plasma.weight), bytes(plasma.samples)});
  return check(job, strip, plasma);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Job job;
  job.steps = 200;
  const std::vector<job::Option> options = {
      {"--size", "cells along each edge of the square", &job.size, 16, 2000},
      {"--particles", "electrons along each edge of a cell", &job.particles, 1, 100}};
  job::parse("Plasma oscillations: mpirun -n RANKS pic [options]", options, job, argc, argv);
  const int code = run(job);
  MPI_Finalize();
  return code;
}
