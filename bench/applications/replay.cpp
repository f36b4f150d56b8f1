// SPDX-License-Identifier: Apache-2.0
#include "applications/replay.hpp"

#include "applications/changes.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"
#include "measure/saved_version.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kBlockBytes = 16 << 10;  ///< of full versions, and of what figures show

Options options_for(const fs::path& store, const std::string& application) {
  Options options;
  options.store = store;
  options.application = application;
  options.on_log = [](LogLevel, std::string_view message) {
    fmt::print(stderr, "belay: {}\n", message);
  };
  return options;
}

void serialize(const Arrays& arrays, Writer& writer) {
  for (const auto& [name, bytes] : arrays) {
    writer.text(name);
    writer.array(std::span<const std::byte>(bytes));
  }
}

Bytes serialized(const Arrays& arrays) {
  Bytes bytes;
  Writer writer(bytes);
  serialize(arrays, writer);
  return bytes;
}

/// One way of saving the same bytes, with a store of its own.
class Way {
 public:
  Way(Team& team, const Json& job, const Json& way, Arrays& arrays)
      : layout_(way.at("layout")), block_(way.at("block")), session_(open(team, job)) {
    if (layout_ == "serialized")
      must("protect", session_.protect(
                          "everything", [&arrays](Writer& writer) { serialize(arrays, writer); },
                          [](Reader&) {}));
    else
      for (auto& [name, bytes] : arrays) must("protect", session_.protect(name, bytes));
  }

  Json take(Team& team, std::uint64_t changed_bytes) {
    const VersionCost cost = take_version(team, session_);
    return {{"layout", layout_},
            {"block", block_},
            {"changed_bytes", team.sum(static_cast<double>(changed_bytes))},
            {"written_bytes", cost.written_bytes},
            {"blocking_ms", cost.blocking_ms},
            {"durable_ms", cost.durable_ms},
            {"cpu_ms", cost.cpu_ms}};
  }
  bool is_serialized() const { return layout_ == "serialized"; }
  std::uint64_t block() const { return block_; }
  void close() { must("close", session_.close()); }

 private:
  Session open(Team& team, const Json& job) const {
    Options options = options_for(
        fs::path(job.at("dir").get<std::string>()) / fmt::format("{}-{}", layout_, block_),
        "replay");
    options.block = block_;
    return must("open", team.open(std::move(options)));
  }

  std::string layout_;
  std::uint64_t block_;
  Session session_;
};

/// Full versions by the same machinery: under new names in each version nothing is unchanged, and
/// without dedup nothing is a duplicate.
class FullWay {
 public:
  FullWay(Team& team, const Json& job, Arrays& arrays)
      : arrays_(&arrays), session_(open(team, job)) {}

  Json take(Team& team) {
    for (auto& [name, bytes] : *arrays_) {
      if (number_ > 0) must("unprotect", session_.unprotect(name_now(name)));
    }
    ++number_;
    for (auto& [name, bytes] : *arrays_) must("protect", session_.protect(name_now(name), bytes));
    const VersionCost cost = take_version(team, session_);
    return {{"written_bytes", cost.written_bytes},
            {"blocking_ms", cost.blocking_ms},
            {"durable_ms", cost.durable_ms},
            {"cpu_ms", cost.cpu_ms}};
  }
  void close() { must("close", session_.close()); }

 private:
  static Session open(Team& team, const Json& job) {
    Options options = options_for(fs::path(job.at("dir").get<std::string>()) / "full", "replay");
    options.block = kBlockBytes;
    options.dedup = "none";
    options.keep = 1;
    return must("open", team.open(std::move(options)));
  }
  std::string name_now(const std::string& name) const {
    return fmt::format("{} {}", name, number_);
  }

  Arrays* arrays_;
  Session session_;
  int number_ = 0;
};

/// Lengths of runs by powers of two, over all ranks and versions.
class RunCounts {
 public:
  void add(const Changes& changes) {
    for (const std::uint64_t run : changes.runs) {
      Count& count = counts_[log2_of(run)];
      count.runs += 1;
      count.bytes += static_cast<double>(run);
    }
  }
  Json sum(Team& team) const {
    Json rows = Json::array();
    for (int log = 0; log < 40; ++log) {
      const auto found = counts_.find(log);
      const Count mine = found == counts_.end() ? Count{} : found->second;
      const Count all = {team.sum(mine.runs), team.sum(mine.bytes)};
      if (all.runs > 0)
        rows.push_back(
            {{"up_to_bytes", std::uint64_t{1} << log}, {"runs", all.runs}, {"bytes", all.bytes}});
    }
    return rows;
  }

 private:
  struct Count {
    double runs = 0;
    double bytes = 0;
  };
  /// The smallest power that is not below.
  static int log2_of(std::uint64_t number) {
    int log = 0;
    while ((std::uint64_t{1} << log) < number) ++log;
    return log;
  }
  std::map<int, Count> counts_;
};

Json per_rank(Team& team, double mine) {
  Json values = Json::array();
  for (int rank = 0; rank < team.size(); ++rank)
    values.push_back(team.sum(rank == team.rank() ? mine : 0));
  return values;
}

/// The application's versions, one after the other.
class Replay {
 public:
  Replay(Team& team, const Json& job)
      : team_(&team),
        job_(&job),
        source_(must("open", team.open(source_options(job)))),
        versions_(source_.versions()) {
    if (versions_.empty()) die("the application left no version");
    std::reverse(versions_.begin(), versions_.end());
    protect_saved(source_, versions_.front().regions, arrays_);
    for (const Json& way : job.at("ways"))
      ways_.push_back(std::make_unique<Way>(team, job, way, arrays_));
    full_ = std::make_unique<FullWay>(team, job, arrays_);
  }

