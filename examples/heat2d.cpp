// SPDX-License-Identifier: Apache-2.0
// Heat2D: heat spreads from the hot upper edge of a plate until it is in balance. In each step
// every cell becomes the average of its four neighbours. The ranks share the plate by rows and
// exchange the rows at their borders. For a given number of ranks the result is the same bit for
// bit, however often the program was killed and started again.
#include <belay/mpi.hpp>

#include <getopt.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr const char* kUsage =
    "usage: mpirun -n RANKS heat2d [options]\n"
    "  --rows N       rows of the plate (1024)\n"
    "  --cols N       columns of the plate (1024)\n"
    "  --steps N      stop after so many steps (1000)\n"
    "  --tolerance X  or when all cells together change by less than this in a step (0.001)\n"
    "  --pace MS      sleep so long after each step (0)\n"
    "  --output FILE  write the final plate, row by row, as raw doubles\n"
    "  --ledger       show what the checkpoints wrote, and what full ones would have written\n"
    "BELAY_INTERVAL says how often to checkpoint (\"50 calls\", 10m), BELAY_STORE where.\n";

struct Job {
  long rows = 1024;
  long cols = 1024;
  long steps = 1000;
  double tolerance = 1e-3;
  long pace_ms = 0;
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

[[noreturn]] void stop(const std::string& message) {
  std::fprintf(stderr, "heat2d: %s\n", message.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

/// For what all ranks see alike.
[[noreturn]] void refuse(const std::string& message) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::fprintf(stderr, "heat2d: %s\n", message.c_str());
  MPI_Finalize();
  std::exit(2);
}

[[noreturn]] void stop(const belay::Error& error) { stop(error.message()); }

Share share_of(const Job& job) {
  Share share;
  MPI_Comm_rank(MPI_COMM_WORLD, &share.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &share.ranks);
  const long even = job.rows / share.ranks;
  const long extra = job.rows % share.ranks;
  share.first_row = share.rank * even + std::min<long>(share.rank, extra);
  share.rows = even + (share.rank < extra ? 1 : 0);
  share.cols = job.cols;
  return share;
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
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(bottom - count, count, MPI_DOUBLE, below, 1, top, count, MPI_DOUBLE, above, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/// Sums in the order of ranks: MPI_Allreduce may add in any order, and so round in any way.
double sum_over_ranks(const Share& share, double mine) {
  std::vector<double> all(static_cast<std::size_t>(share.ranks));
  MPI_Allgather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, MPI_COMM_WORLD);
  return std::accumulate(all.begin(), all.end(), 0.0);
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
  return sum_over_ranks(share, change);
}

void restore_or_start(const Share& share, belay::Session& session, const long& step,
                      const std::vector<double>& field) {
  belay::Version version = 0;
  if (session.latest()) {
    const auto restored = session.restore();
    if (!restored) stop(restored.error());
    if (field.size() != share.cells())
      stop("the checkpoint is of a plate of another size: give the same --rows and --cols");
    version = *restored;
  }
  if (share.rank != 0) return;
  if (version != 0)
    std::printf("restored version %llu at step %ld\n", static_cast<unsigned long long>(version),
                step);
  else
    std::printf("starting at step 0\n");
  std::fflush(stdout);
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
    if (job.pace_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(job.pace_ms));
  }
  if (share.rank == 0) std::printf("ended at step %ld, last change %.9g\n", step, change);
}

void check_file(int code, const std::string& path) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> reason = {};
  int length = 0;
  MPI_Error_string(code, reason.data(), &length);
  stop("write " + path + ": " + reason.data());
}

void write_field(const std::string& path, const Share& share, const std::vector<double>& field) {
  MPI_Datatype inner;
  MPI_Type_vector(static_cast<int>(share.rows), static_cast<int>(share.cols),
                  static_cast<int>(share.width()), MPI_DOUBLE, &inner);
  MPI_Type_commit(&inner);
  const MPI_Offset offset = MPI_Offset{share.first_row} * share.cols * MPI_Offset{sizeof(double)};
  MPI_File file;
  check_file(MPI_File_open(MPI_COMM_WORLD, path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
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
  if (const auto waited = session.wait(); !waited) stop(waited.error());
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
  MPI_Reduce(mine.data(), sums.data(), 7, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&stats.last.protected_bytes, &protected_bytes, 1, MPI_UINT64_T, MPI_SUM, 0,
             MPI_COMM_WORLD);
  if (share.rank != 0) return;
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const double full = sums[0] > 0 ? mib(sums[0]) : 1.0;
  std::printf("\n%llu versions of %.1f MiB protected\n",
              static_cast<unsigned long long>(stats.captured), mib(protected_bytes));
  for (std::size_t i = 0; i < names.size(); ++i)
    std::printf("  %-20s %12.1f MiB  %6.2f %%\n", names[i], mib(sums[i]),
                100 * mib(sums[i]) / full);
}

long whole_number(const char* text, long least) {
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || number < least || number > INT_MAX - 2)
    refuse(std::string(text) + ": must be a whole number of at least " + std::to_string(least));
  return number;
}

double real_number(const char* text) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(number >= 0))
    refuse(std::string(text) + ": must be a number of at least 0");
  return number;
}

Job parse_command_line(int argc, char** argv) {
  Job job;
  const option options[] = {
      {"rows", required_argument, nullptr, 'r'},  {"cols", required_argument, nullptr, 'c'},
      {"steps", required_argument, nullptr, 's'}, {"tolerance", required_argument, nullptr, 't'},
      {"pace", required_argument, nullptr, 'p'},  {"output", required_argument, nullptr, 'o'},
      {"ledger", no_argument, nullptr, 'l'},      {nullptr, 0, nullptr, 0}};
  opterr = 0;
  for (int flag; (flag = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    if (flag == 'r')
      job.rows = whole_number(optarg, 1);
    else if (flag == 'c')
      job.cols = whole_number(optarg, 1);
    else if (flag == 's')
      job.steps = whole_number(optarg, 0);
    else if (flag == 't')
      job.tolerance = real_number(optarg);
    else if (flag == 'p')
      job.pace_ms = whole_number(optarg, 0);
    else if (flag == 'o')
      job.output = optarg;
    else if (flag == 'l')
      job.ledger = true;
    else
      refuse(kUsage);
  }
  if (optind < argc) refuse(kUsage);
  return job;
}

void run(const Job& job) {
  const Share share = share_of(job);
  if (job.rows < share.ranks) refuse("--rows: must be at least one for each rank");
  long step = 0;
  std::vector<double> field = cold_plate(share);
  auto session = belay::open(MPI_COMM_WORLD);  // belay
  if (!session) stop(session.error());
  session->protect("step", step), session->protect("field", field);  // belay
  restore_or_start(share, *session, step, field);                    // belay
  solve(job, share, *session, step, field);
  if (!job.output.empty()) write_field(job.output, share, field);
  if (job.ledger) print_ledger(share, *session);
  if (const auto closed = session->close(); !closed) stop(closed.error());  // belay
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  run(parse_command_line(argc, argv));
  MPI_Finalize();
}
