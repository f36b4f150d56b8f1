// SPDX-License-Identifier: Apache-2.0
// dump() and load(): buffers as a version of their own, which builds on no other and on which no
// other builds.
#include "base/try.hpp"
#include "session/core.hpp"
#include "vote/agreement.hpp"
#include "vote/fetch.hpp"

#include <algorithm>
#include <set>

namespace belay::detail {
namespace {

std::string name_of_buffer(std::size_t index) { return fmt::format("dump/{}", index); }

/// A buffer as a region.
class BufferAccess final : public RegionAccess {
 public:
  explicit BufferAccess(std::span<const std::byte> saved) : saved_(saved) {}
  explicit BufferAccess(std::span<std::byte> filled) : saved_(filled), filled_(filled) {}

  ElementType type() const override { return {ElementKind::bytes, 1, ""}; }
  Shape shape() const override { return Shape(saved_.size()); }
  Result<std::span<const std::byte>> view() override { return saved_; }
  Result<std::span<std::byte>> room(std::uint64_t) override { return filled_; }

 private:
  std::span<const std::byte> saved_;
  std::span<std::byte> filled_;
};

std::vector<dedup::Node> numbered(const std::vector<std::string>& names) {
  std::vector<dedup::Node> nodes;
  for (const std::string& name : names)
    nodes.push_back(
        static_cast<dedup::Node>(std::find(names.begin(), names.end(), name) - names.begin()));
  return nodes;
}

Result<void> check_copies(int copies, const std::vector<dedup::Node>& nodes) {
  if (copies < 1 || copies > static_cast<int>(dedup::kMaxCopies))
    return fail(Code::invalid_argument, "dump: {} copies cannot be made; ask for 1 to {}", copies,
                dedup::kMaxCopies);
  const std::size_t there = std::set<dedup::Node>(nodes.begin(), nodes.end()).size();
  if (there < static_cast<std::size_t>(copies))
    return fail(Code::invalid_argument,
                "dump: {} copies need {} nodes, but the {} ranks run on {} (use more nodes or ask "
                "for fewer copies; BELAY_NODE or BELAY_RANKS_PER_NODE tell nodes apart where one "
                "host plays several)",
                copies, copies, nodes.size(), there);
  return {};
}

Result<std::vector<session::RegionMatch>> match_buffers(
    const Manifest& manifest, const std::vector<std::unique_ptr<RegionAccess>>& buffers) {
  const Version version = manifest.origin.key.version;
  if (manifest.regions.size() != buffers.size())
    return fail(Code::invalid_argument,
                "load: version {} has {} buffers of rank {}, but {} were given", version,
                manifest.regions.size(), manifest.origin.rank, buffers.size());
  std::vector<session::RegionMatch> matches;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const RegionRecord& record = manifest.regions[i];
    BELAY_ASSIGN(const auto room, buffers[i]->room(record.bytes));
    if (room.size() != record.bytes)
      return fail(Code::invalid_argument,
                  "load: buffer {} of rank {} has {} bytes in version {}, but room for {} was "
                  "given; give buffers of the sizes that were dumped",
                  i, manifest.origin.rank, record.bytes, version, room.size());
    matches.push_back({record.name, buffers[i].get(), &record, record.bytes});
  }
  return matches;
}

}  // namespace

Result<Version> SessionCore::dump(Buffers buffers, int copies) {
  BELAY_TRY(check_usable(false));
  if (settings_.diskless())
    return fail(Code::unsupported,
                "dump: nothing is kept on nodes, since `levels` names only the global tier; add "
                "local to it");
  const std::uint64_t entry = clock_.now_ns();
  const auto asked = static_cast<std::uint64_t>(copies);
  BELAY_TRY(settle(Call::dump, asked));
  auto nodes = numbered(parts_.claim.nodes);
  BELAY_TRY(check_copies(copies, nodes));
  BELAY_TRY(keep_house());
  // Ranks that do not plan versions together otherwise do so for this one.
  const auto usual_nodes = parts_.nodes;
  const Dedup usual_dedup = parts_.settings.dedup;
  if (copies > 1 && !together()) {
    parts_.nodes = std::move(nodes);
    parts_.claim.shares_files = true;
    if (usual_dedup == Dedup::automatic) parts_.settings.dedup = Dedup::collective;
  }
  const VersionKey key{parts_.claim.run, holdings_.take_number()};
  missed_ = true;
  auto taken = take_dump(buffers, key, Level::replicas(static_cast<std::uint8_t>(copies)), entry);
  auto dumped = !taken && taken.error().code() == Code::peer_lost
                    ? Result<Version>(Unexpected(taken.error()))
                    : finish_dump(key, asked, taken);
  parts_.nodes = usual_nodes;
  parts_.settings.dedup = usual_dedup;
  return dumped;
}

