// SPDX-License-Identifier: Apache-2.0
// Does the cost grow with anything but the bytes? By size, by number of regions, by block size.
// Subjects that are compared live side by side and take turns.
#include "differential/jobs.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"

#include <array>
#include <map>

namespace belay::bench {
namespace {

constexpr double kShare = 0.03;
constexpr double kGiB = 1 << 30;

struct Subject {
  Session session;
  std::vector<VersionCost> costs;
};

Session open_session(Team& team, const Json& job, const std::string& name,
                     const Setting& block = {}) {
  Options options = store_options(job, name);
  options.block = block;
  return must("open", team.open(std::move(options)));
}

/// Protects the image as `count` regions of equal size.
void protect_in_parts(Session& session, Image& image, std::uint64_t count) {
  const std::uint64_t bytes = image.bytes().size() / count;
  for (std::uint64_t i = 0; i < count; ++i)
    must("protect", session.protect(fmt::format("part-{}", i), image.bytes(i * bytes, bytes)));
}

Json cost_per_gib(const Subject& subject, std::uint64_t bytes) {
  const double size = static_cast<double>(bytes) / kGiB;
  const double blocking_ms = median_of(subject.costs, &VersionCost::blocking_ms);
  const double durable_ms = median_of(subject.costs, &VersionCost::durable_ms);
  return {{"bytes", bytes},
          {"dirty", kShare * 100},
          {"blocking_ms", blocking_ms},
          {"durable_ms", durable_ms},
          {"blocking_ms_per_gib", blocking_ms / size},
          {"durable_ms_per_gib", durable_ms / size}};
}

}  // namespace

Json run_sizes(Team& team, const Json& job) {
  struct Sized {
    Image image;
    Subject subject;
  };
  std::vector<Sized> all;
  for (const std::uint64_t bytes : job.at("sizes")) {
    all.push_back({Image(bytes, 4000), {open_session(team, job, std::to_string(bytes)), {}}});
    must("protect", all.back().subject.session.protect("image", all.back().image.words()));
    take_version(team, all.back().subject.session);
  }
  for (int repetition = -1; repetition < job.at("repetitions"); ++repetition) {
    for (auto& [image, subject] : all) {
      image.change(kShare, Pattern::scattered, kBlockBytes);
      const VersionCost cost = take_version(team, subject.session);
      if (repetition >= 0) subject.costs.push_back(cost);
    }
  }
  Json result = Json::array();
  for (auto& [image, subject] : all) {
    result.push_back(cost_per_gib(subject, image.bytes().size()));
    must("close", subject.session.close());
  }
  return result;
}

Json run_regions(Team& team, const Json& job) {
  constexpr std::array<std::uint64_t, 3> kCounts = {1, 100, 10000};
  // A multiple of the block size for each region, so that all cuts have the same blocks.
  const std::uint64_t bytes =
      kCounts.back() * job.at("blocks_per_region").get<std::uint64_t>() * kBlockBytes;
  Image image(bytes, 5000);
  std::vector<Subject> all;
  for (const std::uint64_t count : kCounts) {
    all.push_back({open_session(team, job, std::to_string(count)), {}});
    protect_in_parts(all.back().session, image, count);
    take_version(team, all.back().session);
  }
  for (int repetition = -1; repetition < job.at("repetitions"); ++repetition) {
    image.change(kShare, Pattern::scattered, kBlockBytes);
    for (Subject& subject : all) {
      const VersionCost cost = take_version(team, subject.session);
      if (repetition >= 0) subject.costs.push_back(cost);
    }
  }
  Json result = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Json row = cost_per_gib(all[i], bytes);
    row["regions"] = kCounts[i];
    result.push_back(std::move(row));
    must("close", all[i].session.close());
  }
  return result;
}

Json run_small(Team& team, const Json& job) {
  const std::uint64_t regions = job.at("regions");
  const std::uint64_t bytes = job.at("bytes");
  // Rounded up to words by the image; a region ends short of the next.
  const std::uint64_t stride = (bytes + 7) / 8 * 8;
  Image image(regions * stride, 6000);
  Subject subject{open_session(team, job, "small"), {}};
  for (std::uint64_t i = 0; i < regions; ++i)
    must("protect",
         subject.session.protect(fmt::format("small-{}", i), image.bytes(i * stride, bytes)));
  take_version(team, subject.session);
  for (int repetition = 0; repetition < job.at("repetitions"); ++repetition) {
    image.change(1, Pattern::contiguous, stride);
    subject.costs.push_back(take_version(team, subject.session));
  }
  must("close", subject.session.close());
  return {{"regions", regions},
          {"bytes", bytes},
          {"blocking_ms", median_of(subject.costs, &VersionCost::blocking_ms)},
          {"durable_ms", median_of(subject.costs, &VersionCost::durable_ms)},
          {"written_bytes", median_of(subject.costs, &VersionCost::written_bytes)}};
}

}  // namespace belay::bench
