// SPDX-License-Identifier: Apache-2.0
// Heat2D: heat spreads from the hot upper edge of a plate until it is in balance. In each step
// every cell becomes the average of its four neighbours. The ranks share the plate by rows and
// exchange the rows at their borders. For a given number of ranks the result is the same bit for
// bit, however often the program was killed and started again.
#include "job.hpp"
#include "picture.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

struct Job : job::Settings {
  long rows = 1024;
  long cols = 1024;
  double tolerance = 1e-3;
  std::string output;
  bool ledger = false;
};

/// One rank's rows. Its field has a border of one cell all around: the edge of the plate, or the
/// neighbour's row.
struct Share {
  int rank = 0;
  int ranks = 1;
  long first_row = 0;
  long rows = 0;
  long cols = 0;

  std::size_t width() const { return static_cast<std::size_t>(cols) + 2; }
  std::size_t cells() const { return (static_cast<std::size_t>(rows) + 2) * width(); }
};

Share share_of(const Job& job) {
  const job::Part part = job::part_of(job.rows, job::ranks(), job::rank());
  return {job::rank(), job::ranks(), part.first, part.count, job.cols};
}

std::vector<double> cold_plate(const Share& share) {
  std::vector<double> field(share.cells(), 0.0);
  if (share.rank == 0) std::fill_n(field.begin(), share.width(), 100.0);
  return field;
}

void exchange_borders(const Share& share, std::vector<double>& field) {
  const int above = share.rank > 0 ? share.rank - 1 : MPI_PROC_NULL;
  const int below = share.rank + 1 < share.ranks ? share.rank + 1 : MPI_PROC_NULL;
  const int count = static_cast<int>(share.width());
  double* const top = field.data();
  double* const bottom = top + (share.cells() - share.width());
  MPI_Sendrecv(top + count, count, MPI_DOUBLE, above, 0, bottom, count, MPI_DOUBLE, below, 0,
               job::world(), MPI_STATUS_IGNORE);
  MPI_Sendrecv(bottom - count, count, MPI_DOUBLE, below, 1, top, count, MPI_DOUBLE, above, 1,
               job::world(), MPI_STATUS_IGNORE);
}

/// One step from `field` to `next`; returns how much all cells together changed.
double average_neighbours(const Share& share, std::vector<double>& field,
                          std::vector<double>& next) {
  exchange_borders(share, field);
  const std::size_t width = share.width();
  double change = 0;
  for (std::size_t row = width; row < share.cells() - width; row += width)
    for (std::size_t cell = row + 1; cell < row + width - 1; ++cell) {
      next[cell] =
          0.25 * (field[cell - width] + field[cell - 1] + field[cell + 1] + field[cell + width]);
      change += std::abs(next[cell] - field[cell]);
    }
  return job::sum_over_ranks(change);
}

void solve(const Job& job, const Share& share, belay::Session& session, long& step,
           std::vector<double>& field) {
  std::vector<double> next = field;
  double change = 0;
  for (bool balanced = false; step < job.steps && !balanced; ++step) {
    // Not after the step: a restart from a plate in balance would go one step too far.
    if (session.due()) session.checkpoint();  // belay
    change = average_neighbours(share, field, next);
    std::swap(field, next);
    balanced = change < job.tolerance;
    job::keep_pace(job);
  }
  job::say("ended at step %ld, last change %.9g", step, change);
}

void check_file(int code, const std::string& path) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> reason = {};
  int length = 0;
  MPI_Error_string(code, reason.data(), &length);
  job::stop("write " + path + ": " + reason.data());
}

void write_field(const std::string& path, const Share& share, const std::vector<double>& field) {
  MPI_Datatype inner;
  MPI_Type_vector(static_cast<int>(share.rows), static_cast<int>(share.cols),
                  static_cast<int>(share.width()), MPI_DOUBLE, &inner);
  MPI_Type_commit(&inner);
  const MPI_Offset offset = MPI_Offset{share.first_row} * share.cols * MPI_Offset{sizeof(double)};
  MPI_File file;
  check_file(MPI_File_open(job::world(), path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                           MPI_INFO_NULL, &file),
             path);
  check_file(MPI_File_set_size(file, 0), path);
  check_file(MPI_File_write_at_all(file, offset, field.data() + share.width() + 1, 1, inner,
                                   MPI_STATUS_IGNORE),
             path);
  check_file(MPI_File_close(&file), path);
  MPI_Type_free(&inner);
}

