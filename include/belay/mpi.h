/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of MPI programs in C99 and C++. Link Belay::mpi. */
#ifndef BELAY_MPI_H
#define BELAY_MPI_H

#include <belay/belay.h>

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* belay_open() for the ranks of `communicator`. Collective over it; it is duplicated and otherwise
 * left alone. Call it after MPI_Init and belay_close() before MPI_Finalize. Any MPI thread level
 * will do. */
BELAY_API int belay_open_mpi(belay_session** session, MPI_Comm communicator,
                             const belay_options* options);

/* *communicator: that of the ranks that compute. BELAY_INVALID_ARGUMENT, and MPI_COMM_NULL: the
 * session was opened without one. */
BELAY_API int belay_comm(const belay_session* session, MPI_Comm* communicator);

#ifdef __cplusplus
}
#endif

#endif
