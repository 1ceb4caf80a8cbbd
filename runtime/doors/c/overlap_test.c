/* GEMMs that overlap, from C: two ranks of the host device as threads. The object and its
 * communicator go in both orders; a product of the caller's; one rank without a communicator. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "mscclc.h"
#include "runtime/doors/c/check.h"
#include "runtime/doors/c/fake_nccl_test.h"

enum { kRanks = 2, kRows = 8, kDepth = 4, kColumns = 4, kRuns = 3 };

static mscclc_unique_id_t id;
static int products; /* made by product(), of both ranks */
static const char *measured_folder;
static mscclc_unique_id_t measured_ids[2];
static mscclc_registry_t *sound;

static void check_said(mscclc_result_t result, mscclc_result_t expected, const char *text) {
  CHECK(result == expected);
  if (strstr(mscclc_last_error(), text) == NULL) {
    fprintf(stderr, "said: %s\nnot: %s\n", mscclc_last_error(), text);
    exit(1);
  }
}

/* Plain, in f32. */
static int product(void *user, const mscclc_gemm_t *gemm, mscclc_stream_t stream) {
  const float *a = gemm->a, *b = gemm->b, *bias = gemm->bias;
  float *d = gemm->d;
  uint64_t m, n, k;
  (void)stream;
  if (gemm->size != sizeof *gemm || gemm->a_dtype != MSCCLC_F32) return 7;
  if (gemm->workspace_bytes != 100 || gemm->workspace == NULL) return 8;
  __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED);
  for (m = 0; m < gemm->m; ++m) {
    for (n = 0; n < gemm->n; ++n) {
      float sum = gemm->accumulate ? d[m * gemm->d_stride + n] : 0;
      for (k = 0; k < gemm->k; ++k) sum += a[m * gemm->a_stride + k] * b[k * gemm->b_stride + n];
      d[m * gemm->d_stride + n] = sum + (bias != NULL ? bias[n] : 0);
    }
  }
  return 0;
}

static mscclc_overlap_config_t config_of(mscclc_overlap_kind_t kind, const uint64_t *n) {
  mscclc_overlap_config_t config = MSCCLC_OVERLAP_CONFIG_INIT;
  config.kind = kind;
  config.m = kRows;
  config.k = kDepth;
  config.n = n;
  config.a_dtype = config.b_dtype = config.out_dtype = MSCCLC_F32;
  config.bias = 1;
  config.device = MSCCLC_HOST;
  return config;
}

/* A is 1, B is rank + 1: each product is 4 or 8, and their sum 12; the bias is the column. */
static void fill(float *matrices, uint32_t rank) {
  int i;
  for (i = 0; i < kRows * kDepth; ++i) matrices[i] = 1;
  for (i = 0; i < kDepth * kColumns; ++i) matrices[64 + i] = (float)(rank + 1);
  for (i = 0; i < kColumns; ++i) matrices[128 + i] = (float)i;
}

typedef struct pointers {
  const void *b, *bias;
  void *out;
} pointers_t;

static mscclc_overlap_call_t sum_of(float *matrices, pointers_t *to) {
  mscclc_overlap_call_t call = MSCCLC_OVERLAP_CALL_INIT;
  to->b = matrices + 64;
  to->bias = matrices + 128;
  to->out = matrices + 192;
  call.a = matrices;
  call.b = &to->b;
  call.bias = &to->bias;
  call.out = &to->out;
  return call;
}

static void run_sum(mscclc_overlap_t *overlap, mscclc_comm_t *comm, float *matrices,
                    mscclc_stream_t stream) {
  pointers_t to;
  mscclc_overlap_call_t call = sum_of(matrices, &to);
  int run, i;
  for (run = 0; run < kRuns; ++run) {
    memset(to.out, 0, kRows * kColumns * sizeof(float));
    OK(mscclc_overlap_run(overlap, &call, stream));
    OK(mscclc_stream_synchronize(comm, stream));
    for (i = 0; i < kRows * kColumns; ++i) {
      CHECK(matrices[192 + i] == (float)(12 + i % kColumns));
    }
  }
  check_said(mscclc_overlap_run(overlap, &call, NULL), MSCCLC_INVALID_ARGUMENT,
             "mscclc_overlap_run: the host device has no stream NULL");
  to.out = matrices + kDepth; /* the second row of A */
  check_said(mscclc_overlap_run(overlap, &call, stream), MSCCLC_INVALID_ARGUMENT,
             "'out[0]' must overlap nothing else of the call; it overlaps 'a'");
  call.a = NULL;
  check_said(mscclc_overlap_run(overlap, &call, stream), MSCCLC_INVALID_ARGUMENT,
             "gemm_allreduce: 'a' is missing");
}

