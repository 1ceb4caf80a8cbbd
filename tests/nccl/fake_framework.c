/* How libraries of frameworks come by NCCL, for integration_test.sh: linked, as libtorch_cuda.so
 * is, and by name while they run, as XLA's plug-in does. Each says in which file it finds it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "runtime/doors/nccl/abi/api.h"

static const char* file_of(const void* function) {
  Dl_info info;
  return function != NULL && dladdr(function, &info) != 0 ? info.dli_fname : "nowhere";
}

const char* linked_nccl(void) { return file_of((const void*)ncclAllReduce); }

const char* named_nccl(void) {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  return library == NULL ? "nowhere" : file_of(dlsym(library, "ncclAllReduce"));
}
