/* SPDX-License-Identifier: Apache-2.0 */
/* What the C programs of this folder check with. */
#ifndef BELAY_TESTS_C_CHECK_H
#define BELAY_TESTS_C_CHECK_H

#include <belay/belay.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* The call succeeds. */
#define MUST(call)                                                      \
  do {                                                                  \
    const int must_code = (call);                                       \
    if (must_code != BELAY_OK) {                                        \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, \
              belay_code_name(must_code), belay_message(NULL));         \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

/* The call fails with this code, and the message says this word. */
#define REFUSED(call, code, word)                                                                 \
  do {                                                                                            \
    const int refused_code = (call);                                                              \
    if (refused_code != (code) || strstr(belay_message(NULL), (word)) == NULL) {                  \
      fprintf(stderr, "%s:%d: %s: %s, not %s with '%s': %s\n", __FILE__, __LINE__, #call,         \
              belay_code_name(refused_code), belay_code_name(code), (word), belay_message(NULL)); \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)

#endif
