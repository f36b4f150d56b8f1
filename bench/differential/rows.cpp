// SPDX-License-Identifier: Apache-2.0
// One version at each share of dirty data, how long it takes to come back, and the baselines.
#include "differential/jobs.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"

#include <optional>

namespace belay::bench {
namespace {

constexpr double kShares[] = {0, 0.03, 0.40, 0.62, 1};
constexpr Pattern kPatterns[] = {Pattern::contiguous, Pattern::scattered};

struct RestoreCost {
  double open_ms = 0;
  double restore_ms = 0;
  double direct_read_ms = 0;  ///< right before: the speed of a disk changes from minute to minute
};

struct Row {
  double share = 0;
  Pattern pattern = Pattern::contiguous;
  std::vector<VersionCost> versions;
  std::vector<RestoreCost> restores;
};

/// A session over one image that can be ended and begun again.
class Subject {
 public:
  Subject(Team& team, const Json& job)
      : team_(team),
        job_(job),
        image_(job.at("bytes"), 1000 + static_cast<std::uint64_t>(team.rank())) {
    open();
    take_version(team_, *session_);
    measured_baselines();
  }
  ~Subject() {
    must("close", session_->close());
    remove_plain_file(team_, directory());
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  /// The second of two versions alike: by then a new session has touched its memory.
  void measure(Row& row) {
    image_.change(row.share, row.pattern, kBlockBytes);
    take_version(team_, *session_);
    image_.change(row.share, row.pattern, kBlockBytes);
    row.versions.push_back(take_version(team_, *session_));
    row.restores.push_back(restart());
  }

  Baselines measured_baselines() { return measure_baselines(team_, image_, directory()); }

 private:
  std::string directory() const { return job_.at("dir"); }

  void open() {
    session_.emplace(must("open", team_.open(store_options(job_, "store"))));
    must("protect", session_->protect("image", image_.words()));
  }

  RestoreCost restart() {
    must("close", session_->close());
    const std::uint64_t expected = image_.checksum();
    image_.wipe();
    const double direct_read_ms = measure_direct_read(team_, directory());
    if (team_.rank() == 0) drop_caches(directory());
    team_.barrier();
    Stopwatch opening;
    open();
    opening.stop();
    team_.barrier();
    Stopwatch restoring;
    must("restore", session_->restore());
    restoring.stop();
    if (image_.checksum() != expected) die("restore() gave back other bytes than were saved");
    return {opening.elapsed_ms(team_), restoring.elapsed_ms(team_), direct_read_ms};
  }

  Team& team_;
  const Json& job_;
  Image image_;
  std::optional<Session> session_;
};

Json to_json(const Row& row, const Json& job) {
  return {{"case", job.at("case")},
          {"dirty", row.share * 100},
          {"pattern", name_of(row.pattern)},
          {"blocking_ms", median_of(row.versions, &VersionCost::blocking_ms)},
          {"durable_ms", median_of(row.versions, &VersionCost::durable_ms)},
          {"written_bytes", median_of(row.versions, &VersionCost::written_bytes)},
          {"restore_ms", median_of(row.restores, &RestoreCost::restore_ms)},
          {"direct_read_ms", median_of(row.restores, &RestoreCost::direct_read_ms)},
          {"open_ms", median_of(row.restores, &RestoreCost::open_ms)},
          {"cpu_ms", median_of(row.versions, &VersionCost::cpu_ms)}};
}

}  // namespace

Json run_rows(Team& team, const Json& job) {
  std::vector<Row> rows;
  for (const double share : kShares)
    for (const Pattern pattern : kPatterns) rows.push_back({share, pattern, {}, {}});

  std::vector<Baselines> baselines;
  Subject subject(team, job);
  for (int repetition = 0; repetition < job.at("repetitions"); ++repetition) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i % (rows.size() / 2) == 0) baselines.push_back(subject.measured_baselines());
      subject.measure(rows[i]);
    }
  }

  Json result = Json::array();
  for (const Row& row : rows) {
    Json entry = to_json(row, job);
    entry["plain_write_ms"] = median_of(baselines, &Baselines::plain_write_ms);
    entry["scan_ms"] = median_of(baselines, &Baselines::scan_ms);
    entry["scan_cpu_ms"] = median_of(baselines, &Baselines::scan_cpu_ms);
    result.push_back(std::move(entry));
  }
  return result;
}

}  // namespace belay::bench
