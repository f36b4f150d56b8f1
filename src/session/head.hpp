// SPDX-License-Identifier: Apache-2.0
// A process that does the background work of some ranks of its node: what follows capture, from
// planning to the vote, for which it plays these ranks among the heads (comm/hub_group.hpp); and
// bringing versions to the global tier.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "codec/choice.hpp"
#include "comm/group.hpp"
#include "comm/hub_group.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "os/line.hpp"
#include "os/memory.hpp"
#include "session/drain_server.hpp"
#include "session/hand_over.hpp"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace belay::detail {

/// Everything that open() has prepared.
struct HeadParts {
  Settings settings;
  std::unique_ptr<Log> log;
  os::Clock* clock = nullptr;
  os::Files* files = nullptr;
  std::unique_ptr<ranks::Group> heads;
  std::vector<std::vector<Rank>> crews;  ///< of all heads
  std::map<Rank, os::Line::Received> joined;
  std::map<Rank, os::Line> lines;  ///< to the ranks of this head
  // With a global tier:
  std::vector<os::Line> drain_lines;  ///< to the same
  std::function<std::unique_ptr<codec::Chooser>()> make_chooser;
  unsigned encode_threads = 0;    ///< of a drain
  std::uint64_t drain_bytes = 0;  ///< memory of a drain, for extents
};

class Head {
 public:
  explicit Head(HeadParts parts);
  ~Head();

  /// Works until all ranks of this head have left: 0. Else the error is in the log: 1. Once.
  int serve();

 private:
  struct Charge;  ///< a rank that this head works for

  Result<void> answer();
  /// The next message of any rank that may still say something.
  Result<void> hear_next();
  Result<void> hear(Charge& charge, const os::Line::Received& received);
  bool all_have_ordered() const;
  /// Collective over the heads: every rank has ordered the same version.
  Result<void> sail();
  Result<void> work();
  Result<void> prepare(Charge& charge);

  HeadParts parts_;
  ranks::Hub hub_;
  std::map<Rank, std::unique_ptr<Charge>> charges_;
  std::vector<std::unique_ptr<session::DrainServer>> drains_;
  bool served_ = false;
};

}  // namespace belay::detail