static void check_explained(mscclc_overlap_t *overlap) {
  char *text = NULL;
  size_t bytes = 1;
  OK(mscclc_overlap_explain(overlap, &text));
  CHECK(strcmp(text,
               "{\"backend\": \"mscclc\", \"chunks\": 2, \"budget\": 16, \"why\": \"asked for by "
               "name\", \"memory\": 536}") == 0);
  mscclc_free(text);
  OK(mscclc_overlap_workspace(overlap, &bytes));
  CHECK(bytes == 256); /* 100 for products, in whole parts */
}

/* A rank of the host device, with its matrices in memory. */
static void open_rank(uint32_t rank, mscclc_comm_t **comm, mscclc_stream_t *stream,
                      mscclc_memory_t **memory) {
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  config.device = MSCCLC_HOST;
  OK(mscclc_comm_create(comm, kRanks, &id, rank, &config));
  OK(mscclc_stream_create(*comm, stream));
  OK(mscclc_memory_create(*comm, 4096, memory));
  fill(mscclc_memory_address(*memory), rank);
}

static void *run_rank(void *argument) {
  const uint32_t rank = (uint32_t)(uintptr_t)argument;
  const uint64_t n[2] = {kColumns, 2};
  mscclc_comm_t *comm = NULL;
  mscclc_stream_t stream = NULL;
  mscclc_memory_t *memory = NULL;
  mscclc_overlap_t *sum = NULL, *kept = NULL, *other = NULL;
  mscclc_overlap_config_t config = config_of(MSCCLC_GEMM_ALLREDUCE, n);
  mscclc_overlap_call_t call;
  pointers_t pointers;
  open_rank(rank, &comm, &stream, &memory);

  config.backend = "mscclc";
  config.gemm = product;
  config.gemm_user = &products;
  config.gemm_workspace_bytes = 100;
  OK(mscclc_overlap_create(comm, &config, &sum));
  check_explained(sum);
  run_sum(sum, comm, mscclc_memory_address(memory), stream);
  config.backend = "serial";
  OK(mscclc_overlap_create(comm, &config, &kept));
  run_sum(kept, comm, mscclc_memory_address(memory), stream);
  if (getenv("MSCCLC_NCCL") != NULL) {
    config.backend = "nccl";
    OK(mscclc_overlap_create(comm, &config, &sum));
    run_sum(sum, comm, mscclc_memory_address(memory), stream);
    config.order = MSCCLC_ORDER_RANKS;
    check_said(mscclc_overlap_create(comm, &config, &other), MSCCLC_INVALID_ARGUMENT,
               "the order must be 'ranks', which the backend 'nccl' does not keep");
    config.order = MSCCLC_ORDER_DEFAULT;
    OK(mscclc_overlap_destroy(sum));
  }

  /* A config that is wrong here is known there. */
  config.n = rank == 1 ? NULL : n;
  check_said(
      mscclc_overlap_create(comm, &config, &other),
      rank == 1 ? MSCCLC_INVALID_ARGUMENT : MSCCLC_PEER_FAILED,
      rank == 1 ? "mscclc_overlap_create: 'n' is NULL" : "rank 1 cannot do its part: 'n' is NULL");
  config.n = n;
  check_said(mscclc_overlap_create(comm, rank == 1 ? NULL : &config, &other),
             rank == 1 ? MSCCLC_INVALID_ARGUMENT : MSCCLC_PEER_FAILED,
             rank == 1 ? "mscclc_overlap_create: 'config' is NULL"
                       : "rank 1 cannot do its part: 'config' is NULL");
  check_said(mscclc_overlap_create(comm, &config, rank == 1 ? NULL : &other),
             rank == 1 ? MSCCLC_INVALID_ARGUMENT : MSCCLC_PEER_FAILED,
             rank == 1 ? "mscclc_overlap_create: 'overlap' is NULL"
                       : "rank 1 cannot do its part: 'overlap' is NULL");
  CHECK(other == NULL);

  /* One shape here, another there. */
  config.k = kDepth + rank;
  check_said(mscclc_overlap_create(comm, &config, &sum), MSCCLC_INVALID_USAGE,
             "ranks make different GEMMs: 'k' is 4 at rank 0 and 5 at rank 1");
  CHECK(sum == NULL);

  /* In both orders: one before the communicator, one after it. */
  config = config_of(MSCCLC_ALLGATHER_GEMM, n);
  config.weights = 2;
  OK(mscclc_overlap_create(comm, &config, &sum));
  OK(mscclc_overlap_destroy(sum));
  CHECK(mscclc_overlap_destroy(sum) == MSCCLC_INVALID_ARGUMENT);
  OK(mscclc_comm_finalize(comm));
  call = sum_of(mscclc_memory_address(memory), &pointers);
  check_said(mscclc_overlap_run(kept, &call, stream), MSCCLC_INVALID_USAGE,
             "mscclc_overlap_run: the communicator is finalized");
  OK(mscclc_memory_release(memory));
  OK(mscclc_stream_destroy(comm, stream));
  OK(mscclc_comm_destroy(comm));
  OK(mscclc_overlap_destroy(kept));
  return NULL;
}

