// SPDX-License-Identifier: Apache-2.0
// Sessions of MPI programs. Link Belay::mpi.
#pragma once

#include <belay/belay.hpp>

#include <mpi.h>

namespace belay {

/// Collective over `communicator`, which is duplicated and otherwise left alone. Call it after
/// MPI_Init and close() the session before MPI_Finalize. Any MPI thread level will do.
[[nodiscard]] BELAY_API Result<Session> open(MPI_Comm communicator, Options options = {});

/// The communicator of the ranks that compute: that of open(), or with `background = head` one
/// without the heads, which lives until close(). MPI_COMM_NULL on a head, and of a session that was
/// opened without a communicator.
BELAY_API MPI_Comm comm(const Session& session);

}  // namespace belay
