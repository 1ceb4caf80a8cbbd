/* What C tests of the interface check by: a condition that does not hold ends the process, with the
 * last error of the library. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/doors/c/mscclc.h"

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, mscclc_last_error()); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)
#define OK(call) CHECK((call) == MSCCLC_SUCCESS)

/* The launch is a wrong argument, and its error has this text. */
static inline void check_refused(mscclc_plan_t *plan, const mscclc_call_t *call, size_t bytes,
                                 mscclc_stream_t stream, const char *text) {
  CHECK(mscclc_plan_launch(plan, call, bytes, stream) == MSCCLC_INVALID_ARGUMENT);
  if (strstr(mscclc_last_error(), text) == NULL) {
    fprintf(stderr, "said: %s\nnot: %s\n", mscclc_last_error(), text);
    exit(1);
  }
}
