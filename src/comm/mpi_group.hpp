// SPDX-License-Identifier: Apache-2.0
// The ranks of an MPI communicator as a Group.
//
// Each collective is started without blocking and then polled until its deadline: a few tests at
// once, then giving way to other threads, then sleeping up to 200 us at a time, so that ranks which
// share a processor leave it to the one that they wait for.
#pragma once

#include <belay/result.hpp>

#include "comm/group.hpp"
#include "os/clock.hpp"

#include <mpi.h>

#include <cstdint>
#include <memory>

namespace belay::ranks {

/// MPI cannot tell which peer is silent, and each rank finds out by itself: a rank that comes late
/// may still see its call succeed where the others got peer_lost. Lengths that differ between ranks
/// are not detected before MPI does. close() frees the duplicate; a group that is destroyed without
/// it, or that broke, leaves the duplicate to MPI.
class MpiGroup : public Group {
 public:
  /// The communicator that make_mpi_group() was given: the caller's, with the caller's error
  /// handler. The duplicate on which the group talks is never handed out.
  virtual MPI_Comm communicator() const = 0;
};

/// `most_neighbours`: so many ranks of a host, at most, share the memory of windows; 0: all of
/// them. Tests play hosts with it, between which puts go by messages. Collective over
/// `communicator`, which is duplicated and otherwise left alone; its error handler stays what it
/// is. The group is an MpiGroup. `clock` must outlive it. invalid_argument: MPI is not running, or
/// this is no intracommunicator. peer_lost: not all ranks of `communicator` called within
/// `timeout_ns`.
Result<std::unique_ptr<Group>> make_mpi_group(MPI_Comm communicator, std::uint64_t timeout_ns,
                                              os::Clock& clock, Rank most_neighbours = 0);

}  // namespace belay::ranks
