/* GEMMs that overlap by (a fake of) cuBLASMp: the same values as one after the other, for every
 * kind and layout that it serves, and errors for what it does not. Two ranks of the host device. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mscclc.h"
#include "runtime/doors/c/check.h"

enum { kRanks = 2, kRows = 6, kDepth = 5, kWeights = 2, kRuns = 2 };
/* Floats of each matrix's place, in whole 16 bytes. */
enum { kPlace = 64, kPlaces = 1 + 3 * kWeights };

static const uint64_t columns[kWeights] = {3, 4};
static mscclc_unique_id_t id;

static void check_said(mscclc_result_t result, mscclc_result_t expected, const char *text) {
  CHECK(result == expected);
  if (strstr(mscclc_last_error(), text) == NULL) {
    fprintf(stderr, "said: %s\nnot: %s\n", mscclc_last_error(), text);
    exit(1);
  }
}

static mscclc_overlap_config_t config_of(mscclc_overlap_kind_t kind, int transposed) {
  mscclc_overlap_config_t config = MSCCLC_OVERLAP_CONFIG_INIT;
  config.kind = kind;
  config.m = kRows;
  config.k = kDepth;
  config.n = columns;
  config.weights = kind == MSCCLC_ALLGATHER_GEMM ? kWeights : 1;
  config.b_transposed = transposed;
  config.a_dtype = config.b_dtype = config.out_dtype = MSCCLC_F32;
  config.order = MSCCLC_ORDER_ANY;
  config.bias = 1;
  return config;
}

/* Whole numbers, so that no sum is rounded: places of A, then of B, bias and out by weight. */
static mscclc_overlap_call_t call_of(float *places, const void **b, const void **bias, void **out) {
  mscclc_overlap_call_t call = MSCCLC_OVERLAP_CALL_INIT;
  int w;
  for (w = 0; w < kWeights; ++w) {
    b[w] = places + (1 + w) * kPlace;
    bias[w] = places + (1 + kWeights + w) * kPlace;
    out[w] = places + (1 + 2 * kWeights + w) * kPlace;
  }
  call.a = places;
  call.b = b;
  call.bias = bias;
  call.out = out;
  return call;
}

static void fill(float *places, uint32_t rank, mscclc_overlap_kind_t kind) {
  const int given = (1 + 2 * kWeights) * kPlace;
  const int shared = kind == MSCCLC_ALLGATHER_GEMM ? 0 : (1 + kWeights) * kPlace; /* one bias */
  int i;
  for (i = 0; i < given; ++i) {
    const uint32_t differs = shared == 0 || i < shared ? rank * 7u : 0;
    places[i] = (float)((i * 5u + differs + i / 3u) % 11u) - 4;
  }
  for (; i < kPlaces * kPlace; ++i) places[i] = -1;
}

static void run_both(mscclc_comm_t *comm, mscclc_overlap_config_t config, float *places,
                     uint32_t rank, mscclc_stream_t stream) {
  const char *const backends[2] = {"serial", "cublasmp"};
  float results[2][kWeights * kPlace];
  const void *b[kWeights], *bias[kWeights];
  void *out[kWeights];
  const mscclc_overlap_call_t call = call_of(places, b, bias, out);
  int which, run;
  for (which = 0; which < 2; ++which) {
    mscclc_overlap_t *overlap = NULL;
    config.backend = backends[which];
    OK(mscclc_overlap_create(comm, &config, &overlap));
    for (run = 0; run < kRuns; ++run) {
      fill(places, rank, config.kind);
      OK(mscclc_overlap_run(overlap, &call, stream));
      OK(mscclc_stream_synchronize(comm, stream));
    }
    memcpy(results[which], out[0], sizeof results[which]);
    OK(mscclc_overlap_destroy(overlap));
  }
  CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
}

