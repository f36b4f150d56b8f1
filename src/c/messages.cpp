// SPDX-License-Identifier: Apache-2.0
#include "c/handle.hpp"

namespace belay::c {
namespace {

/// As errno: a failed open has no session that could hold its message.
thread_local Message last_of_thread;

static_assert(number_of(Code::not_found) == BELAY_NOT_FOUND);
static_assert(number_of(Code::corruption) == BELAY_CORRUPTION);
static_assert(number_of(Code::io) == BELAY_IO);
static_assert(number_of(Code::no_space) == BELAY_NO_SPACE);
static_assert(number_of(Code::unsupported) == BELAY_UNSUPPORTED);
static_assert(number_of(Code::invalid_argument) == BELAY_INVALID_ARGUMENT);
static_assert(number_of(Code::peer_lost) == BELAY_PEER_LOST);
static_assert(number_of(Code::busy) == BELAY_BUSY);

}  // namespace

void Message::tell(std::string_view text) noexcept {
  try {
    kept_ = text;
    shown_ = kept_.c_str();
  } catch (...) {
    shown_ = "out of memory, also for the message";
  }
}

int report(const belay_session* session, Code code, std::string_view text) noexcept {
  last_of_thread.tell(text);
  if (session != nullptr) session->message.tell(text);
  return number_of(code);
}

const Error& kept(belay_session& session, const Error& error) {
  if (!session.unreported) session.unreported = error;
  return error;
}

int refuse(const belay_session* session, std::string_view call, std::string_view why) noexcept {
  return run(session,
             [&]() -> Result<void> { return fail(Code::invalid_argument, "{}: {}", call, why); });
}

int refuse_and_keep(belay_session* session, std::string_view call, std::string_view why) noexcept {
  return run(session, [&]() -> Result<void> {
    const Error error(Code::invalid_argument, fmt::format("{}: {}", call, why));
    return Unexpected(kept(*session, error));
  });
}

}  // namespace belay::c

const char* belay_message(const belay_session* session) {
  return session == nullptr ? belay::c::last_of_thread.text() : session->message.text();
}

const char* belay_code_name(int code) {
  if (code == BELAY_OK) return "ok";
  if (code < BELAY_OK || code > BELAY_BUSY) return "unknown";
  return belay::name_of(static_cast<belay::Code>(code - 1));
}
