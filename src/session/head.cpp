// SPDX-License-Identifier: Apache-2.0
#include "session/head.hpp"

#include "base/try.hpp"
#include "capture/staging.hpp"
#include "fingerprint/hasher.hpp"
#include "os/parallel.hpp"
#include "session/drain_server.hpp"
#include "session/pulse.hpp"
#include "session/voyage.hpp"
#include "store/tier.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <thread>

namespace belay::detail {
namespace {

constexpr std::uint64_t kForEverNs = std::numeric_limits<std::uint64_t>::max() / 2;
constexpr std::size_t kScratchBytes = std::size_t{32} << 20;

}  // namespace

/// Everything that a voyage of this rank needs, of which the head has one for each.
struct Head::Charge {
  Charge(const HeadParts& parts, os::Line to, os::Descriptor shared)
      : line(std::move(to)),
        file(std::move(shared)),
        staging(kScratchBytes, parts.settings.block_bytes),
        parallel(1),
        worker(session::make_inline_worker()) {}

  os::Line line;
  os::Descriptor file;  ///< with the rank's staging memory
  os::AlignedMemory memory;
  bool left = false;
  std::optional<session::Order> order;

  capture::Staging staging;
  os::Parallel parallel;
  std::unique_ptr<session::Worker> worker;
  session::ExchangeWindows windows;
  std::unique_ptr<store::Tier> tier;
  std::unique_ptr<fingerprint::Hasher> hasher;

