/* GEMMs that overlap by (fakes of) NCCL and cuBLASMp: the same values as one after the other, for
 * every kind and layout that each serves, and errors for what it does not; one communicator of
 * NCCL's for all objects. Two ranks of the host device. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mscclc.h"
#include "runtime/doors/c/check.h"
#include "runtime/doors/c/fake_nccl_test.h"

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

static int gathers(mscclc_overlap_kind_t kind) {
  return kind == MSCCLC_ALLGATHER_GEMM || kind == MSCCLC_ALLTOALL_GEMM;
}

static mscclc_overlap_config_t config_of(mscclc_overlap_kind_t kind, int transposed) {
  mscclc_overlap_config_t config = MSCCLC_OVERLAP_CONFIG_INIT;
  config.kind = kind;
  config.m = kRows;
  config.k = kDepth;
  config.n = columns;
  config.weights = gathers(kind) ? kWeights : 1;
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

static void fill(float *places, uint32_t rank, const mscclc_overlap_config_t *config) {
  const int given = (1 + 2 * kWeights) * kPlace;
  const int shared = gathers(config->kind) ? 0 : (1 + kWeights) * kPlace; /* one bias */
  const size_t bytes = config->a_dtype == MSCCLC_F32 ? 4 : config->a_dtype == MSCCLC_E4M3 ? 1 : 2;
  int i;
  for (i = 0; i < given; ++i) {
    const uint32_t differs = shared == 0 || i < shared ? rank * 7u : 0;
    places[i] = (float)((i * 5u + differs + i / 3u) % 11u) - 4;
  }
  for (; i < kPlaces * kPlace; ++i) places[i] = -1;
  if (bytes == sizeof *places) return;
  for (i = 0; i < given; ++i) { /* their upper bytes are small numbers of all types */
    char *const place = (char *)(places + i / kPlace * kPlace);
    memmove(place + (size_t)(i % kPlace) * bytes, (char *)(places + i + 1) - bytes, bytes);
  }
}

/* Runs an object; what comes out of it goes to `result`. */
static void run_object(mscclc_comm_t *comm, mscclc_overlap_t *overlap,
                       const mscclc_overlap_config_t *config, float *places, uint32_t rank,
                       mscclc_stream_t stream, float *result) {
  const void *b[kWeights], *bias[kWeights];
  void *out[kWeights];
  const mscclc_overlap_call_t call = call_of(places, b, bias, out);
  int run;
  for (run = 0; run < kRuns; ++run) {
    fill(places, rank, config);
    OK(mscclc_overlap_run(overlap, &call, stream));
    OK(mscclc_stream_synchronize(comm, stream));
  }
  memcpy(result, out[0], kWeights * kPlace * sizeof *result);
}

static void run_by(const char *backend, mscclc_comm_t *comm, mscclc_overlap_config_t config,
                   float *places, uint32_t rank, mscclc_stream_t stream, float *result) {
  mscclc_overlap_t *overlap = NULL;
  config.backend = backend;
  OK(mscclc_overlap_create(comm, &config, &overlap));
  run_object(comm, overlap, &config, places, rank, stream, result);
  OK(mscclc_overlap_destroy(overlap));
}

static void run_both(const char *backend, mscclc_comm_t *comm, mscclc_overlap_config_t config,
                     float *places, uint32_t rank, mscclc_stream_t stream) {
  float serial[kWeights * kPlace], other[kWeights * kPlace];
  run_by("serial", comm, config, places, rank, stream, serial);
  run_by(backend, comm, config, places, rank, stream, other);
  CHECK(memcmp(serial, other, sizeof serial) == 0);
}

