// SPDX-License-Identifier: Apache-2.0
// What the handles of <belay/belay.h> are inside, and how failures become codes and messages.
#pragma once

#include <belay/belay.h>
#include <belay/belay.hpp>

#include "base/try.hpp"

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay::c {

/// The text of a failure. Telling never fails, not even without memory.
class Message {
 public:
  void tell(std::string_view text) noexcept;
  const char* text() const noexcept { return shown_; }

 private:
  std::string kept_;
  const char* shown_ = "";
};

}  // namespace belay::c

struct belay_options {
  belay::Options options;
};

struct belay_session {
  explicit belay_session(belay::Session opened) : session(std::move(opened)) {}

  belay::Session session;
  mutable belay::c::Message message;
  std::optional<belay::Error> unreported;    ///< refused here, so that `session` does not know
  std::vector<belay::VersionInfo> versions;  ///< what belay_versions() saw
  std::string last_failure;                  ///< what belay_get_stats() shows
  std::vector<belay::CodecUse> codecs;
};

namespace belay::c {

constexpr int number_of(Code code) { return static_cast<int>(code) + 1; }

/// Tells session and thread, and gives the number of the code. `session` may be null.
BELAY_API int report(const belay_session* session, Code code, std::string_view text) noexcept;

/// Runs what may fail or throw; nothing gets out but a code.
template <class Work>
int run(const belay_session* session, Work&& work) noexcept {
  try {
    const Result<void> done = work();
    return done ? BELAY_OK : report(session, done.error().code(), done.error().message());
  } catch (const std::bad_alloc&) {
    return report(session, Code::no_space, "out of memory; free some, or use more nodes");
  } catch (const std::exception& thrown) {
    return report(session, Code::io, thrown.what());
  } catch (...) {
    return report(session, Code::io, "something was thrown that is no std::exception");
  }
}

/// `open(Options)` gives the Result<Session>.
template <class Open>
int open_with(belay_session** session, const belay_options* options, Open&& open) noexcept {
  return run(nullptr, [&]() -> Result<void> {
    if (session == nullptr)
      return fail(Code::invalid_argument, "open: there is no place to put the session into");
    *session = nullptr;
    BELAY_ASSIGN(Session opened, open(options == nullptr ? Options{} : options->options));
    *session = new belay_session(std::move(opened));
    return {};
  });
}

/// Keeps an error that `session.session` does not know for belay_wait() or belay_close(), and gives
/// it back.
const Error& kept(belay_session& session, const Error& error);

/// An argument that is refused before the session is asked.
int refuse(const belay_session* session, std::string_view call, std::string_view why) noexcept;
/// The same, and kept.
int refuse_and_keep(belay_session* session, std::string_view call, std::string_view why) noexcept;

inline constexpr std::string_view kNoSession = "the session is a null pointer";
inline constexpr std::string_view kNoName = "the name is a null pointer";

}  // namespace belay::c
