// SPDX-License-Identifier: Apache-2.0
// CG: solves A x = b by conjugate gradients, as HPCCG does. A couples each cell of a box with its
// 26 neighbours: 27 on the diagonal, -1 elsewhere, kept as a sparse matrix in rows. b is such that
// x is one everywhere. Each rank has a cube of cells and a layer of its neighbours' cells around
// it. For a given number of ranks the result is the same bit for bit, however often the program was
// killed and started again.
#include "job.hpp"
#include "picture.hpp"

#include <array>
#include <cmath>

namespace {

constexpr double kTolerance = 1e-12;  ///< of the residual, relative to b

struct Job : job::Settings {
  long size = 32;
};

/// The ranks as a box of cubes, and this rank's place in it. Axis 0 is the slowest in memory.
struct Box {
  MPI_Comm comm = MPI_COMM_NULL;
  std::array<int, 3> cubes = {};
  std::array<int, 3> place = {};
  long size = 0;  ///< cells along a cube's edge

  long rows() const { return size * size * size; }
  long width() const { return size + 2; }
  long padded_cells() const { return width() * width() * width(); }
  /// Of a cell in the padded cube; the cube's own cells begin at 1.
  std::size_t padded(long i, long j, long k) const {
    return static_cast<std::size_t>((i * width() + j) * width() + k);
  }
  /// Is the cell, in the numbers of the padded cube, inside the whole box along this axis?
  bool inside(std::size_t axis, long i) const {
    return (i >= 1 || place[axis] > 0) && (i <= size || place[axis] + 1 < cubes[axis]);
  }
};

/// Row i has the entries [starts[i], starts[i + 1]); columns are cells of the padded cube.
struct Matrix {
  std::vector<std::int64_t> starts;
  std::vector<std::int32_t> columns;
  std::vector<double> values;
};

/// What an iteration needs from the last one.
struct State {
  long step = 0;
  double residual = 0;  ///< squared
  std::vector<double> x, r, p;
};

Box make_box(const Job& job) {
  Box box;
  box.size = job.size;
  const std::array<int, 3> periodic = {};
  MPI_Dims_create(job::ranks(), 3, box.cubes.data());
  MPI_Cart_create(job::world(), 3, box.cubes.data(), periodic.data(), 0, &box.comm);
  MPI_Cart_coords(box.comm, job::rank(), 3, box.place.data());
  return box;
}

template <class Visit>
void for_each_cell(const Box& box, Visit visit) {
  for (long i = 1; i <= box.size; ++i)
    for (long j = 1; j <= box.size; ++j)
      for (long k = 1; k <= box.size; ++k) visit(i, j, k);
}

Matrix assemble(const Box& box) {
  Matrix matrix;
  matrix.starts.push_back(0);
  matrix.columns.reserve(static_cast<std::size_t>(27 * box.rows()));
  matrix.values.reserve(static_cast<std::size_t>(27 * box.rows()));
  for_each_cell(box, [&](long i, long j, long k) {
    for (long di = i - 1; di <= i + 1; ++di)
      for (long dj = j - 1; dj <= j + 1; ++dj)
        for (long dk = k - 1; dk <= k + 1; ++dk) {
          if (!box.inside(0, di) || !box.inside(1, dj) || !box.inside(2, dk)) continue;
          matrix.columns.push_back(static_cast<std::int32_t>(box.padded(di, dj, dk)));
          matrix.values.push_back(di == i && dj == j && dk == k ? 27.0 : -1.0);
        }
    matrix.starts.push_back(static_cast<std::int64_t>(matrix.values.size()));
  });
  return matrix;
}

/// b = A * 1: the sum of each row, whose terms are small whole numbers.
std::vector<double> right_hand_side(const Matrix& matrix) {
  std::vector<double> b;
  for (std::size_t row = 0; row + 1 < matrix.starts.size(); ++row)
    b.push_back(28.0 - static_cast<double>(matrix.starts[row + 1] - matrix.starts[row]));
  return b;
}

/// Fills the layer around the cube, axis after axis, so that edges and corners come along.
void exchange_layers(const Box& box, std::vector<double>& padded) {
  const int width = static_cast<int>(box.width());
  for (int axis = 0; axis < 3; ++axis) {
    const auto slab_at = [&](long index) {
      std::array<int, 3> whole = {width, width, width}, slab = whole, start = {};
      slab[static_cast<std::size_t>(axis)] = 1;
      start[static_cast<std::size_t>(axis)] = static_cast<int>(index);
      MPI_Datatype type;
      MPI_Type_create_subarray(3, whole.data(), slab.data(), start.data(), MPI_ORDER_C, MPI_DOUBLE,
                               &type);
      MPI_Type_commit(&type);
      return type;
    };
    std::array<MPI_Datatype, 4> slabs = {slab_at(0), slab_at(1), slab_at(box.size),
                                         slab_at(box.size + 1)};
    int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
    MPI_Cart_shift(box.comm, axis, 1, &before, &after);
    MPI_Sendrecv(padded.data(), 1, slabs[1], before, 0, padded.data(), 1, slabs[3], after, 0,
                 box.comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(padded.data(), 1, slabs[2], after, 1, padded.data(), 1, slabs[0], before, 1,
                 box.comm, MPI_STATUS_IGNORE);
    for (MPI_Datatype& type : slabs) MPI_Type_free(&type);
  }
}

std::vector<double> multiply(const Box& box, const Matrix& matrix, const std::vector<double>& v) {
  std::vector<double> padded(static_cast<std::size_t>(box.padded_cells()));
  std::size_t cell = 0;
  for_each_cell(box, [&](long i, long j, long k) { padded[box.padded(i, j, k)] = v[cell++]; });
  exchange_layers(box, padded);
  std::vector<double> product(v.size());
  for (std::size_t row = 0; row < product.size(); ++row) {
    double sum = 0;
    for (auto entry = static_cast<std::size_t>(matrix.starts[row]);
         entry < static_cast<std::size_t>(matrix.starts[row + 1]); ++entry)
      sum += matrix.values[entry] * padded[static_cast<std::size_t>(matrix.columns[entry])];
    product[row] = sum;
  }
  return product;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return job::sum_over_ranks(sum);
}

void iterate(const Box& box, const Matrix& matrix, State& state) {
  const std::vector<double> ap = multiply(box, matrix, state.p);
  const double alpha = state.residual / dot(state.p, ap);
  for (std::size_t i = 0; i < ap.size(); ++i) {
    state.x[i] += alpha * state.p[i];
    state.r[i] -= alpha * ap[i];
  }
  const double residual = dot(state.r, state.r);
  const double beta = residual / state.residual;
  for (std::size_t i = 0; i < ap.size(); ++i) state.p[i] = state.r[i] + beta * state.p[i];
  state.residual = residual;
}

State first_guess(const std::vector<double>& b) {
  return {0, dot(b, b), std::vector<double>(b.size(), 0.0), b, b};
}

void solve(const Job& job, const Box& box, const Matrix& matrix, State& state,
           belay::Session& session) {
  const std::vector<double> b = right_hand_side(matrix);
  const double goal = kTolerance * kTolerance * dot(b, b);
  for (; state.step < job.steps && state.residual > goal; ++state.step) {
    if (session.due()) session.checkpoint();  // belay
    iterate(box, matrix, state);
    job::keep_pace(job);
  }
  job::say("ended at step %ld, residual %.3g of b", state.step,
           std::sqrt(state.residual / dot(b, b)));
}

/// The residual that the iteration keeps is that of x, and x is as close to one as it says: since
/// the diagonal outweighs the rest of each row by one at least, no entry of x is farther from one
/// than the largest of the residual.
int check(const Box& box, const Matrix& matrix, const State& state) {
  const std::vector<double> b = right_hand_side(matrix);
  const std::vector<double> ax = multiply(box, matrix, state.x);
  std::vector<double> rest(b.size());
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    rest[i] = b[i] - ax[i];
    largest = std::max(largest, std::abs(rest[i]));
    error = std::max(error, std::abs(state.x[i] - 1));
  }
  const double norm = std::sqrt(dot(b, b));
  const double kept = std::sqrt(state.residual) / norm;
  largest = job::max_over_ranks(largest);
  error = job::max_over_ranks(error);
  job::Verdict verdict;
  verdict.demand("residual of x less the one kept, of b", std::sqrt(dot(rest, rest)) / norm - kept,
                 1e-13);
  verdict.demand("largest error of x", error, largest + 1e-14);
  if (kept <= kTolerance) verdict.demand("largest error of x, converged", error, 1e-9);
  return verdict.exit_code();
}

/// The digits of x that are right, on the lowest layer of the box.
void draw(const Job& job, const Box& box, const State& state) {
  const long rows = box.cubes[1] * box.size, cols = box.cubes[2] * box.size;
  picture::Tile tile = {box.place[1] * box.size, 0, box.place[2] * box.size, box.size, {}};
  if (box.place[0] == 0) {
    tile.rows = box.size;
    for (long cell = 0; cell < box.size * box.size; ++cell)
      tile.values.push_back(
          -std::log10(std::abs(state.x[static_cast<std::size_t>(cell)] - 1) + 1e-17));
  }
  picture::write(job.picture, rows, cols, tile);
}

int run(const Job& job) {
  auto session = belay::open(MPI_COMM_WORLD);  // belay
  if (!session) job::stop(session.error());
  if (session->is_head()) return session->serve();
  job::compute_among(belay::comm(*session));
  const Box box = make_box(job);
  Matrix matrix;
  State state;
  session->protect("step", state.step), session->protect("residual", state.residual),
      session->protect("x", state.x), session->protect("r", state.r),
      session->protect("p", state.p), session->protect("starts", matrix.starts),
      session->protect("columns", matrix.columns),
      session->protect("values", matrix.values);  // belay
  if (!session->latest()) matrix = assemble(box), state = first_guess(right_hand_side(matrix));
  job::restore_or_start(*session, state.step);  // belay
  if (state.x.size() != static_cast<std::size_t>(box.rows()))
    job::stop("the checkpoint is of a cube of another size: give the same --size");
  solve(job, box, matrix, state, *session);
  if (const auto closed = session->close(); !closed) job::stop(closed.error());  // belay
  if (!job.picture.empty()) draw(job, box, state);
  job::print_digest({std::as_bytes(std::span(state.x)), std::as_bytes(std::span(state.r)),
                     std::as_bytes(std::span(state.p))});
  return check(box, matrix, state);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Job job;
  job.steps = 500;
  job::parse("27-point conjugate gradients: mpirun -n RANKS cg [options]",
             {{"--size", "cells along the edge of each rank's cube", &job.size, 1, 400}}, job, argc,
             argv);
  const int code = run(job);
  MPI_Finalize();
  return code;
}
