/* One of two ranks, as its environment says, that makes calls by name, for places_test.cc:
 *
 *   by_name_rank mscclc LIBMSCCLC
 *   by_name_rank nccl LIBNCCL       meets at NCCL_COMM_ID
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mscclc.h"
#include "runtime/doors/nccl/abi/api.h"

enum { kCount = 3000 };
static int32_t in[kCount], out[2 * kCount];

static void* library;

static void fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

/* A function is no object for ISO C: its address is copied. */
static void find(void* function, const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) fail(name, "the library has no such function");
  memcpy(function, &found, sizeof found);
}

static void check_sum(const char* what) {
  for (int i = 0; i < kCount; ++i) {
    if (out[i] != 3 * i) fail(what, "a wrong sum");
  }
}
static void check_gather(void) {
  for (int i = 0; i < kCount; ++i) {
    if (out[i] != i || out[kCount + i] != 2 * i) fail("allgather", "a wrong row");
  }
}

static void by_mscclc(void) {
  mscclc_result_t (*create)(mscclc_comm_t**, const char*, const mscclc_config_t*);
  mscclc_result_t (*allreduce)(mscclc_comm_t*, const void*, void*, uint64_t, mscclc_dtype_t,
                               mscclc_op_t, mscclc_stream_t);
  mscclc_result_t (*allgather)(mscclc_comm_t*, const void*, void*, uint64_t, mscclc_dtype_t,
                               mscclc_stream_t);
  mscclc_result_t (*stream_create)(mscclc_comm_t*, mscclc_stream_t*);
  mscclc_result_t (*synchronize)(mscclc_comm_t*, mscclc_stream_t);
  mscclc_result_t (*destroy)(mscclc_comm_t*);
  const char* (*last_error)(void);
  find(&create, "mscclc_comm_create_env");
  find(&allreduce, "mscclc_allreduce");
  find(&allgather, "mscclc_allgather");
  find(&stream_create, "mscclc_stream_create");
  find(&synchronize, "mscclc_stream_synchronize");
  find(&destroy, "mscclc_comm_destroy");
  find(&last_error, "mscclc_last_error");
  mscclc_comm_t* comm = NULL;
  mscclc_stream_t stream = NULL;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  config.device = MSCCLC_HOST;
  if (create(&comm, "", &config) != MSCCLC_SUCCESS ||
      stream_create(comm, &stream) != MSCCLC_SUCCESS ||
      allreduce(comm, in, out, kCount, MSCCLC_I32, MSCCLC_SUM, stream) != MSCCLC_SUCCESS ||
      synchronize(comm, stream) != MSCCLC_SUCCESS) {
    fail("allreduce", last_error());
  }
  check_sum("allreduce");
  if (allgather(comm, in, out, kCount, MSCCLC_I32, stream) != MSCCLC_SUCCESS ||
      synchronize(comm, stream) != MSCCLC_SUCCESS) {
    fail("allgather", last_error());
  }
  check_gather();
  if (destroy(comm) != MSCCLC_SUCCESS) fail("destroy", last_error());
}

static void by_nccl(int rank) {
  ncclResult_t (*unique_id)(ncclUniqueId*);
  ncclResult_t (*init)(ncclComm_t*, int, ncclUniqueId, int);
  ncclResult_t (*allreduce)(const void*, void*, size_t, int, int, ncclComm_t, void*);
  ncclResult_t (*allgather)(const void*, void*, size_t, int, ncclComm_t, void*);
  ncclResult_t (*reduce)(const void*, void*, size_t, int, int, int, ncclComm_t, void*);
  ncclResult_t (*destroy)(ncclComm_t);
  const char* (*last_error)(ncclComm_t);
  find(&unique_id, "ncclGetUniqueId");
  find(&init, "ncclCommInitRank");
  find(&allreduce, "ncclAllReduce");
  find(&allgather, "ncclAllGather");
  find(&reduce, "ncclReduce");
  find(&destroy, "ncclCommDestroy");
  find(&last_error, "ncclGetLastError");
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  if (unique_id(&id) != ncclSuccess || init(&comm, 2, id, rank) != ncclSuccess ||
      allreduce(in, out, kCount, 2, 0, comm, NULL) != ncclSuccess) {
    fail("ncclAllReduce", last_error(NULL));
  }
  check_sum("allreduce");
  if (allgather(in, out, kCount, 2, comm, NULL) != ncclSuccess) {
    fail("ncclAllGather", last_error(NULL));
  }
  check_gather();
  if (reduce(in, out, kCount, 2, 0, 1, comm, NULL) != ncclSuccess) {
    fail("ncclReduce", last_error(NULL));
  }
  if (rank == 1) check_sum("ncclReduce");
  if (destroy(comm) != ncclSuccess) fail("ncclCommDestroy", last_error(NULL));
}

int main(int count, char** words) {
  const char* const rank = getenv("MSCCLC_RANK");
  if (count != 3 || rank == NULL) return 2;
  for (int i = 0; i < kCount; ++i) in[i] = (atoi(rank) + 1) * i;
  library = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail(words[2], dlerror());
  if (strcmp(words[1], "nccl") == 0) {
    by_nccl(atoi(rank));
  } else {
    by_mscclc();
  }
  return 0;
}
