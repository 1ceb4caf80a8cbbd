/* What C tests ask of the fake NCCL. */
#pragma once

#include <dlfcn.h>
#include <stdlib.h>

#include "runtime/doors/c/check.h"

/* Calls of a function of the fake NCCL, which the library has loaded. */
static inline long calls_of_fake(const char *name) {
  long (*count)(const char *) = NULL;
  void *const fake = dlopen(getenv("MSCCLC_NCCL"), RTLD_NOW | RTLD_NOLOAD);
  CHECK(fake != NULL);
  *(void **)&count = dlsym(fake, "fakeNcclCalls");
  CHECK(count != NULL);
  return count(name);
}
