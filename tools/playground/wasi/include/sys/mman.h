// Of Linux' <sys/mman.h> what the compiler says to the system: hints, which WASI does not take.
#pragma once

#include <stddef.h>

#define MADV_HUGEPAGE 14

static inline int madvise(void* begin, size_t size, int hint) {
  (void)begin, (void)size, (void)hint;
  return -1;
}