static void check_refused_configs(mscclc_comm_t *comm) {
  mscclc_overlap_t *overlap = NULL;
  mscclc_overlap_config_t config;
#define REFUSED(of, change, result, text)                                     \
  do {                                                                        \
    config = config_of(of, 1);                                                \
    config.backend = "cublasmp";                                              \
    change;                                                                   \
    check_said(mscclc_overlap_create(comm, &config, &overlap), result, text); \
    CHECK(overlap == NULL);                                                   \
  } while (0)
  REFUSED(MSCCLC_ALLTOALL_GEMM, (void)0, MSCCLC_INVALID_ARGUMENT,
          "the backend 'cublasmp' cannot serve: it has no GEMM after an all-to-all");
  REFUSED(MSCCLC_ALLGATHER_GEMM, config.chunks = 2, MSCCLC_INVALID_ARGUMENT,
          "it takes chunks of its own, so 'chunks' must be 0; it is 2");
  REFUSED(MSCCLC_GEMM_ALLREDUCE, config.order = MSCCLC_ORDER_REPLICATED, MSCCLC_INVALID_ARGUMENT,
          "the order must be 'replicated', which the backend 'cublasmp' does not keep");
  REFUSED(MSCCLC_GEMM_REDUCESCATTER, config.order = MSCCLC_ORDER_RANKS, MSCCLC_INVALID_ARGUMENT,
          "the order must be 'ranks', which the backend 'cublasmp' does not keep");
#undef REFUSED
}

/* A run that asks for more than the backend has is refused on all ranks, and does nothing. */
static void check_no_gathered(mscclc_comm_t *comm, float *places, mscclc_stream_t stream) {
  const void *b[kWeights], *bias[kWeights];
  void *out[kWeights];
  mscclc_overlap_call_t call = call_of(places, b, bias, out);
  mscclc_overlap_config_t config = config_of(MSCCLC_ALLGATHER_GEMM, 1);
  mscclc_overlap_t *overlap = NULL;
  size_t bytes = 1;
  config.backend = "cublasmp";
  config.budget = 8;
  config.order = MSCCLC_ORDER_DEFAULT;
  OK(mscclc_overlap_create(comm, &config, &overlap));
  OK(mscclc_overlap_workspace(overlap, &bytes));
  CHECK(bytes == 0);
  call.gathered = places;
  check_said(mscclc_overlap_run(overlap, &call, stream), MSCCLC_INVALID_ARGUMENT,
             "'gathered' must be NULL: the backend keeps what it gathers");
  call.gathered = NULL;
  OK(mscclc_overlap_run(overlap, &call, stream));
  OK(mscclc_stream_synchronize(comm, stream));
  OK(mscclc_overlap_destroy(overlap));
}

/* What the library refuses comes back with its word for it, and ends only that call. */
static void check_refused_by_the_library(mscclc_comm_t *comm, float *places, uint32_t rank,
                                         mscclc_stream_t stream) {
  mscclc_overlap_config_t config = config_of(MSCCLC_GEMM_ALLREDUCE, 1);
  mscclc_overlap_t *overlap = NULL;
  config.backend = "cublasmp";
  config.budget = 13; /* which the fake does not take */
  check_said(mscclc_overlap_create(comm, &config, &overlap), MSCCLC_PEER_FAILED,
             "cuBLASMp cannot make such a product: CUBLASMP_STATUS_NOT_SUPPORTED (7)");
  OK(mscclc_comm_async_error(comm));
  run_both(comm, config_of(MSCCLC_GEMM_ALLREDUCE, 1), places, rank, stream);
  config = config_of(MSCCLC_GEMM_REDUCESCATTER, 1);
  config.backend = "cublasmp";
  config.a_dtype = config.b_dtype = config.out_dtype = MSCCLC_BF16;
  check_said(mscclc_overlap_create(comm, &config, &overlap), MSCCLC_PEER_FAILED,
             "cuBLASMp cannot describe the product: CUBLASMP_STATUS_NOT_SUPPORTED (7)");
  run_both(comm, config_of(MSCCLC_GEMM_REDUCESCATTER, 1), places, rank, stream);
}