/* From now on calls of a function of the fake NCCL wait, or no more. */
static void hold_in_fake(const char *name, int held) {
  void (*hold)(const char *, _Bool) = NULL;
  void *const fake = dlopen(getenv("MSCCLC_NCCL"), RTLD_NOW | RTLD_NOLOAD);
  CHECK(fake != NULL);
  *(void **)&hold = dlsym(fake, "fakeNcclHold");
  CHECK(hold != NULL);
  hold(name, held != 0);
}

static int no_product(void *user, const mscclc_gemm_t *gemm, mscclc_stream_t stream) {
  (void)user, (void)gemm, (void)stream;
  return 1;
}

/* A rank of an object of NCCL's collectives, of which one fails: at both, the next run does. */
static void *fail_with_nccl(void *argument) {
  const uint32_t rank = (uint32_t)(uintptr_t)argument;
  const int unmade = getenv("FAKE_NCCL_UNMADE") != NULL;
  const uint64_t n = kColumns;
  mscclc_comm_t *comm = NULL;
  mscclc_stream_t stream = NULL;
  mscclc_memory_t *memory = NULL;
  mscclc_overlap_t *sum = NULL;
  mscclc_overlap_config_t config = config_of(MSCCLC_GEMM_ALLREDUCE, &n);
  mscclc_overlap_call_t call;
  pointers_t pointers;
  open_rank(rank, &comm, &stream, &memory);
  call = sum_of(mscclc_memory_address(memory), &pointers);
  config.backend = "nccl";
  if (rank == 1) config.gemm = no_product;
  if (rank == 1 && unmade) {
    check_said(mscclc_overlap_create(comm, &config, &sum), MSCCLC_PEER_FAILED,
               "NCCL cannot make a communicator: a fake error");
  } else {
    OK(mscclc_overlap_create(comm, &config, &sum));
    if (unmade) {
      while (mscclc_comm_async_error(comm) == MSCCLC_SUCCESS) sched_yield();
    } else {
      (void)mscclc_overlap_run(sum, &call, stream); /* one rank learns later what failed */
    }
    CHECK(mscclc_overlap_run(sum, &call, stream) != MSCCLC_SUCCESS);
  }
  OK(mscclc_overlap_destroy(sum));
  OK(mscclc_stream_destroy(comm, stream));
  OK(mscclc_memory_release(memory));
  OK(mscclc_comm_destroy(comm));
  return NULL;
}

static long aborts_awaited;
static pthread_barrier_t both_have_run;
static mscclc_comm_t *aborted_in_nccl;

/* Such an object, and what its runs take. */
typedef struct {
  mscclc_comm_t *comm;
  mscclc_stream_t stream;
  mscclc_memory_t *memory;
  mscclc_overlap_t *sum;
  mscclc_overlap_call_t call;
  pointers_t pointers;
} nccl_sum_t;

