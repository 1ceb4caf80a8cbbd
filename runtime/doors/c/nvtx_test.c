/* What profilers learn of the C interface by NVTX: a range for each call. */
#define _XOPEN_SOURCE 700 /* realpath() */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mscclc.h"
#include "runtime/doors/c/check.h"

static const char kRanges[] =
    "mscclc: mscclc_comm_create\n"
    "mscclc: mscclc_allreduce of 8 bytes\n"
    "mscclc: mscclc_group_start\n"
    "mscclc: mscclc_broadcast of 16 bytes\n"
    "mscclc: mscclc_group_end\n"
    "mscclc: mscclc_barrier\n"
    "mscclc: mscclc_collective of 4 bytes\n"
    "mscclc: mscclc_comm_split\n"
    "mscclc: mscclc_comm_destroy\n"
    "mscclc: mscclc_comm_finalize\n"
    "mscclc: mscclc_comm_destroy\n";

/* Returns a pointer to an object, as ISO C has no way from it to one to a function. */
static void *symbol(void *library, const char *name) {
  void *const found = dlsym(library, name);
  CHECK(found != NULL);
  return found;
}

static void make_calls(void) {
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  mscclc_call_t wrong = MSCCLC_CALL_INIT;
  mscclc_unique_id_t id;
  mscclc_comm_t *comm = NULL, *child = NULL;
  mscclc_stream_t stream;
  float four[4] = {1, 2, 3, 4};
  config.device = MSCCLC_HOST;
  OK(mscclc_unique_id(&id));
  OK(mscclc_comm_create(&comm, 1, &id, 0, &config));
  OK(mscclc_stream_create(comm, &stream));
  OK(mscclc_allreduce(comm, four, four, 2, MSCCLC_F32, MSCCLC_SUM, stream));
  OK(mscclc_group_start());
  OK(mscclc_broadcast(comm, four, four, 4, MSCCLC_F32, 0, stream));
  OK(mscclc_group_end());
  OK(mscclc_barrier(comm, stream));
  wrong.kind = 99;
  wrong.count = 1;
  wrong.dtype = MSCCLC_F32;
  CHECK(mscclc_collective(comm, &wrong, stream) != MSCCLC_SUCCESS);
  OK(mscclc_comm_split(comm, 0, 0, &child, NULL));
  OK(mscclc_comm_destroy(child));
  OK(mscclc_stream_destroy(comm, stream));
  OK(mscclc_comm_finalize(comm));
  OK(mscclc_comm_destroy(comm));
}

static int problems;
static void find_problem(void *user, const char *line) {
  (void)user;
  if (strstr(line, "NVTX_INJECTION64_PATH") != NULL) ++problems;
}

/* With the argument "wrong" the profiler's library is none, with "pipe" a pipe: the log says so,
 * once a communicator. */
int main(int argc, char **argv) {
  char path[PATH_MAX];
  const char *(*seen)(void);
  int (*open)(void);
  void *library, *function;
  if (argc > 1) {
    const int pipe = strcmp(argv[1], "pipe") == 0;
    snprintf(path, sizeof path, "%s/pipe", pipe ? getenv("TEST_TMPDIR") : "/nowhere");
    CHECK(!pipe || mkfifo(path, 0600) == 0);
    CHECK(setenv("NVTX_INJECTION64_PATH", path, 1) == 0);
    CHECK(setenv("MSCCLC_DEBUG", "WARN", 1) == 0);
    OK(mscclc_set_log(find_problem, NULL));
    make_calls();
    OK(mscclc_set_log(NULL, NULL));
    CHECK(problems == 2); /* of the communicator and its child */
    return 0;
  }
  CHECK(realpath("tests/helpers/runtime/libnvtx_injection.so", path) != NULL);
  CHECK(setenv("NVTX_INJECTION64_PATH", path, 1) == 0);
  make_calls();
  library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL);
  function = symbol(library, "ranges_seen");
  memcpy(&seen, &function, sizeof seen);
  function = symbol(library, "ranges_open");
  memcpy(&open, &function, sizeof open);
  CHECK(open() == 0);
  if (strcmp(seen(), kRanges) != 0) fprintf(stderr, "%s", seen());
  CHECK(strcmp(seen(), kRanges) == 0);
  return 0;
}