void print_ledger(const Share& share, belay::Session& session) {
  if (const auto waited = session.wait(); !waited) job::stop(waited.error());
  const belay::Stats stats = session.stats();
  const belay::Ledger& total = stats.total;
  const std::array<const char*, 7> names = {"full checkpoints", "untouched",           "unchanged",
                                            "duplicate here",   "duplicate elsewhere", "written",
                                            "in files"};
  const std::array<std::uint64_t, 7> mine = {total.protected_bytes,
                                             total.untouched_bytes,
                                             total.unchanged_bytes,
                                             total.duplicate_here_bytes,
                                             total.duplicate_elsewhere_bytes,
                                             total.written_bytes,
                                             total.file_bytes};
  std::array<std::uint64_t, 7> sums = {};
  std::uint64_t protected_bytes = 0;
  MPI_Reduce(mine.data(), sums.data(), 7, MPI_UINT64_T, MPI_SUM, 0, job::world());
  MPI_Reduce(&stats.last.protected_bytes, &protected_bytes, 1, MPI_UINT64_T, MPI_SUM, 0,
             job::world());
  if (share.rank != 0) return;
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const double full = sums[0] > 0 ? mib(sums[0]) : 1.0;
  std::printf("\n%llu versions of %.1f MiB protected\n",
              static_cast<unsigned long long>(stats.captured), mib(protected_bytes));
  for (std::size_t i = 0; i < names.size(); ++i)
    std::printf("  %-20s %12.1f MiB  %6.2f %%\n", names[i], mib(sums[i]),
                100 * mib(sums[i]) / full);
}

/// The plate without its border.
picture::Tile tile_of(const Share& share, const std::vector<double>& field) {
  picture::Tile tile = {share.first_row, share.rows, 0, share.cols, {}};
  for (std::size_t row = share.width(); row < share.cells() - share.width(); row += share.width())
    tile.values.insert(tile.values.end(), field.begin() + static_cast<long>(row) + 1,
                       field.begin() + static_cast<long>(row) + 1 + share.cols);
  return tile;
}

/// No cell is hotter than the hottest edge or colder than the coldest, and left mirrors right.
int check(const picture::Tile& tile) {
  double beyond = 0, asymmetry = 0;
  for (std::size_t cell = 0; cell < tile.values.size(); ++cell) {
    const auto cols = static_cast<std::size_t>(tile.cols);
    const double heat = tile.values[cell];
    const double mirrored = tile.values[cell - cell % cols + (cols - 1 - cell % cols)];
    beyond = std::max({beyond, heat - 100, -heat});
    asymmetry = std::max(asymmetry, std::abs(heat - mirrored));
  }
  job::Verdict verdict;
  verdict.demand("hotter or colder than the edges", job::max_over_ranks(beyond), 0);
  verdict.demand("left against right", job::max_over_ranks(asymmetry), 1e-10);
  return verdict.exit_code();
}

int run(const Job& job) {
  if (job.rows < job::ranks()) job::refuse("--rows: must be at least one for each rank");
  auto session = belay::open(MPI_COMM_WORLD);  // belay
  if (!session) job::stop(session.error());
  if (session->is_head()) return session->serve();
  job::compute_among(belay::comm(*session));
  const Share share = share_of(job);
  long step = 0;
  std::vector<double> field = cold_plate(share);
  session->protect("step", step), session->protect("field", field);  // belay
  job::restore_or_start(*session, step);                             // belay
  if (field.size() != share.cells())
    job::stop("the checkpoint is of a plate of another size: give the same --rows and --cols");
  solve(job, share, *session, step, field);
  if (!job.output.empty()) write_field(job.output, share, field);
  const picture::Tile tile = tile_of(share, field);
  if (!job.picture.empty()) picture::write(job.picture, job.rows, job.cols, tile);
  job::print_digest({std::as_bytes(std::span(tile.values))});
  if (job.ledger) print_ledger(share, *session);
  if (const auto closed = session->close(); !closed) job::stop(closed.error());  // belay
  return check(tile);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Job job;
  job.steps = 1000;
  const std::vector<job::Option> options = {
      {"--rows", "rows of the plate", &job.rows, 1, INT_MAX - 2L},
      {"--cols", "columns of the plate", &job.cols, 1, INT_MAX - 2L},
      {"--tolerance", "stop when all cells together change by less than this in a step",
       &job.tolerance},
      {"--output", "write the final plate, row by row, as raw doubles", &job.output},
      {"--ledger", "show what the checkpoints wrote, and what full ones would have written",
       &job.ledger}};
  job::parse("Heat spreads over a plate: mpirun -n RANKS heat2d [options]", options, job, argc,
             argv);
  const int code = run(job);
  MPI_Finalize();
  return code;
}
