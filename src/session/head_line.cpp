// SPDX-License-Identifier: Apache-2.0
#include "session/head_line.hpp"

#include "base/try.hpp"

namespace belay::session {

Result<std::unique_ptr<HeadLine>> HeadLine::join(const std::string& name, Rank rank,
                                                 std::uint64_t timeout_ns) {
  BELAY_ASSIGN(auto file, os::make_shared_file());
  auto line = os::Line::connect(name, timeout_ns);
  if (!line)
    return fail(line.error().code(),
                "rank {} cannot reach its head ({}); ranks of a node and its heads must be on one "
                "host, outside of containers of their own",
                rank, line.error().message());
  BELAY_TRY(line->send(encode_join(rank), timeout_ns, file.number()));
  return std::unique_ptr<HeadLine>(
      new HeadLine(*std::move(line), std::move(file), timeout_ns));  // its constructor is private
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
  // Whatever it was: rank and head may be out of step.
  lost.error = Error(Code::peer_lost, "the head of this rank: " + outcome.error().message());
  return lost;
}

void HeadLine::leave() {
  if (std::exchange(left_, true)) return;
  (void)line_.send(encode_notice(Notice::leave), 0);  // a head that has gone need not be told
}

}  // namespace belay::session
