// SPDX-License-Identifier: Apache-2.0
#include "redundancy/schemes.hpp"

#include "measure/cost.hpp"
#include "measure/must.hpp"
#include "redundancy/raw.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

/// How much of the data must move: sent to other nodes, written, given to the kernel.
struct Movement {
  double sent = 0;
  double written = 0;
  double encoded = 0;
};

/// Copies: each byte goes to one more node and is written on both. Shards: each byte goes to where
/// the shards of its stripe are made, whence all but one of these go on; members stay where they
/// are.
Movement movement_of(const Json& scheme) {
  const double members = scheme.at("members"), shards = scheme.at("shards");
  if (members == 0) return {shards, 1 + shards, 0};
  return {1 + (shards - 1) / members, 1 + shards / members, 1};
}

/// CPU milliseconds for the whole data.
struct RawCosts {
  double send = 0;
  FileCost file;
  double encode = 0;

  double floor(const Movement& moved) const {
    return moved.sent * send + moved.written * file.write_cpu_ms + moved.encoded * encode;
  }
};

/// One scheme, with a store and a session of its own.
class Scheme {
 public:
  Scheme(Team& team, const Json& scheme, const fs::path& directory, Image& image)
      : team_(&team), scheme_(scheme), store_(directory / name()), image_(&image) {
    open();
  }

  bool works() const { return session_.has_value(); }

  /// Changes everything and takes a version of it. `counts` is false for the first, which has to
  /// make everything that stays.
  void take(NeighbourMemory& neighbour, bool counts) {
    image_->change(0, image_->bytes().size());
    const RawCosts raw = measure_raw(neighbour);
    const Stats before = session_->stats();
    const VersionCost cost = take_version(*team_, *session_);
    if (!counts) return;
    cpu_ms_.push_back(cost.cpu_ms);
    durable_ms_.push_back(cost.durable_ms);
    floor_ms_.push_back(raw.floor(movement_of(scheme_)));
    ratio_.push_back(cost.cpu_ms / floor_ms_.back());
    send_ms_.push_back(raw.send);
    write_ms_.push_back(raw.file.write_cpu_ms);
    // A version also removes the one that it replaces.
    const double removal = movement_of(scheme_).written * raw.file.remove_cpu_ms;
    remove_ms_.push_back(raw.file.remove_cpu_ms);
    lasting_ratio_.push_back(cost.cpu_ms / (floor_ms_.back() + removal));
    encode_ms_.push_back(raw.encode);
    written_bytes_ =
        cost.written_bytes +
        team_->sum(static_cast<double>(session_->stats().kept_bytes - before.kept_bytes));
    sent_bytes_ = team_->sum(static_cast<double>(session_->stats().sent_bytes - before.sent_bytes));
  }

  /// Loses nodes and comes back, several times.
  void rebuild(int times) {
    must("close", session_->close());
    session_.reset();
    const std::uint64_t checksum = image_->checksum();
    for (int i = 0; i < times; ++i) {
      lose_nodes();
      open();
      image_->wipe();
      team_->barrier();
      Stopwatch watch;
      must("restore", session_->restore());
      watch.stop();
      restore_ms_.push_back(watch.elapsed_ms(*team_));
      restore_cpu_ms_.push_back(watch.cpu_ms(*team_));
      if (image_->checksum() != checksum) die(name() + ": restored something else");
      must("close", session_->close());
      session_.reset();
    }
    team_->barrier();
    if (team_->rank() == 0) fs::remove_all(store_);
  }