static void open_sum(uint32_t rank, nccl_sum_t *it) {
  const uint64_t n = kColumns;
  mscclc_overlap_config_t config = config_of(MSCCLC_GEMM_ALLREDUCE, &n);
  open_rank(rank, &it->comm, &it->stream, &it->memory);
  config.backend = "nccl";
  OK(mscclc_overlap_create(it->comm, &config, &it->sum));
  it->call = sum_of(mscclc_memory_address(it->memory), &it->pointers);
}

/* Its next run fails, as the communicator has. */
static void fail_and_close_sum(nccl_sum_t *it) {
  CHECK(mscclc_overlap_run(it->sum, &it->call, it->stream) != MSCCLC_SUCCESS);
  OK(mscclc_overlap_destroy(it->sum));
  OK(mscclc_stream_destroy(it->comm, it->stream));
  OK(mscclc_memory_release(it->memory));
  OK(mscclc_comm_destroy(it->comm));
}

/* A rank of such an object that runs nothing once rank 1 has failed: a thread that waits for a
 * stream on which NCCL waits for rank 1 would not come to the next run. */
static void *await_abort_of_nccl(void *argument) {
  const uint32_t rank = (uint32_t)(uintptr_t)argument;
  nccl_sum_t it = {0};
  open_sum(rank, &it);
  OK(mscclc_overlap_run(it.sum, &it.call, it.stream));
  OK(mscclc_stream_synchronize(it.comm, it.stream));
  pthread_barrier_wait(&both_have_run);
  if (rank == 1) OK(mscclc_comm_abort(it.comm, "a test"));
  while (calls_of_fake("CommAbort") < aborts_awaited) sched_yield();
  fail_and_close_sum(&it);
  return NULL;
}

/* A rank of such an object that is still in NCCL's call when rank 0's communicator aborts. */
static void *wait_in_nccl(void *argument) {
  const uint32_t rank = (uint32_t)(uintptr_t)argument;
  nccl_sum_t it = {0};
  open_sum(rank, &it);
  if (rank == 0) aborted_in_nccl = it.comm;
  fail_and_close_sum(&it);
  return NULL;
}

static void run_alone(void) {
  const uint64_t n = kColumns;
  float matrices[256] __attribute__((aligned(16)));
  const void *b = matrices + 64, *bias = matrices + 128;
  void *out = matrices + 192;
  mscclc_overlap_config_t config = config_of(MSCCLC_GEMM_REDUCESCATTER, &n);
  mscclc_overlap_call_t call = MSCCLC_OVERLAP_CALL_INIT;
  mscclc_overlap_t *overlap = NULL;
  int i;
  fill(matrices, 1);
  OK(mscclc_overlap_create(NULL, &config, &overlap));
  call.a = matrices;
  call.b = &b;
  call.bias = &bias;
  call.out = &out;
  OK(mscclc_overlap_run(overlap, &call, NULL));
  for (i = 0; i < kRows * kColumns; ++i) CHECK(matrices[192 + i] == (float)(8 + i % kColumns));
  OK(mscclc_overlap_destroy(overlap));

  /* What a caller's function answers comes back. */
  config.gemm = product;
  config.gemm_user = &products;
  OK(mscclc_overlap_create(NULL, &config, &overlap));
  check_said(mscclc_overlap_run(overlap, &call, NULL), MSCCLC_SYSTEM_ERROR,
             "the caller's function for products answered 8 to m = 8, n = 4, k = 4");
  OK(mscclc_overlap_destroy(overlap));
}

