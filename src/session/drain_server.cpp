// SPDX-License-Identifier: Apache-2.0
#include "session/drain_server.hpp"

#include "base/try.hpp"
#include "fingerprint/hasher.hpp"
#include "session/pulse.hpp"
#include "store/places.hpp"

#include <limits>

namespace belay::session {
namespace {

constexpr std::uint64_t kForEverNs = std::numeric_limits<std::uint64_t>::max() / 2;

}  // namespace

DrainServer::DrainServer(os::Line line, Means means)
    : line_(std::move(line)), means_(std::move(means)), thread_([this] { serve(); }) {}

DrainServer::~DrainServer() {
  ending_.store(true, std::memory_order_relaxed);
  line_.hang_up();
  thread_.join();
}

void DrainServer::serve() {
  for (;;) {
    const auto received = within_memory([&] { return line_.receive(kForEverNs); });
    if (!received) return;
    if (notice_of(received->message) != Notice::drain) continue;
    const auto sent = within_memory([&] {
      const auto report = answer(std::span(received->message).subspan(1));
      return line_.send(encode_drain_report(report), means_.timeout_ns);
    });
    if (!sent) return;
  }
}

DrainReport DrainServer::answer(std::span<const std::byte> order) {
  auto done = within_memory([&]() -> Result<DrainReport> {
    BELAY_ASSIGN(auto decoded, decode_drain_order(order));
    return drain(std::move(decoded));
  });
  if (done) return *std::move(done);
  DrainReport failed;
  failed.result = Unexpected(done.error());
  return failed;
}

Result<DrainReport> DrainServer::drain(DrainOrder order) {
  const auto nodes = store::open_places(means_.files, order.nodes);
  const auto global = store::open_places(means_.files, order.global);
  const auto sight = store::open_places(means_.files, order.sight);
  const auto hasher = fingerprint::make_hasher(order.version.hash, order.version.origin.seed);
  if (!hasher) return fail(Code::unsupported, "the hash of this store is not offered here");
  Drain drain({*nodes, *global, *sight, *hasher, *means_.chooser, means_.clock, means_.log,
               means_.match, nullptr, false, means_.encoders, means_.memory_bytes},
              std::move(order.version), std::move(order.work));
  run(drain);
  DrainReport report = drain.report();
  if (means_.learns_bandwidth && report.written.bandwidth)
    means_.chooser->set_bandwidth(*report.written.bandwidth);
  report.codecs = codec_uses("global", *means_.chooser);
  return report;
}

void DrainServer::run(Drain& drain) {
  const Pulse pulse(Pulse::period_ns(means_.timeout_ns), [&] {
    const auto told = line_.send(encode_notice(Notice::alive), 0);
    // Nobody waits for it any more.
    if (!told || ending_.load(std::memory_order_relaxed)) drain.cancel();
  });
  drain.run();
}

}  // namespace belay::session
