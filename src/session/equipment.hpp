// SPDX-License-Identifier: Apache-2.0
// What the stages of one session work with.
#pragma once

#include "base/log.hpp"
#include "base/settings.hpp"
#include "capture/staging.hpp"
#include "codec/choice.hpp"
#include "fingerprint/hasher.hpp"
#include "os/clock.hpp"
#include "os/parallel.hpp"
#include "session/worker.hpp"
#include "store/tier.hpp"

namespace belay::session {

/// References into the session that owns all of it.
struct Equipment {
  const Settings& settings;
  os::Clock& clock;
  Log& log;
  store::Tier& tier;
  const fingerprint::Hasher& hasher;
  os::Parallel& parallel;
  capture::Staging& staging;
  Worker& worker;
  codec::Chooser* chooser = nullptr;  ///< of codecs for segments; nullptr: they are raw
};

}  // namespace belay::session