/* What is written, a whole matrix of each, overlaps nothing; what is read may. */
static void check_overlaps(void) {
  const uint64_t n[2] = {kColumns, kColumns};
  float matrices[512] __attribute__((aligned(16)));
  const void *b[2] = {matrices + 64, matrices + 64}, *bias[2] = {matrices + 128, matrices + 144};
  void *out[2] = {matrices + 192, matrices + 192 + kRows * kColumns};
  mscclc_overlap_config_t config = config_of(MSCCLC_ALLGATHER_GEMM, n);
  mscclc_overlap_call_t call = MSCCLC_OVERLAP_CALL_INIT;
  mscclc_overlap_t *overlap = NULL;
  config.weights = 2;
  config.activation = MSCCLC_GELU;
  fill(matrices, 1);
  OK(mscclc_overlap_create(NULL, &config, &overlap));
  call.a = matrices;
  call.b = b;
  call.bias = bias;
  call.out = out;
  OK(mscclc_overlap_run(overlap, &call, NULL));
#define REFUSED(change, one, other)                                                         \
  do {                                                                                      \
    change;                                                                                 \
    check_said(mscclc_overlap_run(overlap, &call, NULL), MSCCLC_INVALID_ARGUMENT,           \
               "'" one "' must overlap nothing else of the call; it overlaps '" other "'"); \
  } while (0)
  REFUSED(out[1] = matrices + 192 + kRows * kColumns - 4, "out[1]", "out[0]");
  REFUSED(out[1] = matrices, "out[1]", "a");
  REFUSED(out[1] = matrices + 144, "out[1]", "bias[1]");
  out[1] = matrices + 192 + kRows * kColumns;
  REFUSED(call.gathered = matrices + 196, "out[0]", "gathered");
  REFUSED(call.gathered = matrices, "gathered", "a");
  call.gathered = matrices + 320;
  OK(mscclc_overlap_run(overlap, &call, NULL));
  REFUSED(call.pre_activation = out, "pre_activation[0]", "out[0]");
#undef REFUSED
  OK(mscclc_overlap_destroy(overlap));
}

/* GPUs that this library has no part for, and numbers of none. */
static void check_backends(void) {
  char *text = NULL;
  check_said(mscclc_overlap_backends(-5, &text), MSCCLC_INVALID_ARGUMENT,
             "'device' is -5, which is no GPU and not MSCCLC_HOST");
  CHECK(text == NULL);
  OK(mscclc_overlap_backends(0, &text));
  if (strstr(text, "true") == NULL) { /* making an object says the same */
    const char *const why = strstr(text, "built without") != NULL
                                ? "this mscclc was built without the GPU part"
                            : strstr(text, "cannot load") != NULL ? "cannot load the CUDA driver"
                                                                  : "GEMMs on GPUs need cuBLASLt";
    const uint64_t n = kColumns;
    mscclc_overlap_config_t config = config_of(MSCCLC_ALLGATHER_GEMM, &n);
    mscclc_overlap_t *overlap = NULL;
    const int none = strstr(text, "there is no cuda:0") != NULL; /* a driver without GPUs */
    CHECK(none || strstr(text, why) != NULL);
    config.device = 0;
    CHECK(mscclc_overlap_create(NULL, &config, &overlap) != MSCCLC_SUCCESS);
    CHECK(none || strstr(mscclc_last_error(), why) != NULL);
  } else {
    CHECK(strstr(text, "{\"name\": \"mscclc\", \"available\": true") != NULL);
  }
  mscclc_free(text);
  OK(mscclc_overlap_backends(99, &text));
  CHECK(strstr(text, "true") == NULL);
  mscclc_free(text);
}

static void check_refused_configs(void) {
  const uint64_t n = kColumns;
  mscclc_overlap_t *overlap = NULL;
  mscclc_overlap_config_t config;
#define REFUSED(change, text)                                                           \
  do {                                                                                  \
    config = config_of(MSCCLC_ALLGATHER_GEMM, &n);                                      \
    change;                                                                             \
    check_said(mscclc_overlap_create(NULL, &config, &overlap), MSCCLC_INVALID_ARGUMENT, \
               "mscclc_overlap_create: " text);                                         \
    CHECK(overlap == NULL);                                                             \
  } while (0)
  REFUSED(config.size = 3, "'config' is NULL, or has no size that this version knows");
  REFUSED(config.kind = 9, "'kind' must be 1 to 4; it is 9");
  REFUSED(config.n = NULL, "'n' is NULL");
  REFUSED(config.weights = 65, "'weights' must be 1 to 64; it is 65");
  REFUSED(config.a_dtype = 99, "'a_dtype' is 99, which is no type");
  REFUSED(config.order = 17, "'order' is 17, which is none");
  REFUSED(config.activation = 2, "'activation' must be 0 or 1; it is 2");
  config = config_of(MSCCLC_ALLGATHER_GEMM, &n);
  config.backend = "quick";
  check_said(
      mscclc_overlap_create(NULL, &config, &overlap), MSCCLC_INVALID_ARGUMENT,
      "there is no backend 'quick'; there are auto, mscclc, copy_engine, serial, nccl, cublasmp");
  check_said(mscclc_overlap_create(NULL, NULL, &overlap), MSCCLC_INVALID_ARGUMENT,
             "'config' is NULL");
  check_said(mscclc_overlap_run(NULL, NULL, NULL), MSCCLC_INVALID_ARGUMENT, "'overlap' is none");
  check_said(mscclc_overlap_backends(0, NULL), MSCCLC_INVALID_ARGUMENT, "'text' is NULL");
  OK(mscclc_overlap_destroy(NULL));
}