  Json row() const {
    Json row = scheme_;
    row["supported"] = problem_.empty();
    if (!problem_.empty()) {
      row["problem"] = problem_;
      return row;
    }
    const double bytes = team_->sum(static_cast<double>(image_->bytes().size()));
    const double restored = restored_bytes();
    row.update({{"bytes", bytes},
                {"written_bytes", written_bytes_},
                {"sent_bytes", sent_bytes_},
                {"cpu_ms", median(cpu_ms_)},
                {"durable_ms", median(durable_ms_)},
                {"floor_cpu_ms", median(floor_ms_)},
                {"cpu_per_floor", median(ratio_)},
                {"send_cpu_ms", median(send_ms_)},
                {"write_cpu_ms", median(write_ms_)},
                {"encode_cpu_ms", median(encode_ms_)},
                {"remove_cpu_ms", median(remove_ms_)},
                {"cpu_per_floor_with_removal", median(lasting_ratio_)},
                {"restore_ms", median(restore_ms_)},
                {"restore_cpu_ms", median(restore_cpu_ms_)},
                {"lost_bytes", restored}});
    return row;
  }

 private:
  std::string name() const { return scheme_.at("redundancy"); }
  double restored_bytes() const {
    return scheme_.at("losses").get<double>() * static_cast<double>(image_->bytes().size());
  }

  void open() {
    Options options;
    options.store = store_;
    options.application = "redundancy";
    options.redundancy = name();
    options.keep = 1;
    options.ranks_per_node = 1;
    auto opened = team_->open(std::move(options));
    if (!opened && !restore_ms_.empty()) die(opened.error().message());
    if (!opened) {
      problem_ = opened.error().message();
      return;
    }
    session_.emplace(*std::move(opened));
    must("protect", session_->protect("image", image_->words()));
  }

  RawCosts measure_raw(NeighbourMemory& neighbour) {
    RawCosts raw;
    raw.send = neighbour.send_cpu_ms(*team_, *image_);
    raw.file = measure_file(*team_, *image_, store_.parent_path());
    const redundancy::ErasureScheme code{scheme_.at("members"), scheme_.at("shards")};
    if (code.members > 0) raw.encode = encode_cpu_ms(*team_, *image_, code);
    return raw;
  }

  void lose_nodes() {
    team_->barrier();
    if (team_->rank() == 0) {
      std::vector<fs::path> nodes;
      for (const auto& entry : fs::directory_iterator(store_))
        if (entry.path().filename().string().starts_with("node-")) nodes.push_back(entry.path());
      std::sort(nodes.begin(), nodes.end());
      nodes.resize(scheme_.at("losses").get<std::size_t>());
      for (const fs::path& node : nodes) fs::remove_all(node);
    }
    team_->barrier();
  }

  Team* team_;
  Json scheme_;
  fs::path store_;
  Image* image_;
  std::optional<Session> session_;
  std::string problem_;
  std::vector<double> cpu_ms_, durable_ms_, floor_ms_, ratio_, send_ms_, write_ms_, encode_ms_;
  std::vector<double> remove_ms_, lasting_ratio_;
  std::vector<double> restore_ms_, restore_cpu_ms_;
  double written_bytes_ = 0, sent_bytes_ = 0;
};

}  // namespace

Json measure_schemes(Team& team, const Json& job) {
  Image image(job.at("bytes"), static_cast<std::uint64_t>(team.rank()) + 1);
  const fs::path directory = job.at("dir").get<std::string>();
  const int repetitions = job.at("repetitions");
  std::vector<std::unique_ptr<Scheme>> schemes;
  for (const Json& scheme : job.at("schemes"))
    schemes.push_back(std::make_unique<Scheme>(team, scheme, directory, image));
  NeighbourMemory neighbour;
  for (int turn = 0; turn <= repetitions; ++turn)
    for (const auto& scheme : schemes)
      if (scheme->works()) scheme->take(neighbour, turn > 0);
  Json rows = Json::array();
  for (const auto& scheme : schemes) {
    // The newest version has the data as of its own turn, which is over: a last one for the
    // restore.
    if (scheme->works()) {
      scheme->take(neighbour, false);
      scheme->rebuild(std::min(repetitions, 3));
    }
    rows.push_back(scheme->row());
  }
  return rows;
}

}  // namespace belay::bench
