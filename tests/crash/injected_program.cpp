// SPDX-License-Identifier: Apache-2.0
// The scenario as a program of one process, for strace to disturb. injected_program STORE
// BACKGROUND. Says which steps exist and where it started. Exit code 0: all is well, 1: a call
// failed and said why, 3: what came back was never saved.
#include "crash/scenario.hpp"

#include <cstdio>

namespace {

using namespace belay;

int stop(const Error& error) {
  std::fprintf(stderr, "%s: %s\n", name_of(error.code()), error.message().c_str());
  return error.message().find("never was") == std::string::npos ? 1 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Options options = crash::small_options(argv[1]);
  options.background = argv[2];
  auto session = crash::open_rank(os::posix_files(), ranks::make_solo_group(), options);
  if (!session) return stop(session.error());
  crash::State state;
  bool failed = false;
  const crash::Hooks hooks{.exists =
                               [](std::uint64_t step) {
                                 std::printf("exists %d\n", static_cast<int>(step));
                                 std::fflush(stdout);
                               },
                           .failed =
                               [&](const Error& error) {
                                 failed = true;
                                 (void)stop(error);
                               }};
  const auto started = crash::run_rank(*session, 0, state, hooks);
  if (!started) return stop(started.error());
  std::printf("started %d\n", static_cast<int>(*started));
  if (auto closed = session->close(); !closed) return stop(closed.error());
  return failed ? 1 : 0;
}
