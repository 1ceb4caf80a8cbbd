/* What C tests of the interface check by: a condition that does not hold ends the process, with the
 * last error of the library. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "runtime/doors/c/mscclc.h"

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, mscclc_last_error()); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)
#define OK(call) CHECK((call) == MSCCLC_SUCCESS)
