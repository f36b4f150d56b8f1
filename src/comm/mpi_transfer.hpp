// SPDX-License-Identifier: Apache-2.0
// Bytes of any length from ranks to ranks over MPI, by messages of bounded size.
#pragma once

#include <belay/result.hpp>

#include "comm/group.hpp"
#include "comm/mpi_link.hpp"
#include "comm/window.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace belay::ranks {

/// Where the bytes of one Put of another rank go.
struct Arrival {
  Rank source = 0;
  std::span<std::byte> place;
};

/// Puts of this rank, and arrivals here. Between two ranks, puts in the order of their offsets and
/// arrivals in the order of their places have the same lengths, but for those of no bytes.
struct Shipment {
  std::vector<const Put*> sends;  ///< not to oneself
  std::vector<Arrival> arrivals;  ///< not from oneself
  int tag = 0;
};

class Traffic;

/// Moves shipments, one after the other. What is sent is copied first, so that the caller's memory
/// is not touched after finish(), however it ends. The places of arrivals are: after a failure MPI
/// may write into them at any time, so they must be given up, not freed. A failure breaks the link.
class Transfer {
 public:
  explicit Transfer(Link& link);
  ~Transfer();

  /// Begins. What the shipment refers to must live until finish() returns.
  Result<void> start(const Shipment& shipment, const std::string& call);
  /// Ends what start() began. peer_lost when nothing was sent or has arrived for the time of the
  /// link's deadline.
  Result<void> finish();

 private:
  Result<void> check(Result<void> done);

  Link& link_;
  std::string call_;
  std::unique_ptr<Traffic> traffic_;
};

/// Group::exchange() over a link.
Result<std::vector<std::vector<std::byte>>> exchange_messages(Link& link,
                                                              std::span<const Message> out,
                                                              std::span<const Rank> from);

}  // namespace belay::ranks