static void on_all_ranks(void *(*body)(void *)) {
  pthread_t ranks[kRanks];
  uintptr_t r;
  OK(mscclc_unique_id(&id));
  for (r = 0; r < kRanks; ++r) CHECK(pthread_create(&ranks[r], NULL, body, (void *)r) == 0);
  for (r = 0; r < kRanks; ++r) pthread_join(ranks[r], NULL);
}

/* What waits in another library for a rank that has failed is aborted. */
static void check_failures_with_nccl(void) {
  const long aborted = calls_of_fake("CommAbort"), ended = calls_of_fake("CommDestroy");
  on_all_ranks(fail_with_nccl); /* a product at rank 1 */
  CHECK(calls_of_fake("CommAbort") == aborted + 2);
  setenv("FAKE_NCCL_UNMADE", "1", 1);
  on_all_ranks(fail_with_nccl); /* the communicator at rank 1 */
  unsetenv("FAKE_NCCL_UNMADE");
  CHECK(calls_of_fake("CommAbort") == aborted + 3);
  aborts_awaited = aborted + 5;
  CHECK(pthread_barrier_init(&both_have_run, NULL, kRanks) == 0);
  on_all_ranks(await_abort_of_nccl);
  CHECK(calls_of_fake("CommAbort") == aborted + 5);
  CHECK(calls_of_fake("CommDestroy") == ended);
}

/* What waits in NCCL's call is ended by a revocation, and freed once it is out. */
static void check_revoked_calls(void) {
  const long aborted = calls_of_fake("CommAbort"), revoked = calls_of_fake("CommRevoke");
  const long called = calls_of_fake("AllReduce");
  pthread_t ranks[kRanks];
  uintptr_t r;
  hold_in_fake("AllReduce", 1);
  OK(mscclc_unique_id(&id));
  for (r = 0; r < kRanks; ++r) {
    CHECK(pthread_create(&ranks[r], NULL, wait_in_nccl, (void *)r) == 0);
  }
  while (calls_of_fake("AllReduce") < called + kRanks) sched_yield();
  OK(mscclc_comm_abort(aborted_in_nccl, "a test"));
  while (calls_of_fake("CommRevoke") < revoked + kRanks) sched_yield();
  CHECK(calls_of_fake("CommAbort") == aborted);
  hold_in_fake("AllReduce", 0);
  for (r = 0; r < kRanks; ++r) pthread_join(ranks[r], NULL);
  CHECK(calls_of_fake("CommAbort") == aborted + kRanks);
}

/* A folder of no plans, but with a row for GEMMs, of this number of ranks. */
static const char *write_measured(const char *ranks) {
  static char folder[512];
  char file[600];
  FILE *out = NULL;
  snprintf(folder, sizeof folder, "%s/measured", getenv("TEST_TMPDIR"));
  snprintf(file, sizeof file, "%s/overlap.json", folder);
  mkdir(folder, 0700);
  out = fopen(file, "w");
  CHECK(out != NULL);
  fprintf(
      out,
      "{\"rows\": [\n"
      "  {\"kind\": \"gemm_allreduce\", \"mode\": \"eager\", \"ranks\": %s, \"dtype\": \"f32\", "
      "\"rows\": [8, 8], \"flops_a_byte\": [0, 100], \"backend\": \"copy_engine\", "
      "\"chunks\": 2, \"budget\": 3}\n]}\n",
      ranks);
  CHECK(fclose(out) == 0);
  return folder;
}

