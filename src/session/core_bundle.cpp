// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "format/names.hpp"
#include "session/core.hpp"

#include <utility>

namespace belay::detail {

std::function<void()> SessionCore::bundling_job(session::Cargo cargo) {
  // Nothing of it is written in pieces.
  if (cargo.scratch != nullptr) staging_.release(std::exchange(cargo.scratch, nullptr));
  ranks::Group& group = parts_.voyages ? *parts_.voyages : *parts_.group;
  const session::DrainPlaces places{equipment_.tier,
                                    equipment_.tier,
                                    equipment_.tier,
                                    equipment_.hasher,
                                    *parts_.chooser,
                                    clock_,
                                    log_,
                                    settings_.match,
                                    &group,
                                    parts_.drain_threads,
                                    parts_.encode_threads,
                                    drain_bytes()};
  aggregate::RankSet own;
  for (aggregate::RankSet& set : rank_sets())
    if (set.aggregator() == rank_) own = std::move(set);
  return [bundling = std::make_shared<session::Bundling>(
              equipment_, flight_, make_voyage(std::move(cargo)), places, std::move(own))] {
    bundling->run();
  };
}

Result<Version> SessionCore::bundle_here(std::uint64_t entry_ns) {
  std::function<void()> job;
  // A version before it may still be going from the tier, or be indexed.
  parts_.worker->wait_all();
  const auto made = within_memory([&]() -> Result<void> {
    job = bundling_job(take_cargo_and_close(entry_ns));
    flight_->reuse(std::exchange(dedup_, {}));
    return {};
  });
  if (!made) return Unexpected(give_up_version(made.error(), entry_ns));
  const std::uint64_t start = clock_.now_ns();
  job();
  const Version version = note_captured(clock_.now_ns() - start);
  if (flight_->error())
    return Unexpected(flight_->error()->within(fmt::format("version {}", version)));
  return version;
}

void SessionCore::note_bundles() {
  vote::Claim& claim = parts_.claim;
  const VersionKey key = flight_->manifest->origin.key;
  for (const aggregate::RankSet& set : rank_sets()) {
    const Rank aggregator = set.aggregator();
    const std::string& directory = claim.directories[aggregator];
    for (const Rank rank : set.members) {
      const Rank reader = claim.directories[rank] == directory ? rank : aggregator;
      claim.sources.add(key, rank, reader, directory, /*global=*/false);
      if (flight_->shares[rank].file_bytes > 0)
        claim.whereabouts.add({{key, rank}, FileKind::copy, 0, 0},
                              claim.whereabouts.place(directory), reader);
    }
  }
}

std::vector<session::LostFile> SessionCore::look_for_lost_bundles() {
  std::vector<session::LostFile> lost;
  const auto& whereabouts = parts_.claim.whereabouts;
  for (const vote::KeptBundle& bundle : holdings_.bundles()) {
    const std::string name = format::bundle_name(bundle.id);
    const auto bytes = equipment_.tier.touch(name);
    if (bytes && *bytes > 0) continue;
    log_.warn("{}/{} is {}: its blocks are written again", equipment_.tier.place(), name,
              bytes ? "cut short" : "missing or unreadable (" + bytes.error().message() + ")");
    for (const SegmentId& id : bundle.segments)
      for (const auto& holder : whereabouts.holders(id))
        if (holder.is_copy()) lost.push_back({id, FileKind::copy, holder.place});
  }
  return lost;
}

}  // namespace belay::detail
