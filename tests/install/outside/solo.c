/* SPDX-License-Identifier: Apache-2.0 */
/* Counts its starts. */
#include <belay/belay.h>

#include <stdio.h>

static int fail(const belay_session* session) {
  fprintf(stderr, "%s\n", belay_message(session));
  return 1;
}

int main(void) {
  int starts = 0;
  belay_session* session = NULL;
  if (belay_open(&session, NULL)) return fail(session);
  belay_protect(session, "starts", &starts, 1, BELAY_INT, 0, NULL);
  if (belay_latest(session) && belay_restore(session, NULL, NULL)) return fail(session);
  ++starts;
  if (belay_due(session)) belay_checkpoint(session, NULL);
  if (belay_close(session)) return fail(session);
  belay_free(session);
  printf("%d\n", starts);
  return 0;
}