/* Rank 1 follows MSCCLC_PLAN_PATH, which names a table that is wrong; rank 0 does not. */
static void *meet_broken_table(void *argument) {
  const uint32_t rank = (uint32_t)(uintptr_t)argument;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  mscclc_comm_t *comm = NULL;
  config.device = MSCCLC_HOST;
  config.registry = rank == 0 ? sound : NULL;
  check_said(mscclc_comm_create(&comm, kRanks, &id, rank, &config),
             rank == 0 ? MSCCLC_PEER_FAILED : MSCCLC_INVALID_ARGUMENT,
             rank == 0 ? "rank 1"
                       : "/measured/overlap.json: rows[0].ranks: error: ranks must be 2 to 65536; "
                         "it is 1");
  CHECK(comm == NULL);
  return NULL;
}

/* Before the process has a registry. */
static void check_broken_table(void) {
  OK(mscclc_registry_create(&sound));
  setenv("MSCCLC_PLAN_PATH", write_measured("1"), 1);
  on_all_ranks(meet_broken_table);
  unsetenv("MSCCLC_PLAN_PATH");
  OK(mscclc_registry_destroy(sound));
}

/* Rows of a folder that all ranks have are asked first; ranks that differ learn both choices. */
static void *take_measured(void *argument) {
  const uint32_t rank = (uint32_t)(uintptr_t)argument;
  const uint64_t n = kColumns;
  const mscclc_overlap_config_t wanted = config_of(MSCCLC_GEMM_ALLREDUCE, &n);
  int all;
  for (all = 1; all >= 0; --all) {
    mscclc_config_t config = MSCCLC_CONFIG_INIT;
    mscclc_comm_t *comm = NULL;
    mscclc_overlap_t *made = NULL;
    char *text = NULL;
    OK(mscclc_registry_create(&config.registry));
    if (all || rank == 0) OK(mscclc_registry_add(config.registry, measured_folder));
    config.device = MSCCLC_HOST;
    OK(mscclc_comm_create(&comm, kRanks, &measured_ids[all], rank, &config));
    if (all) {
      OK(mscclc_overlap_create(comm, &wanted, &made));
      OK(mscclc_overlap_explain(made, &text));
      CHECK(strstr(text, "{\"backend\": \"copy_engine\", \"chunks\": 2, \"budget\": 3, ") == text);
      CHECK(strstr(text, "/measured/overlap.json'\"") != NULL);
      CHECK(strstr(text, "\"in_graphs\": {\"backend\": \"serial\"") != NULL);
      mscclc_free(text);
      OK(mscclc_overlap_destroy(made));
    } else {
      check_said(
          mscclc_overlap_create(comm, &wanted, &made), MSCCLC_INVALID_USAGE,
          "'backend that is taken' is copy_engine, chunks 2, budget 3 at rank 0 and serial at "
          "rank 1");
      check_said(MSCCLC_INVALID_USAGE, MSCCLC_INVALID_USAGE,
                 "ranks must have the same overlap.json");
    }
    OK(mscclc_comm_destroy(comm));
    OK(mscclc_registry_destroy(config.registry));
  }
  return NULL;
}

int main(void) {
  char *text = NULL;
  /* Before anything else there is. */
  OK(mscclc_overlap_backends(MSCCLC_HOST, &text));
  CHECK(strstr(text, "{\"name\": \"mscclc\", \"available\": true, \"why\": ") != NULL);
  CHECK(strstr(text, getenv("MSCCLC_NCCL") != NULL
                         ? "{\"name\": \"nccl\", \"available\": true, \"why\": \"NCCL's collective"
                         : "{\"name\": \"nccl\", \"available\": false, \"why\": \"not there: NCCL "
                           "needs GPUs\"}") != NULL);
  CHECK(strstr(text, "{\"name\": \"cublasmp\", \"available\": false, \"why\": \"not ") != NULL);
  mscclc_free(text);
  check_broken_table();
  check_refused_configs();
  check_backends();
  run_alone();
  check_overlaps();
  on_all_ranks(run_rank);
  measured_folder = write_measured("2");
  OK(mscclc_unique_id(&measured_ids[0]));
  OK(mscclc_unique_id(&measured_ids[1]));
  on_all_ranks(take_measured);
  CHECK(products > 0);
  if (getenv("MSCCLC_NCCL") != NULL) {
    check_failures_with_nccl();
    check_revoked_calls();
  }
  return 0;
}
