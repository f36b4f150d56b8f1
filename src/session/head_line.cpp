// SPDX-License-Identifier: Apache-2.0
#include "session/head_line.hpp"

#include "base/try.hpp"

namespace belay::session {

namespace {

/// A new line to the head that listens under `name`.
Result<os::Line> call(const std::string& name, const Join& join, std::uint64_t timeout_ns,
                      int descriptor = -1) {
  auto line = os::Line::connect(name, timeout_ns);
  if (!line)
    return fail(line.error().code(),
                "rank {} cannot reach its head ({}); ranks of a node and its heads must be on one "
                "host, outside of containers of their own",
                join.rank, line.error().message());
  BELAY_TRY(line->send(encode_join(join), timeout_ns, descriptor));
  return line;
}

/// Whatever it was: rank and head may be out of step.
Error lost_head(const Error& error) {
  return {Code::peer_lost, "the head of this rank: " + error.message()};
}

}  // namespace

Result<std::unique_ptr<HeadLine>> HeadLine::join(const std::string& name, Rank rank,
                                                 std::uint64_t timeout_ns) {
  BELAY_ASSIGN(auto file, os::make_shared_file());
  BELAY_ASSIGN(auto line, call(name, {rank, Purpose::versions}, timeout_ns, file.number()));
  return std::unique_ptr<HeadLine>(
      new HeadLine(std::move(line), std::move(file), timeout_ns));  // its constructor is private
}

Result<os::AlignedMemory> HeadLine::allocate(std::size_t number, std::size_t bytes) {
  return os::AlignedMemory::map_shared(file_.number(), number * bytes, bytes);
}

std::uint64_t HeadLine::place_of(const capture::StagingBuffer& buffer, const std::byte* block) {
  return buffer.number * buffer.memory.size() +
         static_cast<std::uint64_t>(block - buffer.memory.bytes().data());
}

Result<Outcome> HeadLine::converse(std::span<const std::byte> order) {
  BELAY_TRY(line_.send(order, timeout_ns_));
  for (;;) {
    BELAY_ASSIGN(const auto received, line_.receive(timeout_ns_));
    if (notice_of(received.message) == Notice::report)
      return decode_report(std::span(received.message).subspan(1));
  }
}

Outcome HeadLine::send_off(std::span<const std::byte> order) {
  auto outcome = within_memory([&] { return converse(order); });
  if (outcome) return *std::move(outcome);
  Outcome lost;
  lost.error = lost_head(outcome.error());
  return lost;
}

void HeadLine::leave() {
  if (std::exchange(left_, true)) return;
  (void)line_.send(encode_notice(Notice::leave), 0);  // a head that has gone need not be told
}

Result<std::unique_ptr<DrainLine>> DrainLine::join(const std::string& name, Rank rank,
                                                   std::uint64_t timeout_ns) {
  BELAY_ASSIGN(auto line, call(name, {rank, Purpose::drains}, timeout_ns));
  return std::unique_ptr<DrainLine>(new DrainLine(std::move(line), timeout_ns));
}

Result<DrainReport> DrainLine::converse(std::span<const std::byte> order,
                                        const std::atomic<bool>& cancelled) {
  BELAY_TRY(line_.send(order, timeout_ns_));
  for (;;) {
    BELAY_ASSIGN(const auto received, line_.receive(timeout_ns_));
    if (notice_of(received.message) == Notice::drained)
      return decode_drain_report(std::span(received.message).subspan(1));
    if (cancelled.load(std::memory_order_relaxed)) {
      line_.hang_up();
      return fail(Code::invalid_argument, "the session ended before");
    }
  }
}

DrainReport DrainLine::send_off(std::span<const std::byte> order,
                                const std::atomic<bool>& cancelled) {
  auto report = within_memory([&] { return converse(order, cancelled); });
  if (report) return *std::move(report);
  DrainReport lost;
  lost.result = Unexpected(lost_head(report.error()));
  return lost;
}

}  // namespace belay::session
