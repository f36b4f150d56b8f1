/* SPDX-License-Identifier: Apache-2.0 */
/* Counts its starts on all ranks. */
#include <belay/mpi.h>

#include <stdio.h>

static int fail(const belay_session* session) {
  fprintf(stderr, "%s\n", belay_message(session));
  return 1;
}

static int run(void) {
  int starts = 0, rank = -1, sum = 0;
  MPI_Comm communicator;
  belay_session* session = NULL;
  if (belay_open_mpi(&session, MPI_COMM_WORLD, NULL)) return fail(session);
  belay_protect(session, "starts", &starts, 1, BELAY_INT, 0, NULL);
  if (belay_latest(session) && belay_restore(session, NULL, NULL)) return fail(session);
  ++starts;
  if (belay_due(session)) belay_checkpoint(session, NULL);
  if (belay_comm(session, &communicator)) return fail(session);
  MPI_Comm_rank(communicator, &rank);
  MPI_Reduce(&starts, &sum, 1, MPI_INT, MPI_SUM, 0, communicator);
  if (belay_close(session)) return fail(session);
  belay_free(session);
  if (rank == 0) printf("%d\n", sum);
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run();
  MPI_Finalize();
  return status;
}