static void *run_rank(void *argument) {
  const mscclc_overlap_kind_t kinds[3] = {MSCCLC_ALLGATHER_GEMM, MSCCLC_GEMM_REDUCESCATTER,
                                          MSCCLC_GEMM_ALLREDUCE};
  const uint32_t rank = (uint32_t)(uintptr_t)argument;
  mscclc_config_t comm_config = MSCCLC_CONFIG_INIT;
  mscclc_comm_t *comm = NULL;
  mscclc_stream_t stream = NULL;
  mscclc_memory_t *memory = NULL;
  int kind, transposed;
  comm_config.device = MSCCLC_HOST;
  OK(mscclc_comm_create(&comm, kRanks, &id, rank, &comm_config));
  OK(mscclc_stream_create(comm, &stream));
  OK(mscclc_memory_create(comm, kPlaces * kPlace * sizeof(float), &memory));
  for (kind = 0; kind < 3; ++kind) {
    for (transposed = 0; transposed < 2; ++transposed) {
      run_both(comm, config_of(kinds[kind], transposed), mscclc_memory_address(memory), rank,
               stream);
    }
  }
  check_refused_configs(comm);
  check_no_gathered(comm, mscclc_memory_address(memory), stream);
  check_refused_by_the_library(comm, mscclc_memory_address(memory), rank, stream);
  OK(mscclc_memory_release(memory));
  (void)mscclc_stream_destroy(comm, stream);
  (void)mscclc_comm_destroy(comm);
  return NULL;
}

/* One rank gets no room: neither may destroy what all ranks destroy together. */
static void *make_without_room(void *argument) {
  const uint32_t rank = (uint32_t)(uintptr_t)argument;
  mscclc_config_t comm_config = MSCCLC_CONFIG_INIT;
  mscclc_overlap_config_t config = config_of(MSCCLC_ALLGATHER_GEMM, 1);
  mscclc_overlap_t *overlap = NULL;
  mscclc_comm_t *comm = NULL;
  comm_config.device = MSCCLC_HOST;
  OK(mscclc_comm_create(&comm, kRanks, &id, rank, &comm_config));
  config.backend = "cublasmp";
  CHECK(mscclc_overlap_create(comm, &config, &overlap) != MSCCLC_SUCCESS);
  CHECK(rank == 0 || strstr(mscclc_last_error(), "cuBLASMp cannot make room for products") != NULL);
  CHECK(mscclc_comm_async_error(comm) != MSCCLC_SUCCESS);
  OK(mscclc_comm_destroy(comm));
  return NULL;
}

/* Calls of a function of the fake NCCL, which the library has loaded. */
static long calls_of_fake(const char *name) {
  long (*count)(const char *) = NULL;
  void *const fake = dlopen(getenv("MSCCLC_NCCL"), RTLD_NOW | RTLD_NOLOAD);
  CHECK(fake != NULL);
  *(void **)&count = dlsym(fake, "fakeNcclCalls");
  CHECK(count != NULL);
  return count(name);
}

static void on_all_ranks(void *(*body)(void *)) {
  pthread_t ranks[kRanks];
  uintptr_t r;
  OK(mscclc_unique_id(&id));
  for (r = 0; r < kRanks; ++r) CHECK(pthread_create(&ranks[r], NULL, body, (void *)r) == 0);
  for (r = 0; r < kRanks; ++r) pthread_join(ranks[r], NULL);
}

/* Before 2.29.2 NCCL lacks what the library calls. */
static void check_old_nccl(const char *text) {
  static const char why[] = "not there: it needs NCCL 2.29.2 or later; ";
  mscclc_overlap_config_t config = config_of(MSCCLC_ALLGATHER_GEMM, 1);
  mscclc_overlap_t *overlap = NULL;
  CHECK(strstr(text, why) != NULL && strstr(text, "/22809/libnccl.so.2 is 2.28.9") != NULL);
  config.backend = "cublasmp";
  config.device = MSCCLC_HOST;
  check_said(mscclc_overlap_create(NULL, &config, &overlap), MSCCLC_INVALID_ARGUMENT, why);
}

int main(void) {
  long aborted, destroyed;
  char *text = NULL;
  OK(mscclc_overlap_backends(MSCCLC_HOST, &text));
  if (strstr(getenv("MSCCLC_NCCL"), "/22809/") != NULL) {
    check_old_nccl(text);
    mscclc_free(text);
    return 0;
  }
  CHECK(strstr(text, "{\"name\": \"cublasmp\", \"available\": true, \"why\": \"cuBLASMp's") !=
        NULL);
  mscclc_free(text);
  on_all_ranks(run_rank);
  aborted = calls_of_fake("CommAbort");
  destroyed = calls_of_fake("CommDestroy");
  setenv("FAKE_CUBLASMP_ROOMLESS", "1", 1);
  on_all_ranks(make_without_room);
  CHECK(calls_of_fake("CommAbort") == aborted + kRanks);
  CHECK(calls_of_fake("CommDestroy") == destroyed);
  return 0;
}