/* Every kind and type that it adds up by NCCL. */
static void run_types_by_nccl(mscclc_comm_t *comm, float *places, uint32_t rank,
                              mscclc_stream_t stream) {
  const mscclc_overlap_kind_t kinds[4] = {MSCCLC_ALLGATHER_GEMM, MSCCLC_GEMM_REDUCESCATTER,
                                          MSCCLC_GEMM_ALLREDUCE, MSCCLC_ALLTOALL_GEMM};
  const mscclc_dtype_t types[4] = {MSCCLC_F32, MSCCLC_F16, MSCCLC_BF16, MSCCLC_E4M3};
  const mscclc_dtype_t outs[4] = {MSCCLC_F32, MSCCLC_F16, MSCCLC_BF16, MSCCLC_BF16};
  int kind, type, transposed;
  for (kind = 0; kind < 4; ++kind) {
    for (type = 0; type < 4; ++type) {
      for (transposed = 0; transposed < 2; ++transposed) {
        mscclc_overlap_config_t config = config_of(kinds[kind], transposed);
        config.a_dtype = config.b_dtype = types[type];
        config.out_dtype = outs[type];
        run_both("nccl", comm, config, places, rank, stream);
      }
    }
  }
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
  run_both("cublasmp", comm, config_of(MSCCLC_GEMM_ALLREDUCE, 1), places, rank, stream);
  config = config_of(MSCCLC_GEMM_REDUCESCATTER, 1);
  config.backend = "cublasmp";
  config.a_dtype = config.b_dtype = config.out_dtype = MSCCLC_BF16;
  check_said(mscclc_overlap_create(comm, &config, &overlap), MSCCLC_PEER_FAILED,
             "cuBLASMp cannot describe the product: CUBLASMP_STATUS_NOT_SUPPORTED (7)");
  run_both("cublasmp", comm, config_of(MSCCLC_GEMM_REDUCESCATTER, 1), places, rank, stream);
}

/* A rank of the host device, with memory for its matrices. */
typedef struct {
  uint32_t number;
  mscclc_comm_t *comm;
  mscclc_stream_t stream;
  mscclc_memory_t *memory;
  float *places;
} rank_t;

static rank_t open_rank(void *number) {
  rank_t it = {(uint32_t)(uintptr_t)number, NULL, NULL, NULL, NULL};
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  config.device = MSCCLC_HOST;
  OK(mscclc_comm_create(&it.comm, kRanks, &id, it.number, &config));
  OK(mscclc_stream_create(it.comm, &it.stream));
  OK(mscclc_memory_create(it.comm, kPlaces * kPlace * sizeof(float), &it.memory));
  it.places = mscclc_memory_address(it.memory);
  return it;
}

static void close_rank(const rank_t *it) {
  OK(mscclc_memory_release(it->memory));
  (void)mscclc_stream_destroy(it->comm, it->stream);
  (void)mscclc_comm_destroy(it->comm);
}

static void *run_rank(void *argument) {
  const mscclc_overlap_kind_t kinds[3] = {MSCCLC_ALLGATHER_GEMM, MSCCLC_GEMM_REDUCESCATTER,
                                          MSCCLC_GEMM_ALLREDUCE};
  const rank_t it = open_rank(argument);
  int kind, transposed;
  for (kind = 0; kind < 3; ++kind) {
    for (transposed = 0; transposed < 2; ++transposed) {
      run_both("cublasmp", it.comm, config_of(kinds[kind], transposed), it.places, it.number,
               it.stream);
    }
  }
  run_types_by_nccl(it.comm, it.places, it.number, it.stream);
  check_refused_configs(it.comm);
  check_no_gathered(it.comm, it.places, it.stream);
  check_refused_by_the_library(it.comm, it.places, it.number, it.stream);
  close_rank(&it);
  return NULL;
}

static mscclc_overlap_t *sum_by(const rank_t *it, const char *backend) {
  mscclc_overlap_config_t config = config_of(MSCCLC_GEMM_REDUCESCATTER, 0);
  mscclc_overlap_t *overlap = NULL;
  config.backend = backend;
  OK(mscclc_overlap_create(it->comm, &config, &overlap));
  return overlap;
}

static void check_sum(const rank_t *it, mscclc_overlap_t *overlap, const float *right) {
  const mscclc_overlap_config_t config = config_of(MSCCLC_GEMM_REDUCESCATTER, 0);
  float result[kWeights * kPlace];
  run_object(it->comm, overlap, &config, it->places, it->number, it->stream, result);
  CHECK(memcmp(right, result, sizeof result) == 0);
}