  Json run() {
    Json versions = Json::array();
    for (std::size_t i = 0; i < versions_.size(); ++i) versions.push_back(take(i));
    Json result = {
        {"versions", versions},
        {"regions", regions()},
        {"runs",
         {{"arrays", array_runs_.sum(*team_)}, {"serialized", serialized_runs_.sum(*team_)}}}};
    for (const auto& way : ways_) way->close();
    full_->close();
    must("close", source_.close());
    return result;
  }

 private:
  static Options source_options(const Json& job) {
    Options options = options_for(job.at("store").get<std::string>(), job.at("application"));
    options.keep = 100000;
    return options;
  }

  Json take(std::size_t index) {
    const VersionInfo& version = versions_[index];
    former_ = arrays_;
    former_image_ = std::move(image_);
    must("restore", source_.restore(version.version));
    image_ = serialized(arrays_);
    if (index > 0) count_runs();
    Json row = {{"version", version.version},
                {"step", step()},
                {"protected_bytes", team_->sum(static_cast<double>(total_bytes(arrays_)))},
                {"changed_share", changed_shares()},
                {"in_the_run", ledger_of(version)},
                {"plain_write_ms", plain_write()}};
    Json costs = Json::array();
    // Each starts in turn, so that none is always the one after the plain write.
    for (std::size_t i = 0; i <= ways_.size(); ++i) {
      const std::size_t turn = (i + index) % (ways_.size() + 1);
      if (turn == ways_.size())
        row["full"] = full_->take(*team_);
      else
        costs.push_back(ways_[turn]->take(*team_, changed_bytes(*ways_[turn])));
    }
    row["ways"] = costs;
    return row;
  }

  /// All applications call it so.
  long step() const {
    long value = 0;
    const auto found = arrays_.find("step");
    if (found != arrays_.end() && found->second.size() == sizeof value)
      std::memcpy(&value, found->second.data(), sizeof value);
    return value;
  }

  Changes changes_of(const std::string& name, std::uint64_t block) const {
    const auto before = former_.find(name);
    return compare(before == former_.end() ? std::span<const std::byte>() : before->second,
                   arrays_.at(name), block);
  }

  std::uint64_t changed_bytes(const Way& way) const {
    if (way.is_serialized()) return compare(former_image_, image_, way.block()).changed_bytes;
    std::uint64_t changed = 0;
    for (const auto& [name, bytes] : arrays_)
      changed += changes_of(name, way.block()).changed_bytes;
    return changed;
  }

  void count_runs() {
    for (const auto& [name, bytes] : arrays_) {
      const Changes changes = changes_of(name, kBlockBytes);
      array_runs_.add(changes);
      changed_by_region_[name] += changes.changed_bytes;
      bytes_by_region_[name] += bytes.size();
    }
    serialized_runs_.add(compare(former_image_, image_, kBlockBytes));
  }

  Json changed_shares() const {
    std::uint64_t changed = 0;
    for (const auto& [name, bytes] : arrays_)
      changed += changes_of(name, kBlockBytes).changed_bytes;
    return per_rank(*team_,
                    static_cast<double>(changed) / static_cast<double>(total_bytes(arrays_)));
  }

  Json ledger_of(const VersionInfo& version) const {
    const auto sum = [&](std::uint64_t mine) { return team_->sum(static_cast<double>(mine)); };
    const auto longest_ms = [&](std::uint64_t ns) {
      return team_->max(static_cast<double>(ns) / 1e6);
    };
    const Ledger& ledger = version.ledger;
    return {
        {"unchanged_bytes", sum(ledger.untouched_bytes + ledger.unchanged_bytes)},
        {"duplicate_bytes", sum(ledger.duplicate_here_bytes + ledger.duplicate_elsewhere_bytes)},
        {"written_bytes", sum(ledger.written_bytes)},
        {"carried_bytes", sum(ledger.carried_bytes)},
        {"blocking_ms", longest_ms(ledger.blocking_ns)}};
  }

  double plain_write() const {
    std::vector<std::span<const std::byte>> pieces;
    for (const auto& [name, bytes] : arrays_) pieces.emplace_back(bytes);
    return measure_plain_write(*team_, pieces, job_->at("dir").get<std::string>());
  }

  /// What changes, from version to version, in each region.
  Json regions() const {
    Json rows = Json::array();
    const double later_versions = static_cast<double>(versions_.size()) - 1;
    for (const auto& [name, bytes] : bytes_by_region_) {
      const double all = team_->sum(static_cast<double>(bytes));
      const double changed = team_->sum(static_cast<double>(changed_by_region_.at(name)));
      rows.push_back({{"name", name},
                      {"bytes", all / later_versions},
                      {"changed_share", all > 0 ? changed / all : 0}});
    }
    return rows;
  }

  Team* team_;
  const Json* job_;
  Session source_;
  std::vector<VersionInfo> versions_;
  Arrays arrays_, former_;
  Bytes image_, former_image_;
  std::vector<std::unique_ptr<Way>> ways_;
  std::unique_ptr<FullWay> full_;
  RunCounts array_runs_, serialized_runs_;
  std::map<std::string, std::uint64_t> changed_by_region_, bytes_by_region_;
};

}  // namespace

Json run_replay(Team& team, const Json& job) { return Replay(team, job).run(); }

}  // namespace belay::bench