Result<void> SessionCore::take_dump(Buffers buffers, VersionKey key, const Level& level,
                                    std::uint64_t entry_ns) {
  catalog::Catalog nothing;
  dedup::LocalDedup own;
  auto captured =
      within_memory([&] { return capture_dump(buffers, key, level, nothing, own, entry_ns); });
  if (together()) {
    const auto agreed = agree_captured(captured);
    captured = agreed ? within_memory([&] { return share_here(entry_ns); })
                      : Result<void>(Unexpected(agreed.error()));
  }
  if (captured) {
    if (!together()) close_ledger(flight_->manifest->ledger, entry_ns);
    captured = within_memory([&] { return capture_->seal(); });
  }
  if (!captured && capture_) capture_->abandon(captured.error());
  if (!captured && !capture_ && flight_) {
    flight_->abandon(captured.error());
    flight_->finish(nullptr);
  }
  capture_.reset();
  return captured;
}

Result<void> SessionCore::capture_dump(Buffers buffers, VersionKey key, const Level& level,
                                       catalog::Catalog& nothing, dedup::LocalDedup& own,
                                       std::uint64_t entry_ns) {
  std::uint64_t bytes = 0;
  for (const auto& buffer : buffers) bytes += buffer.size();
  if (!settings_.staging_bytes) staging_.grow(bytes / 4);
  const vote::Claim& claim = parts_.claim;
  Manifest header;
  header.origin = {claim.identity.store, claim.identity.seed, key, rank_, parts_.group->size()};
  header.application = claim.identity.application;
  header.hash = settings_.hash;
  header.block_bytes = settings_.block_bytes;
  header.time_ns = clock_.wall_ns();
  header.ledger.version = key.version;
  header.level = level;
  header.dump = true;
  if (together()) {
    BELAY_ASSIGN(layout_, dedup::NodeLayout::make(parts_.nodes, level.losses() + 1, level));
  }
  flight_ = std::make_shared<session::Flight>(equipment_, std::move(header), entry_ns);
  missed_ = false;
  const bool dedups = settings_.dedups();
  if (dedups) own.index(nothing.manifest());
  capture_.emplace(equipment_, flight_, nothing, dedups ? &own : nullptr, session::SegmentDoubts{},
                   together());
  capture_->expect(buffers.size(), bytes);
  settle_ns_ = clock_.now_ns() - entry_ns;
  blocking_ns_ = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    BufferAccess access(buffers[i]);
    BELAY_TRY(capture_->add(name_of_buffer(i), access, nullptr));
  }
  return capture_->flush();
}

Result<Version> SessionCore::finish_dump(VersionKey key, std::uint64_t asked,
                                         const Result<void>& taken) {
  while (flight_ && !flight_->finished()) parts_.worker->wait_one();
  Result<void> mine = taken;
  if (mine && flight_->error()) mine = Unexpected(*flight_->error());
  const bool voted = mine && flight_->voted();
  BELAY_ASSIGN(const Meeting all, meet(Call::dump, {.asked = asked, .agrees = voted}));
  missed_ = false;
  const auto flight = std::exchange(flight_, {});
  if (!all.agrees) {
    auto agreed = vote::agree(*parts_.group, mine);
    holdings_.discard(key, flight ? flight->kept() : vote::Kept{});
    const Error error = agreed ? Error(Code::io, "not every rank voted") : agreed.error();
    return Unexpected(error.within(fmt::format("dump: version {}", key.version)));
  }
  if (together()) {
    flight_ = flight;
    const auto named = name_kept_manifests();
    if (named) note_whereabouts();
    flight_.reset();
    if (!named) {
      holdings_.discard(key, flight->kept());
      return Unexpected(named.error().within(fmt::format("dump: version {}", key.version)));
    }
  }
  holdings_.exists(*flight->manifest, std::move(flight->info()), flight->kept());
  log_.info("version {} exists: a dump of {} buffers", key.version,
            flight->manifest->regions.size());
  return key.version;
}

Result<void> SessionCore::load(Version version, std::span<const std::span<std::byte>> buffers) {
  BELAY_TRY(check_usable(false));
  BELAY_TRY(settle(Call::load, version));
  const auto key = holdings_.find_dump(version);
  if (!key)
    return fail(Code::not_found,
                "load: there is no version {} in {} that dump() has taken; versions() lists what "
                "is there, and restore() brings back checkpoints",
                version, settings_.store);
  std::vector<std::unique_ptr<RegionAccess>> accesses;
  for (const auto& buffer : buffers) accesses.push_back(std::make_unique<BufferAccess>(buffer));
  std::optional<Error> reason;
  const auto all_go_on = [&](const auto& mine) {
    return all_succeed(mine ? Result<void>{} : Result<void>(Unexpected(mine.error())), reason);
  };
  const auto what = [&] { return reason->within(fmt::format("load: version {}", version)); };
  auto manifest =
      within_identity(vote::fetch_manifest(*parts_.group, equipment_.tier, parts_.claim.sources,
                                           *key, parts_.claim.identity.store, log_));
  if (!manifest && manifest.error().code() == Code::peer_lost) return Unexpected(manifest.error());
  BELAY_ASSIGN(const bool found, all_go_on(manifest));
  if (!found) return Unexpected(what());
  const auto matches = match_buffers(*manifest, accesses);
  BELAY_ASSIGN(const bool fit, all_go_on(matches));
  if (!fit) return Unexpected(*reason);
  const auto filled = fill(*manifest, *matches);
  if (!filled && filled.error().code() == Code::peer_lost) return filled;
  BELAY_ASSIGN(const bool done, all_go_on(filled));
  if (!done) return Unexpected(what());
  return {};
}

}  // namespace belay::detail