/* Objects that are alive at once have one communicator of NCCL's, whichever goes first. */
static void *share_nccl(void *argument) {
  const rank_t it = open_rank(argument);
  mscclc_overlap_config_t refused = config_of(MSCCLC_GEMM_ALLREDUCE, 1);
  mscclc_overlap_t *first = sum_by(&it, "nccl"), *second = sum_by(&it, "cublasmp");
  mscclc_overlap_t *other = sum_by(&it, "cublasmp");
  mscclc_overlap_t *third = sum_by(&it, "nccl"), *fourth = NULL;
  float right[kWeights * kPlace];
  run_by("serial", it.comm, config_of(MSCCLC_GEMM_REDUCESCATTER, 0), it.places, it.number,
         it.stream, right);
  OK(mscclc_overlap_destroy(first));
  check_sum(&it, second, right);
  check_sum(&it, other, right);
  refused.backend = "cublasmp";
  refused.budget = 13;
  CHECK(mscclc_overlap_create(it.comm, &refused, &fourth) == MSCCLC_PEER_FAILED);
  OK(mscclc_overlap_destroy(second));
  check_sum(&it, other, right);
  OK(mscclc_overlap_destroy(other));
  check_sum(&it, third, right);
  /* Rank 1 still has it, and rank 0 no longer: both make another. */
  if (it.number == 0) OK(mscclc_overlap_destroy(third));
  fourth = sum_by(&it, "nccl");
  check_sum(&it, fourth, right);
  if (it.number == 1) OK(mscclc_overlap_destroy(third));
  check_sum(&it, fourth, right);
  OK(mscclc_overlap_destroy(fourth));
  close_rank(&it);
  return NULL;
}

static long aborts_awaited;
static pthread_barrier_t both_have_run;

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

/* It is aborted once, by whichever object learns it, and takes no more. */
static void *share_failed_nccl(void *argument) {
  const rank_t it = open_rank(argument);
  const void *b[kWeights], *bias[kWeights];
  void *out[kWeights];
  const mscclc_overlap_call_t call = call_of(it.places, b, bias, out);
  mscclc_overlap_config_t config = config_of(MSCCLC_GEMM_REDUCESCATTER, 0);
  mscclc_overlap_t *first = sum_by(&it, "nccl"), *second = sum_by(&it, "nccl"), *third = NULL;
  OK(mscclc_overlap_run(first, &call, it.stream));
  OK(mscclc_stream_synchronize(it.comm, it.stream));
  pthread_barrier_wait(&both_have_run);
  if (it.number == 1) OK(mscclc_comm_abort(it.comm, "a test"));
  while (calls_of_fake("CommAbort") < aborts_awaited) sched_yield();
  CHECK(mscclc_overlap_run(first, &call, it.stream) != MSCCLC_SUCCESS);
  CHECK(mscclc_overlap_run(second, &call, it.stream) != MSCCLC_SUCCESS);
  config.backend = "nccl";
  CHECK(mscclc_overlap_create(it.comm, &config, &third) != MSCCLC_SUCCESS);
  OK(mscclc_overlap_destroy(first));
  OK(mscclc_overlap_destroy(second));
  close_rank(&it);
  return NULL;
}

static void on_all_ranks(void *(*body)(void *)) {
  pthread_t ranks[kRanks];
  uintptr_t r;
  OK(mscclc_unique_id(&id));
  for (r = 0; r < kRanks; ++r) CHECK(pthread_create(&ranks[r], NULL, body, (void *)r) == 0);
  for (r = 0; r < kRanks; ++r) pthread_join(ranks[r], NULL);
}

static void check_shared(void) {
  const long made = calls_of_fake("CommInitRank"), ended = calls_of_fake("CommDestroy");
  const long aborted = calls_of_fake("CommAbort");
  on_all_ranks(share_nccl);
  CHECK(calls_of_fake("CommInitRank") == made + 2 * kRanks);
  CHECK(calls_of_fake("CommDestroy") == ended + 2 * kRanks);
  CHECK(calls_of_fake("CommAbort") == aborted);
  aborts_awaited = aborted + kRanks;
  CHECK(pthread_barrier_init(&both_have_run, NULL, kRanks) == 0);
  on_all_ranks(share_failed_nccl);
  CHECK(calls_of_fake("CommAbort") == aborted + kRanks);
  CHECK(calls_of_fake("CommDestroy") == ended + 2 * kRanks);
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
  CHECK((strstr(text,
                "; an object's first run cannot be captured: that needs NCCL 2.30.7 or "
                "later; ") != NULL) == (strstr(getenv("MSCCLC_NCCL"), "/22907/") != NULL));
  mscclc_free(text);
  on_all_ranks(run_rank);
  check_shared();
  aborted = calls_of_fake("CommAbort");
  destroyed = calls_of_fake("CommDestroy");
  setenv("FAKE_CUBLASMP_ROOMLESS", "1", 1);
  on_all_ranks(make_without_room);
  CHECK(calls_of_fake("CommAbort") == aborted + kRanks);
  CHECK(calls_of_fake("CommDestroy") == destroyed);
  return 0;
}
