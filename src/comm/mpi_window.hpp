// SPDX-License-Identifier: Apache-2.0
// Windows of an MPI group. Ranks that share memory copy straight into each other's; all others send
// messages, since nothing in MPI's one-sided calls can be awaited with a deadline
// (docs/decisions/0010-exchange.md).
#pragma once

#include <belay/result.hpp>

#include "comm/mpi_link.hpp"
#include "comm/window.hpp"

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace belay::ranks {

/// The ranks of a link that share memory with this one, itself included.
struct Neighbours {
  MPI_Comm communicator = MPI_COMM_NULL;  ///< freed with the link
  std::vector<Rank> ranks;                ///< of the link, by rank in `communicator`
};

/// Collective over the link. At most `most` ranks of a host are neighbours; 0: all of them.
/// Blocking: MPI has no such call that could be awaited.
Result<Neighbours> find_neighbours(Link& link, Rank most);

/// Collective: Group::open_window(). Blocking between neighbours, as above; all ranks of the link
/// meet before, so that a peer which is lost by then is noticed.
/// no_space, on all ranks: a rank has no memory, or a host too little in /dev/shm.
Result<std::unique_ptr<Window>> open_mpi_window(const std::shared_ptr<Link>& link,
                                                const Neighbours& neighbours, std::uint64_t bytes);

}  // namespace belay::ranks
