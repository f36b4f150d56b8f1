/* SPDX-License-Identifier: Apache-2.0 */
/* Heat creeps along a rod. Kill this program and start it again: it goes on where it was.
 * Try it with BELAY_INTERVAL=100ms; by itself Belay would hardly checkpoint so short a run. */
#include <belay/belay.h>

#include <stdio.h>
#include <string.h>

enum { CELLS = 10000, STEPS = 100000 };

static void advance(double* heat) {
  static double old[CELLS];
  memcpy(old, heat, sizeof old);
  for (int i = 1; i + 1 < CELLS; ++i)
    heat[i] = old[i] + 0.25 * (old[i - 1] - 2 * old[i] + old[i + 1]);
}

static int fail(const belay_session* session) {
  fprintf(stderr, "quickstart: %s\n", belay_message(session));
  return 1;
}

int main(void) {
  static double heat[CELLS] = {100.0}; /* hot at the left end, cold everywhere else */
  int step = 0;

  belay_session* session = NULL;
  if (belay_open(&session, NULL)) return fail(session);               /* belay */
  belay_protect(session, "step", &step, 1, BELAY_INT, 0, NULL);       /* belay */
  belay_protect(session, "heat", heat, CELLS, BELAY_DOUBLE, 0, NULL); /* belay */
  if (belay_latest(session) && belay_restore(session, NULL, NULL))    /* belay */
    return fail(session);
  printf("starting at step %d\n", step);
  while (step < STEPS) {
    advance(heat);
    ++step;
    if (belay_due(session)) belay_checkpoint(session, NULL); /* belay */
  }
  if (belay_close(session)) return fail(session); /* belay */
  belay_free(session);
  printf("after %d steps: %.9f at cell 100\n", step, heat[100]);
  return 0;
}
