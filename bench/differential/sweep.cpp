// SPDX-License-Identifier: Apache-2.0
// The block-size sweep of the dCP paper's Table II: 62 % of the data changes from one version to
// the next. There, blocks of 512 B made a version 7.7 times as slow as a full checkpoint.
#include "differential/jobs.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"

#include <array>

namespace belay::bench {
namespace {

constexpr std::array<std::uint64_t, 7> kBlocks = {512, 1024, 2048, 4096, 8192, 16384, 32768};
constexpr std::uint64_t kArrays = 16;
constexpr double kShare = 0.62;
constexpr std::uint64_t kPieceBytes = 4096;

struct Subject {
  std::uint64_t block_bytes = 0;
  Session session;
  std::vector<VersionCost> costs;
};

/// One run of each array, wherever it starts, as a loop over part of the domain leaves it.
void change_arrays(Image& image, std::uint64_t round) {
  const std::uint64_t array_bytes = image.bytes().size() / kArrays;
  const auto changed =
      static_cast<std::uint64_t>(kShare * static_cast<double>(array_bytes)) / 8 * 8;
  for (std::uint64_t array = 0; array < kArrays; ++array) {
    const std::uint64_t room = array_bytes - changed;
    const std::uint64_t start = (round * 7919 + array * 104729) * 8 % room / 8 * 8;
    image.change(array * array_bytes + start, changed);
  }
}

void change_pieces(Image& image, std::uint64_t) {
  image.change(kShare, Pattern::scattered, kPieceBytes);
}

struct SweepPattern {
  const char* name;
  void (*change)(Image&, std::uint64_t round);
};
constexpr std::array<SweepPattern, 2> kPatterns = {
    {{"arrays", change_arrays}, {"pieces", change_pieces}}};

std::vector<Subject> open_all(Team& team, const Json& job, Image& image) {
  const std::uint64_t array_bytes = image.bytes().size() / kArrays;
  std::vector<Subject> all;
  for (const std::uint64_t block_bytes : kBlocks) {
    Options options = store_options(job, std::to_string(block_bytes));
    options.block = block_bytes;
    all.push_back({block_bytes, must("open", team.open(std::move(options))), {}});
    for (std::uint64_t i = 0; i < kArrays; ++i)
      must("protect", all.back().session.protect(fmt::format("array-{}", i),
                                                 image.bytes(i * array_bytes, array_bytes)));
    take_version(team, all.back().session);
  }
  return all;
}

Json to_json(const Subject& subject, const char* pattern, std::uint64_t bytes,
             double plain_write_ms) {
  const double durable_ms = median_of(subject.costs, &VersionCost::durable_ms);
  const double written = median_of(subject.costs, &VersionCost::written_bytes);
  return {{"block", subject.block_bytes},
          {"pattern", pattern},
          {"bytes", bytes},
          {"dirty", kShare * 100},
          {"written_bytes", written},
          {"written_share", 100 * written / static_cast<double>(bytes)},
          {"blocking_ms", median_of(subject.costs, &VersionCost::blocking_ms)},
          {"durable_ms", durable_ms},
          {"plain_write_ms", plain_write_ms},
          {"overhead", 100 * (durable_ms / plain_write_ms - 1)},
          {"table_bytes", subject.session.stats().table_bytes}};
}

}  // namespace

Json run_sweep(Team& team, const Json& job) {
  Image image(job.at("bytes"), 7000);
  std::vector<Subject> all = open_all(team, job, image);
  Json result = Json::array();
  std::uint64_t round = 0;
  for (const SweepPattern& pattern : kPatterns) {
    std::vector<double> plain_writes;
    for (Subject& subject : all) subject.costs.clear();
    for (int repetition = -1; repetition < job.at("repetitions"); ++repetition) {
      plain_writes.push_back(measure_plain_write(team, image, job.at("dir").get<std::string>()));
      pattern.change(image, ++round);
      for (Subject& subject : all) {
        const VersionCost cost = take_version(team, subject.session);
        if (repetition >= 0) subject.costs.push_back(cost);
      }
    }
    for (const Subject& subject : all)
      result.push_back(to_json(subject, pattern.name, image.bytes().size(), median(plain_writes)));
  }
  for (Subject& subject : all) must("close", subject.session.close());
  return result;
}

}  // namespace belay::bench
