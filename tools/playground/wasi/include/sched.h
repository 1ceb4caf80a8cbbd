// WASI's <sched.h>, and what Linux' has beside it: no one knows which processors there are.
#pragma once

#include_next <sched.h>
#include <stddef.h>

typedef struct {
  unsigned char none;
} cpu_set_t;

static inline int sched_getaffinity(int process, size_t size, cpu_set_t* set) {
  (void)process, (void)size, (void)set;
  return -1;
}
#define CPU_COUNT(set) ((void)(set), 1)
