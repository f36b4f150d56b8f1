// SPDX-License-Identifier: Apache-2.0
#include "session/bundling.hpp"

#include "base/try.hpp"

#include <utility>

namespace belay::session {

Bundling::Bundling(Equipment& equipment, std::shared_ptr<Flight> flight,
                   std::shared_ptr<Voyage> voyage, DrainPlaces places, aggregate::RankSet set)
    : equipment_(equipment),
      flight_(std::move(flight)),
      voyage_(std::move(voyage)),
      places_(places),
      set_(std::move(set)) {}

Result<OwnShare> Bundling::make_share() {
  auto stored = voyage_->stored();
  BELAY_TRY(flight_->check_held(stored));
  return hold_share(*flight_->manifest, std::move(stored));
}

DrainReport Bundling::drain() {
  // A rank that fails here still answers the others, who would else wait for it.
  auto own = within_memory([&] { return make_share(); });
  Drain drain(places_, DrainedVersion::of(*flight_->manifest), {set_, {}}, std::move(own));
  drain.run();
  return drain.report();
}

std::vector<vote::KeptBundle> Bundling::possible_bundles() const {
  const VersionKey key = flight_->manifest->origin.key;
  std::vector<vote::KeptBundle> bundles;
  for (const Rank rank : set_.members) bundles.push_back({{key, rank}, {}, true});
  return bundles;
}

void Bundling::run() {
  const auto planned = within_memory([&] { return voyage_->plan(); });
  if (!planned) {
    flight_->abandon(planned.error());
    return flight_->finish(nullptr);
  }
  DrainReport report;
  // Any of these may be under its name if it fails.
  std::vector<vote::KeptBundle> bundles;
  const auto drained = within_memory([&]() -> Result<void> {
    bundles = possible_bundles();
    report = drain();
    return report.result;
  });
  if (drained) bundles = std::move(report.bundles);
  if (report.written.bandwidth && !equipment_.settings.bandwidth)
    equipment_.chooser->set_bandwidth(*report.written.bandwidth);
  flight_->land_in_bundles(drained, std::move(bundles), report.written.file_bytes);
}

}  // namespace belay::session