  // Of the version under way.
  std::optional<dedup::NodeLayout> layout;
  std::optional<session::Equipment> equipment;
  std::shared_ptr<session::Flight> flight;
  std::optional<session::Voyage> voyage;
};

Head::Head(HeadParts parts)
    : parts_(std::move(parts)), hub_(*parts_.heads, parts_.crews, parts_.settings.timeout_ns) {
  for (auto& [rank, line] : parts_.lines) {
    auto& joined = parts_.joined.at(rank);
    charges_[rank] =
        std::make_unique<Charge>(parts_, std::move(line), std::move(joined.descriptor));
  }
  const Settings& settings = parts_.settings;
  for (auto& line : parts_.drain_lines)
    drains_.push_back(std::make_unique<session::DrainServer>(
        std::move(line), session::DrainServer::Means{*parts_.files, *parts_.clock, *parts_.log,
                                                     settings.match, parts_.make_chooser(),
                                                     !settings.bandwidth, parts_.encode_threads,
                                                     parts_.drain_bytes, settings.timeout_ns}));
}

Head::~Head() = default;

int Head::serve() {
  if (std::exchange(served_, true)) return 1;
  auto served = within_memory([&] { return answer(); });
  if (served) served = parts_.heads->close();
  // Ranks that still wait are told at once: their lines end here.
  charges_.clear();
  drains_.clear();
  if (served) return 0;
  parts_.log->write(LogLevel::error, "head: {}", served.error().message());
  return 1;
}

Result<void> Head::answer() {
  const auto may_order = [](const auto& charge) { return !charge.second->left; };
  while (std::any_of(charges_.begin(), charges_.end(), may_order)) {
    BELAY_TRY(hear_next());
    if (all_have_ordered()) BELAY_TRY(sail());
  }
  return {};
}

bool Head::all_have_ordered() const {
  return std::all_of(charges_.begin(), charges_.end(),
                     [](const auto& charge) { return charge.second->order.has_value(); });
}

Result<void> Head::hear_next() {
  std::vector<Charge*> heard;
  std::vector<Rank> ranks;
  std::vector<const os::Line*> lines;
  for (auto& [rank, charge] : charges_) {
    if (charge->left || charge->order) continue;
    heard.push_back(charge.get());
    ranks.push_back(rank);
    lines.push_back(&charge->line);
  }
  if (lines.empty()) return fail(Code::peer_lost, "some ranks have closed, others have not");
  BELAY_ASSIGN(const auto next, os::wait_for_any(lines, kForEverNs));
  if (!next) return {};
  auto received = heard[*next]->line.receive(parts_.settings.timeout_ns);
  if (!received)
    return fail(Code::peer_lost, "rank {} has not closed its session: {}", ranks[*next],
                received.error().message());
  return hear(*heard[*next], *received);
}

Result<void> Head::hear(Charge& charge, const os::Line::Received& received) {
  const auto body =
      std::span(received.message).subspan(std::min<std::size_t>(received.message.size(), 1));
  switch (session::notice_of(received.message)) {
    case session::Notice::leave:
      charge.left = true;
      return {};
    case session::Notice::order: {
      BELAY_ASSIGN(charge.order, session::decode_order(body));
      return {};
    }
    default:
      return {};
  }
}

/// Everything that may fail here fails this rank's version only: the others are told by its ranks.
Result<void> Head::prepare(Charge& charge) {
  session::Order& order = *charge.order;
  Manifest& manifest = order.manifest;
  std::uint64_t end = 0;
  for (const auto& piece : order.pieces) end = std::max(end, piece.at + piece.length);
  end = (end + os::kDirectAlignment - 1) / os::kDirectAlignment * os::kDirectAlignment;
  if (end > charge.memory.size()) {
    BELAY_ASSIGN(charge.memory, os::AlignedMemory::map_shared(charge.file.number(), 0, end));
  }
  if (!charge.hasher) charge.hasher = fingerprint::make_hasher(manifest.hash, manifest.origin.seed);
  if (!charge.hasher) return fail(Code::unsupported, "the hash of this store is not offered here");
  charge.tier = store::make_local_tier(*parts_.files, order.directory);
  BELAY_ASSIGN(charge.layout, dedup::NodeLayout::make(order.nodes, order.copies, manifest.level));
  charge.equipment.emplace(session::Equipment{parts_.settings, *parts_.clock, *parts_.log,
                                              *charge.tier, *charge.hasher, charge.parallel,
                                              charge.staging, *charge.worker});
  session::Cargo cargo;
  cargo.own_segment = order.own_segment;
  cargo.counted_on = std::move(order.counted_on);
  for (const auto& piece : order.pieces)
    cargo.unsafe.push_back(
        {charge.memory.bytes().subspan(piece.at, piece.length), piece.block, piece.region});
  BELAY_ASSIGN(cargo.scratch, charge.staging.try_acquire());
  if (cargo.scratch == nullptr) return fail(Code::no_space, "a head has no memory to write with");
  const Rank rank = manifest.origin.rank;
  const std::size_t blocks = manifest.fingerprints.size();
  charge.flight =
      std::make_shared<session::Flight>(*charge.equipment, std::move(manifest), order.start_ns);
  charge.flight->written.resize(blocks);
  charge.flight->leave_out_index();
  charge.voyage.emplace(*charge.equipment, charge.flight, std::move(cargo),
                        session::Voyage::Course{hub_.group(rank), *charge.layout, charge.windows});
  return {};
}

Result<void> Head::work() {
  // Silence means that a head is stopped, not that it works.
  const session::Pulse pulse(session::Pulse::period_ns(parts_.settings.timeout_ns), [this] {
    for (auto& [rank, charge] : charges_)
      (void)charge->line.send(session::encode_notice(session::Notice::alive), 0);
  });
  for (auto& [rank, charge] : charges_) BELAY_TRY(prepare(*charge));
  auto carried =
      hub_.run([this](ranks::Group& group) { charges_.at(group.rank())->voyage->share(); });
  std::vector<std::thread> threads;
  for (auto& [rank, charge] : charges_)
    threads.emplace_back([&charge = *charge] { charge.voyage->finish(); });
  for (std::thread& thread : threads) thread.join();
  return carried;
}

Result<void> Head::sail() {
  auto worked = work();
  for (auto& [rank, charge] : charges_) {
    if (!charge->flight) continue;
    BELAY_ASSIGN(const auto report, session::encode_report(charge->flight->outcome()));
    auto sent = charge->line.send(report, parts_.settings.timeout_ns);
    if (!sent && worked) worked = std::move(sent);
    charge->voyage.reset();
    charge->flight.reset();
    charge->order.reset();
  }
  return worked;
}

}  // namespace belay::detail
