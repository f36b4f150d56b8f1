/* SPDX-License-Identifier: Apache-2.0 */
/* <belay/mpi.h> from C99, on any number of ranks, in an empty directory. */
#include <belay/mpi.h>

#include "check.h"

static void run(int expected_start) {
  belay_session* session = NULL;
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0, same = 0;
  int state[2] = {0, 0}; /* step, and something that differs between ranks */
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MUST(belay_open_mpi(&session, MPI_COMM_WORLD, NULL));
  MUST(belay_comm(session, &communicator));
  MPI_Comm_compare(communicator, MPI_COMM_WORLD, &same);
  CHECK(same == MPI_IDENT || same == MPI_CONGRUENT);
  MUST(belay_protect(session, "state", state, 2, BELAY_INT, 0, NULL));
  if (belay_latest(session)) MUST(belay_restore(session, NULL, NULL));
  CHECK(state[0] == expected_start);
  CHECK(state[1] == expected_start * rank);
  for (int i = 0; i < 3; ++i) {
    ++state[0];
    state[1] += rank;
    MUST(belay_checkpoint(session, NULL));
  }
  MUST(belay_close(session));
  belay_free(session);
}

static void failures_are_told(void) {
  belay_session* session = NULL;
  MPI_Comm communicator = MPI_COMM_WORLD;
  REFUSED(belay_open_mpi(NULL, MPI_COMM_WORLD, NULL), BELAY_INVALID_ARGUMENT, "no place");
  REFUSED(belay_open_mpi(&session, MPI_COMM_NULL, NULL), BELAY_INVALID_ARGUMENT, "communicator");
  CHECK(session == NULL);
  REFUSED(belay_comm(NULL, &communicator), BELAY_INVALID_ARGUMENT, "session");
  CHECK(communicator == MPI_COMM_NULL);
}

static void a_session_without_mpi_has_no_communicator(void) {
  belay_session* session = NULL;
  MPI_Comm communicator = MPI_COMM_WORLD;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  belay_options* options = belay_options_new();
  MUST(belay_options_set(options, "store", "alone"));
  MUST(belay_open(&session, options));
  belay_options_free(options);
  REFUSED(belay_comm(session, &communicator), BELAY_INVALID_ARGUMENT, "belay_open_mpi()");
  REFUSED(belay_comm(session, NULL), BELAY_INVALID_ARGUMENT, "no place");
  belay_free(session);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  failures_are_told();
  a_session_without_mpi_has_no_communicator();
  run(0);
  run(3);
  MPI_Finalize();
  return 0;
}
