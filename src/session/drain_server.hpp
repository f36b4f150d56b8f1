// SPDX-License-Identifier: Apache-2.0
// In a head: brings versions of one rank's set to the global tier, as that rank orders them.
#pragma once

#include "base/log.hpp"
#include "codec/choice.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "os/line.hpp"
#include "session/hand_over.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

namespace belay::session {

class DrainServer {
 public:
  /// What it works with; all that is referred to outlives it.
  struct Means {
    os::Files& files;
    os::Clock& clock;
    Log& log;
    const NameMatch& match;
    std::unique_ptr<codec::Chooser> chooser;
    bool learns_bandwidth = true;
    unsigned encoders = 0;           ///< threads of a drain; 0: none
    std::uint64_t memory_bytes = 0;  ///< for extents on their way
    std::uint64_t timeout_ns = 0;    ///< after which the rank would take it for lost
  };

  DrainServer(os::Line line, Means means);
  /// Ends what is under way, in failure.
  ~DrainServer();

 private:
  /// Until the rank hangs up, or somebody does it for both.
  void serve();
  DrainReport answer(std::span<const std::byte> order);
  Result<DrainReport> drain(DrainOrder order);
  void run(Drain& drain);

  os::Line line_;
  Means means_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace belay::session
