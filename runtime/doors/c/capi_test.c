/* The C interface on the host device, from a C program: ranks as processes and as threads, every
 * function, and arguments that are wrong. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mscclc.h"
#include "runtime/doors/c/check.h"

enum { kRanks = 3, kCount = 500 };

#define REFUSED(call, text)                                                          \
  do {                                                                               \
    CHECK((call) == MSCCLC_INVALID_ARGUMENT);                                        \
    if (strcmp(mscclc_last_error(), text) != 0) {                                    \
      fprintf(stderr, "%s:%d: said: %s\n", __FILE__, __LINE__, mscclc_last_error()); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

/* The structs of version 0: members are added at the end, and none moves. */
_Static_assert(sizeof(mscclc_unique_id_t) == 128, "unique id");
_Static_assert(offsetof(mscclc_config_t, device) == 8 &&
                   offsetof(mscclc_config_t, timeout_ms) == 12 &&
                   offsetof(mscclc_config_t, ready_bytes) == 16 &&
                   offsetof(mscclc_config_t, registry) == 24 &&
                   offsetof(mscclc_config_t, beside) == 32 &&
                   offsetof(mscclc_config_t, order) == 40 &&
                   offsetof(mscclc_config_t, ends_process) == 48 && sizeof(mscclc_config_t) == 56,
               "config");
_Static_assert(offsetof(mscclc_store_t, user) == 8 && offsetof(mscclc_store_t, set) == 16 &&
                   offsetof(mscclc_store_t, get) == 24 && offsetof(mscclc_store_t, remove) == 32 &&
                   offsetof(mscclc_store_t, given_up) == 40 && sizeof(mscclc_store_t) == 48,
               "store");
_Static_assert(offsetof(mscclc_call_t, kind) == 8 && offsetof(mscclc_call_t, dtype) == 12 &&
                   offsetof(mscclc_call_t, op) == 16 && offsetof(mscclc_call_t, accumulate) == 20 &&
                   offsetof(mscclc_call_t, root) == 24 &&
                   offsetof(mscclc_call_t, registered) == 28 &&
                   offsetof(mscclc_call_t, shift) == 32 && offsetof(mscclc_call_t, count) == 40 &&
                   offsetof(mscclc_call_t, input) == 48 && offsetof(mscclc_call_t, output) == 56 &&
                   offsetof(mscclc_call_t, counts) == 64 &&
                   offsetof(mscclc_call_t, input_offsets) == 72 &&
                   offsetof(mscclc_call_t, output_offsets) == 80 &&
                   offsetof(mscclc_call_t, tag) == 88 && offsetof(mscclc_call_t, order) == 96 &&
                   offsetof(mscclc_call_t, externals) == 104 &&
                   offsetof(mscclc_call_t, externals_count) == 112 &&
                   offsetof(mscclc_call_t, flags) == 120 && sizeof(mscclc_call_t) == 144,
               "call");
_Static_assert(offsetof(mscclc_external_t, data) == 8 && offsetof(mscclc_external_t, dtype) == 16 &&
                   offsetof(mscclc_external_t, value) == 20 &&
                   offsetof(mscclc_external_t, rows) == 24 &&
                   offsetof(mscclc_external_t, columns) == 32 &&
                   offsetof(mscclc_external_t, reserved) == 40 && sizeof(mscclc_external_t) == 48,
               "external");
_Static_assert(
    offsetof(mscclc_request_t, kind) == 8 && offsetof(mscclc_request_t, dtype) == 12 &&
        offsetof(mscclc_request_t, op) == 16 && offsetof(mscclc_request_t, accumulate) == 20 &&
        offsetof(mscclc_request_t, ranks) == 24 && offsetof(mscclc_request_t, nodes) == 28 &&
        offsetof(mscclc_request_t, root) == 32 && offsetof(mscclc_request_t, in_place) == 36 &&
        offsetof(mscclc_request_t, shift) == 40 && offsetof(mscclc_request_t, bytes) == 48 &&
        offsetof(mscclc_request_t, registered) == 56 &&
        offsetof(mscclc_request_t, capturing) == 60 &&
        offsetof(mscclc_request_t, architecture) == 64 &&
        offsetof(mscclc_request_t, multiprocessors) == 68 &&
        offsetof(mscclc_request_t, tag) == 72 && offsetof(mscclc_request_t, either_place) == 80 &&
        offsetof(mscclc_request_t, order) == 84 && sizeof(mscclc_request_t) == 88,
    "request");

static mscclc_config_t host(void) {
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  config.device = MSCCLC_HOST;
  config.timeout_ms = 300000;
  return config;
}

static int32_t value(uint32_t rank, uint64_t i) { return (int32_t)(rank * 100003 + i * 7 + 1); }
static int32_t sum(uint64_t i) {
  int32_t all = 0;
  for (uint32_t r = 0; r < kRanks; ++r) all += value(r, i);
  return all;
}

/* ---- What every rank does ---- */

typedef struct {
  mscclc_comm_t *comm;
  uint32_t rank;
  mscclc_stream_t stream;
  int32_t *in, *out; /* kRanks * kCount elements each */
} rank_t;

static void ended(rank_t *r) { OK(mscclc_stream_synchronize(r->comm, r->stream)); }
static void clear(rank_t *r) { memset(r->out, 0, sizeof(int32_t) * kRanks * kCount); }

static void all_collectives(rank_t *r) {
  const uint32_t root = 1;
  OK(mscclc_allreduce(r->comm, r->in, r->out, kCount, MSCCLC_I32, MSCCLC_SUM, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kCount; ++i) CHECK(r->out[i] == sum(i));
  clear(r);
  OK(mscclc_reduce(r->comm, r->in, r->out, kCount, MSCCLC_I32, MSCCLC_SUM, root, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kCount; ++i) CHECK(r->rank != root || r->out[i] == sum(i));
  OK(mscclc_allgather(r->comm, r->in, r->out, kCount, MSCCLC_I32, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kRanks * kCount; ++i) {
    CHECK(r->out[i] == value((uint32_t)(i / kCount), i % kCount));
  }
  clear(r);
  OK(mscclc_gather(r->comm, r->in, r->out, kCount, MSCCLC_I32, root, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kRanks * kCount; ++i) {
    CHECK(r->rank != root || r->out[i] == value((uint32_t)(i / kCount), i % kCount));
  }
  OK(mscclc_reducescatter(r->comm, r->in, r->out, kCount, MSCCLC_I32, MSCCLC_SUM, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kCount; ++i) CHECK(r->out[i] == sum(r->rank * kCount + i));
  OK(mscclc_scatter(r->comm, r->in, r->out, kCount, MSCCLC_I32, root, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kCount; ++i) CHECK(r->out[i] == value(root, r->rank * kCount + i));
  OK(mscclc_alltoall(r->comm, r->in, r->out, kCount, MSCCLC_I32, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kRanks * kCount; ++i) {
    CHECK(r->out[i] == value((uint32_t)(i / kCount), r->rank * kCount + i % kCount));
  }
  OK(mscclc_broadcast(r->comm, r->in, r->out, kCount, MSCCLC_I32, root, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kCount; ++i) CHECK(r->out[i] == value(root, i));
  OK(mscclc_sendrecv(r->comm, r->in, r->out, kCount, MSCCLC_I32, 1, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kCount; ++i) CHECK(r->out[i] == value((r->rank + 2) % kRanks, i));
  OK(mscclc_barrier(r->comm, r->stream));
  ended(r);
}

static void uneven_rows(rank_t *r) {
  const uint64_t counts[kRanks * kRanks] = {1, 20, 0, 5, 0, 7, 100, 2, 3};
  uint64_t at = 0;
  OK(mscclc_alltoallv(r->comm, r->in, r->out, counts, NULL, NULL, MSCCLC_I32, r->stream));
  ended(r);
  for (uint32_t s = 0; s < kRanks; ++s) {
    uint64_t from = 0;
    for (uint32_t d = 0; d < r->rank; ++d) from += counts[s * kRanks + d];
    for (uint64_t i = 0; i < counts[s * kRanks + r->rank]; ++i) {
      CHECK(r->out[at++] == value(s, from + i));
    }
  }
}

static void memory_of_the_library(rank_t *r) {
  mscclc_memory_t *memory = NULL;
  uint64_t number = 0;
  int32_t word = 0;
  OK(mscclc_memory_create(r->comm, 8 * kCount, &memory));
  CHECK(mscclc_memory_bytes(memory) >= 8 * kCount);
  int32_t *at = mscclc_memory_address(memory);
  OK(mscclc_memory_retain(memory));
  OK(mscclc_memory_release(memory));
  OK(mscclc_write(r->comm, at, r->in, 4 * kCount));
  OK(mscclc_register(r->comm, at, 8 * kCount, &number));
  mscclc_call_t call = MSCCLC_CALL_INIT;
  call.kind = MSCCLC_ALLREDUCE;
  call.dtype = MSCCLC_I32;
  call.op = MSCCLC_MAX;
  call.count = kCount;
  call.input = at;
  call.output = at + kCount;
  call.registered = 1;
  OK(mscclc_collective(r->comm, &call, r->stream));
  ended(r);
  OK(mscclc_read(r->comm, &word, at + kCount + 9, 4));
  CHECK(word == value(kRanks - 1, 9));
  OK(mscclc_deregister(r->comm, number));
  REFUSED(mscclc_deregister(r->comm, number), "error: there is no such registration");
  OK(mscclc_memory_release(memory));
  REFUSED(mscclc_memory_release(memory), "mscclc_memory_release: 'memory' is not memory of mscclc");
}

/* Every rank writes a word of each peer's memory, and reads what was written to its own. */
static void memory_of_peers(rank_t *r) {
  mscclc_memory_t *memory = NULL;
  uint64_t number = 0;
  void *address = NULL;
  size_t bytes = 0;
  OK(mscclc_memory_create(r->comm, sizeof(int32_t) * kRanks, &memory));
  int32_t *own = mscclc_memory_address(memory);
  const size_t share = r->rank == 0 ? 0 : sizeof(int32_t) * kRanks;
  OK(mscclc_register(r->comm, own, share, &number));
  for (uint32_t p = 0; p < kRanks; ++p) {
    OK(mscclc_registered_address(r->comm, number, p, &address, &bytes));
    CHECK(bytes == (p == 0 ? 0 : sizeof(int32_t) * kRanks));
    CHECK((address == NULL) == (p == 0));
    CHECK(p != r->rank || p == 0 || address == own);
    if (p > 0) ((int32_t *)address)[r->rank] = (int32_t)(100 * r->rank + p);
  }
  OK(mscclc_barrier(r->comm, r->stream));
  ended(r);
  for (uint32_t p = 0; p < kRanks; ++p) {
    CHECK(own[p] == (r->rank == 0 ? 0 : (int32_t)(100 * p + r->rank)));
  }
  REFUSED(mscclc_registered_address(r->comm, number, kRanks, &address, &bytes),
          "error: there is no rank 3 among 3");
  REFUSED(mscclc_registered_address(r->comm, number, 0, NULL, &bytes),
          "mscclc_registered_address: 'address' or 'bytes' is NULL");
  OK(mscclc_deregister(r->comm, number));
  REFUSED(mscclc_registered_address(r->comm, number, 0, &address, &bytes),
          "error: there is no such registration");
  CHECK(address == NULL && bytes == 0);
  OK(mscclc_memory_release(memory));
}

static const char kProgram[] =
    "program    mine\n"
    "param      R = 2\n"
    "collective allgather(ranks: R)\n"
    "rank r in 0..R {\n"
    "  let others = 0..R except r\n"
    "  channel ch[p in others] = memory(p)\n"
    "  tb i in 0 .. R - 1 {\n"
    "    let p = others[i]\n"
    "    signal ch[p] relaxed\n"
    "    wait ch[p] relaxed\n"
    "    put ch[p].output[r] <- input[0]\n"
    "    signal ch[p]\n"
    "    wait ch[p]\n"
    "  }\n"
    "  tb R - 1 { copy output[r] <- input[0] }\n"
    "}\n";

static char *plan_text(void) {
  const char *defines[] = {"R=3"};
  char *json = NULL, *said = NULL;
  OK(mscclc_compile(kProgram, strlen(kProgram), "mine.mscl", defines, 1, &json, &said));
  CHECK(json != NULL);
  mscclc_free(said);
  return json;
}

static void plan_by_handle(rank_t *r) {
  char *json = plan_text();
  mscclc_plan_t *plan = NULL;
  OK(mscclc_plan_meet(r->comm));
  REFUSED(mscclc_plan_meet(NULL), "mscclc_plan_meet: 'comm' is not a communicator");
  OK(mscclc_plan_load(r->comm, json, strlen(json), "mine.json", 1 << 20, MSCCLC_I32, &plan));
  mscclc_free(json);
  mscclc_call_t call = MSCCLC_CALL_INIT;
  call.dtype = MSCCLC_I32;
  call.input = r->in;
  call.output = r->out;
  clear(r);
  OK(mscclc_plan_launch(plan, &call, 4 * kRanks * kCount, r->stream));
  ended(r);
  for (uint64_t i = 0; i < kRanks * kCount; ++i) {
    CHECK(r->out[i] == value((uint32_t)(i / kCount), i % kCount));
  }
  // The program gathers: an input is a third of its output.
  uint64_t input = 9, output = 9;
  OK(mscclc_plan_buffers(plan, 4 * kRanks * kCount, &input, &output));
  CHECK(input == 4 * kCount && output == 4 * kRanks * kCount);
  REFUSED(mscclc_plan_buffers(plan, 13, &input, &output),
          "mscclc_plan_buffers: 13 bytes are no message of the plan's 3 ranks");
  CHECK(input == 0 && output == 0);
  // It is loaded for a megabyte.
  CHECK(mscclc_plan_buffers(plan, kRanks << 19, &input, &output) == MSCCLC_INVALID_ARGUMENT);
  CHECK(mscclc_plan_buffers(plan, UINT64_MAX, &input, &output) == MSCCLC_INVALID_ARGUMENT);
  REFUSED(mscclc_plan_buffers(NULL, 0, &input, &output), "mscclc_plan_buffers: 'plan' is no plan");
  REFUSED(mscclc_plan_buffers(plan, 0, NULL, &output),
          "mscclc_plan_buffers: 'input' or 'output' is NULL");
  REFUSED(mscclc_plan_launch(plan, &call, 1, NULL),
          "mscclc_plan_launch: the host device has no stream NULL");
  CHECK(mscclc_plan_launch(plan, &call, 1, r->stream) == MSCCLC_INVALID_ARGUMENT);
  OK(mscclc_plan_destroy(plan));
  REFUSED(mscclc_plan_destroy(plan), "mscclc_plan_destroy: 'plan' is not a plan");
  OK(mscclc_plan_destroy(NULL));
}

static void halves(rank_t *r) {
  mscclc_comm_t *child = NULL, *grandchild = NULL;
  uint64_t number;
  uint32_t rank = 9, ranks = 9;
  int32_t sent = (int32_t)r->rank, got = 0;
  mscclc_stream_t stream;
  OK(mscclc_comm_split(r->comm, r->rank == 1 ? -1 : 7, -(int32_t)r->rank, &child, NULL));
  CHECK((child == NULL) == (r->rank == 1));
  if (child == NULL) return;
  OK(mscclc_comm_rank(child, &rank));
  OK(mscclc_comm_size(child, &ranks));
  CHECK(ranks == 2 && rank == (r->rank == 0 ? 1u : 0u)); /* the larger key comes last */
  OK(mscclc_stream_create(child, &stream));
  OK(mscclc_allreduce(child, &sent, &got, 1, MSCCLC_I32, MSCCLC_SUM, stream));
  OK(mscclc_stream_synchronize(child, stream));
  CHECK(got == 2);
  OK(mscclc_group_start());
  OK(mscclc_allreduce(child, &sent, &got, 1, MSCCLC_I32, MSCCLC_SUM, stream));
  OK(mscclc_comm_finalize(child));
  CHECK(mscclc_group_end() == MSCCLC_INVALID_USAGE);
  CHECK(strcmp(mscclc_last_error(), "mscclc_group_end: the communicator is finalized") == 0);
  OK(mscclc_stream_destroy(child, stream));
  CHECK(mscclc_comm_finalize(child) == MSCCLC_INVALID_USAGE);
  CHECK(mscclc_barrier(child, r->stream) == MSCCLC_INVALID_USAGE);
  CHECK(mscclc_register(child, &sent, sizeof sent, &number) == MSCCLC_INVALID_USAGE);
  CHECK(mscclc_comm_split(child, 0, 0, &grandchild, NULL) == MSCCLC_INVALID_USAGE);
  CHECK(strcmp(mscclc_last_error(), "mscclc_comm_split: the communicator is finalized") == 0);
  OK(mscclc_comm_destroy(child));
}

/* The end of a communicator waits for its calls on streams of others, too. */
static void foreign_stream(rank_t *r) {
  mscclc_comm_t *child = NULL;
  mscclc_config_t config = host();
  int32_t power = 1, expected = 1;
  config.ready_bytes = UINT64_MAX;
  OK(mscclc_comm_split(r->comm, 0, 0, &child, &config));
  for (int i = 0; i < 15; ++i) {
    OK(mscclc_allreduce(child, &power, &power, 1, MSCCLC_I32, MSCCLC_SUM, r->stream));
    expected *= kRanks;
  }
  OK(mscclc_comm_finalize(child));
  CHECK(power == expected);
  OK(mscclc_comm_destroy(child));
}

static void choices(rank_t *r) {
  mscclc_call_t call = MSCCLC_CALL_INIT;
  char *text = NULL;
  call.kind = MSCCLC_ALLREDUCE;
  call.count = 1000;
  OK(mscclc_choose(r->comm, &call, 0, &text));
  CHECK(strstr(text, "allreduce") != NULL);
  mscclc_free(text);
  call.count = 0;
  OK(mscclc_choose(r->comm, &call, 0, &text));
  CHECK(strcmp(text, "") == 0);
  mscclc_free(text);
  call.count = 1000;
  call.accumulate = MSCCLC_F64; /* no plan of the library reduces so */
  call.dtype = MSCCLC_I8;
  CHECK(mscclc_choose(r->comm, &call, 0, &text) != MSCCLC_SUCCESS || text != NULL);
  mscclc_free(text);
}

static mscclc_call_t question(mscclc_kind_t kind) {
  static const uint64_t counts[kRanks * kRanks] = {0, 5, 5, 5, 0, 5, 5, 5, 0};
  mscclc_call_t call = MSCCLC_CALL_INIT;
  call.kind = kind;
  call.count = 8192;
  call.counts = counts;
  return call;
}

/* Buffers that are not given lie apart. */
static void choices_without_buffers(rank_t *r) {
  const mscclc_kind_t kinds[] = {MSCCLC_ALLREDUCE, MSCCLC_REDUCE,        MSCCLC_ALLGATHER,
                                 MSCCLC_GATHER,    MSCCLC_REDUCESCATTER, MSCCLC_ALLTOALL,
                                 MSCCLC_ALLTOALLV, MSCCLC_BROADCAST,     MSCCLC_SCATTER,
                                 MSCCLC_SENDRECV,  MSCCLC_BARRIER};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    mscclc_call_t call = question(kinds[k]);
    char *text = NULL, *apart = NULL;
    int32_t waits = -1;
    OK(mscclc_choose(r->comm, &call, 0, &text));
    OK(mscclc_waits(r->comm, &call, r->stream, &waits));
    call.output = (void *)((uintptr_t)1 << 40);
    OK(mscclc_waits(r->comm, &call, r->stream, &waits));
    call.input = (void *)((uintptr_t)1 << 41);
    OK(mscclc_choose(r->comm, &call, 0, &apart));
    CHECK(strcmp(text, apart) == 0);
    mscclc_free(text);
    mscclc_free(apart);
  }
}

static void questions_of_no_order(rank_t *r) {
  mscclc_call_t call = question(MSCCLC_ALLREDUCE);
  char *text = NULL;
  int32_t waits = -1;
  call.order = 257;
  REFUSED(mscclc_choose(r->comm, &call, 0, &text), "mscclc_choose: 'order' is none");
  REFUSED(mscclc_waits(r->comm, &call, r->stream, &waits), "mscclc_waits: 'order' is none");
}

/* Only the first call of a kind waits for the other ranks. */
static void waits(rank_t *r) {
  mscclc_call_t call = MSCCLC_CALL_INIT;
  int32_t waits = -1;
  uint16_t data[5] = {0};
  call.kind = MSCCLC_BROADCAST;
  call.dtype = MSCCLC_F16; /* no other test broadcasts it */
  call.count = 5;
  OK(mscclc_waits(r->comm, &call, r->stream, &waits));
  CHECK(waits == 1);
  OK(mscclc_waits(r->comm, &call, r->stream, &waits)); /* it has loaded nothing */
  CHECK(waits == 1);
  call.input = call.output = data;
  OK(mscclc_collective(r->comm, &call, r->stream));
  OK(mscclc_stream_synchronize(r->comm, r->stream));
  OK(mscclc_waits(r->comm, &call, r->stream, &waits));
  CHECK(waits == 0);
  call.count = 0;
  OK(mscclc_waits(r->comm, &call, r->stream, &waits));
  CHECK(waits == 0);
  REFUSED(mscclc_waits(r->comm, &call, r->stream, NULL), "mscclc_waits: 'waits' is NULL");
  REFUSED(mscclc_waits(r->comm, &call, NULL, &waits),
          "mscclc_waits: the host device has no stream NULL");
  call.kind = MSCCLC_ALLTOALLV; /* without counts */
  CHECK(mscclc_waits(r->comm, &call, r->stream, &waits) == MSCCLC_INVALID_ARGUMENT);
}

/* What stands before a mark has ended once it is reached; numbers grow. */
static void marks(rank_t *r) {
  uint64_t first = 0, second = 0, third = 0, reached = 7;
  OK(mscclc_stream_mark(r->comm, r->stream, &first, &reached));
  CHECK(first == 1 && reached == 0);
  OK(mscclc_stream_mark(r->comm, r->stream, &second, &reached));
  CHECK(second == 2 && reached <= first);
  OK(mscclc_stream_synchronize(r->comm, r->stream));
  OK(mscclc_stream_mark(r->comm, r->stream, &third, &reached));
  CHECK(third == 3 && reached == second);
  REFUSED(mscclc_stream_mark(r->comm, r->stream, NULL, &reached),
          "mscclc_stream_mark: 'mark' or 'reached' is NULL");
  REFUSED(mscclc_stream_mark(r->comm, NULL, &first, &reached),
          "mscclc_stream_mark: the host device has no stream NULL");
}

static void no_streams(rank_t *r, mscclc_stream_t stream) {
  REFUSED(mscclc_stream_destroy(r->comm, stream),
          "mscclc_stream_destroy: 'stream' is not a stream of the host device");
  REFUSED(mscclc_stream_synchronize(r->comm, stream),
          "mscclc_stream_synchronize: 'stream' is not a stream of the host device");
  REFUSED(mscclc_barrier(r->comm, stream),
          "a collective: 'stream' is not a stream of the host device");
}

static void wrong_arguments(rank_t *r) {
  mscclc_call_t call = MSCCLC_CALL_INIT;
  uint32_t number = 0;
  REFUSED(mscclc_allreduce(NULL, r->in, r->out, 1, MSCCLC_I32, MSCCLC_SUM, r->stream),
          "a collective: 'comm' is not a communicator");
  REFUSED(mscclc_allreduce((mscclc_comm_t *)&number, r->in, r->out, 1, MSCCLC_I32, MSCCLC_SUM,
                           r->stream),
          "a collective: 'comm' is not a communicator");
  REFUSED(mscclc_allreduce(r->comm, NULL, r->out, 1, MSCCLC_I32, MSCCLC_SUM, r->stream),
          r->rank == 0   ? "error: allreduce: rank 0 needs an input, but gives nullptr"
          : r->rank == 1 ? "error: allreduce: rank 1 needs an input, but gives nullptr"
                         : "error: allreduce: rank 2 needs an input, but gives nullptr");
  REFUSED(mscclc_allreduce(r->comm, r->in, r->out, 1, 99, MSCCLC_SUM, r->stream),
          "error: allreduce: there is no such data type");
  REFUSED(mscclc_allreduce(r->comm, r->in, r->out, 1, 256 + MSCCLC_I32, MSCCLC_SUM, r->stream),
          "error: allreduce: there is no such data type");
  REFUSED(mscclc_allreduce(r->comm, r->in, r->out, 1, MSCCLC_I32, -3, r->stream),
          "error: allreduce: there is no such reduction");
  REFUSED(mscclc_broadcast(r->comm, r->in, r->out, 1, MSCCLC_I32, kRanks, r->stream),
          "error: broadcast: the root is rank 3 of 3");
  REFUSED(mscclc_barrier(r->comm, NULL), "a collective: the host device has no stream NULL");
  REFUSED(mscclc_alltoallv(r->comm, r->in, r->out, NULL, NULL, NULL, MSCCLC_I32, r->stream),
          "error: alltoallv: 0 counts are given; 3 ranks need 9");
  REFUSED(mscclc_collective(r->comm, NULL, r->stream),
          "mscclc_collective: 'call' is NULL, or has no size that this version knows");
  call.size = 3;
  REFUSED(mscclc_collective(r->comm, &call, r->stream),
          "mscclc_collective: 'call' is NULL, or has no size that this version knows");
  call.size = 44; /* in the middle of the count */
  REFUSED(mscclc_collective(r->comm, &call, r->stream),
          "mscclc_collective: 'call' is NULL, or has no size that this version knows");
  call.size = sizeof call;
  call.kind = 256 + MSCCLC_BARRIER;
  REFUSED(mscclc_collective(r->comm, &call, r->stream),
          "error: the collective cannot be called by name");
  REFUSED(mscclc_choose(r->comm, &call, 0, NULL), "mscclc_choose: 'text' is NULL");
  REFUSED(mscclc_comm_rank(NULL, &number),
          "mscclc_comm_rank: 'comm' is not a communicator, or 'rank' is NULL");
  REFUSED(mscclc_comm_size(r->comm, NULL),
          "mscclc_comm_size: 'comm' is not a communicator, or 'ranks' is NULL");
  REFUSED(mscclc_comm_device(r->comm, NULL),
          "mscclc_comm_device: 'comm' is not a communicator, or 'device' is NULL");
  REFUSED(mscclc_comm_split(r->comm, 0, 0, NULL, NULL), "mscclc_comm_split: 'child' is NULL");
  REFUSED(mscclc_write(r->comm, NULL, r->in, 4), "mscclc_write: 'to' or 'from' is NULL");
  REFUSED(mscclc_read(r->comm, NULL, r->in, 4), "mscclc_read: 'to' or 'from' is NULL");
  REFUSED(mscclc_memory_create(r->comm, 4, NULL), "mscclc_memory_create: 'memory' is NULL");
  CHECK(mscclc_memory_address(NULL) == NULL && mscclc_memory_bytes(NULL) == 0);
  REFUSED(mscclc_register(r->comm, NULL, 4, NULL),
          "mscclc_register: 'address' or 'registration' is NULL");
  REFUSED(mscclc_stream_create(r->comm, NULL), "mscclc_stream_create: 'stream' is NULL");
  no_streams(r, (mscclc_stream_t)r->in);
  no_streams(r, (mscclc_stream_t)1);
  mscclc_stream_t stream = NULL;
  OK(mscclc_stream_create(r->comm, &stream));
  OK(mscclc_stream_destroy(r->comm, stream));
  no_streams(r, stream);
  OK(mscclc_stream_destroy(r->comm, NULL));
}

/* Every rank's range is none, so no rank waits for another. */
static void no_memory_there(rank_t *r) {
  static const struct {
    uintptr_t address;
    size_t bytes;
  } wrong[] = {{(uintptr_t)-100, 200},
               {(uintptr_t)-100, 50},
               {8, 100},
               {(uintptr_t)kProgram, SIZE_MAX},
               {(uintptr_t)kProgram, SIZE_MAX >> 1}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    uint64_t number = 7;
    char text[100];
    snprintf(text, sizeof text, "error: there is no memory of %zu bytes at 0x%zx", wrong[i].bytes,
             (size_t)wrong[i].address);
    CHECK(mscclc_register(r->comm, (void *)wrong[i].address, wrong[i].bytes, &number) ==
          MSCCLC_INVALID_ARGUMENT);
    CHECK(strncmp(mscclc_last_error(), text, strlen(text)) == 0);
    CHECK(number == 0);
  }
}

static void work(mscclc_comm_t *comm) {
  rank_t r = {comm, 99, NULL, NULL, NULL};
  uint32_t ranks = 0;
  int32_t device = 0;
  OK(mscclc_comm_rank(comm, &r.rank));
  OK(mscclc_comm_size(comm, &ranks));
  OK(mscclc_comm_device(comm, &device));
  CHECK(ranks == kRanks && device == MSCCLC_HOST);
  OK(mscclc_stream_create(comm, &r.stream));
  r.in = malloc(sizeof(int32_t) * kRanks * kCount);
  r.out = malloc(sizeof(int32_t) * kRanks * kCount);
  CHECK(r.in != NULL && r.out != NULL);
  for (uint64_t i = 0; i < kRanks * kCount; ++i) r.in[i] = value(r.rank, i);
  marks(&r);
  waits(&r);
  all_collectives(&r);
  uneven_rows(&r);
  memory_of_the_library(&r);
  memory_of_peers(&r);
  plan_by_handle(&r);
  halves(&r);
  foreign_stream(&r);
  choices(&r);
  choices_without_buffers(&r);
  questions_of_no_order(&r);
  wrong_arguments(&r);
  no_memory_there(&r);
  OK(mscclc_comm_async_error(comm));
  OK(mscclc_stream_destroy(comm, r.stream));
  OK(mscclc_comm_destroy(comm));
  REFUSED(mscclc_comm_destroy(comm), "mscclc_comm_destroy: 'comm' is not a communicator");
  OK(mscclc_comm_destroy(NULL));
  free(r.in);
  free(r.out);
}

/* ---- Ranks as processes: before this process has begun any thread ---- */

static mscclc_comm_t *comm_of_a_process(uint32_t ranks, uint32_t rank, const int pipe_fds[2]) {
  mscclc_unique_id_t id;
  mscclc_comm_t *comm = NULL;
  const mscclc_config_t config = host();
  if (rank == 0) {
    OK(mscclc_unique_id(&id));
    for (uint32_t i = 1; i < ranks; ++i) CHECK(write(pipe_fds[1], &id, sizeof id) == sizeof id);
  } else {
    CHECK(read(pipe_fds[0], &id, sizeof id) == sizeof id);
  }
  OK(mscclc_comm_create(&comm, ranks, &id, rank, &config));
  return comm;
}

static void rank_of_a_process(uint32_t rank, const int pipe_fds[2]) {
  work(comm_of_a_process(kRanks, rank, pipe_fds));
}

/* Calls whose plan is loaded wait, too, where the ranks compare them. */
static void calls_that_are_compared_wait(uint32_t rank, const int pipe_fds[2]) {
  CHECK(setenv("MSCCLC_CHECK_CALLS", "1", 1) == 0);
  mscclc_comm_t *const comm = comm_of_a_process(2, rank, pipe_fds);
  mscclc_call_t call = question(MSCCLC_BROADCAST);
  mscclc_stream_t stream = NULL;
  int32_t waits = -1;
  float data[5] = {0};
  OK(mscclc_stream_create(comm, &stream));
  call.input = call.output = data;
  call.count = 5;
  OK(mscclc_collective(comm, &call, stream));
  OK(mscclc_stream_synchronize(comm, stream));
  OK(mscclc_waits(comm, &call, stream, &waits));
  CHECK(waits == 1);
  call.count = 0;
  OK(mscclc_waits(comm, &call, stream, &waits));
  CHECK(waits == 1);
  OK(mscclc_collective(comm, &call, stream));
  OK(mscclc_stream_destroy(comm, stream));
  OK(mscclc_comm_destroy(comm));
}

static void processes(uint32_t ranks, void (*run)(uint32_t, const int *)) {
  int pipe_fds[2], status = 0;
  CHECK(pipe(pipe_fds) == 0);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) continue;
    run(rank, pipe_fds);
    exit(0);
  }
  for (uint32_t i = 0; i < ranks; ++i) {
    CHECK(wait(&status) > 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

/* Rank 1 dies while a child is made: it has no descriptors to reach the others with. */
static void split_of_who_dies(uint32_t rank, const int pipe_fds[2]) {
  mscclc_comm_t *comm = comm_of_a_process(2, rank, pipe_fds), *child = NULL;
  if (rank == 1) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = (rlim_t)dup(0) + 1; /* one is left, for files */
    CHECK(close((int)limit.rlim_cur - 1) == 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(mscclc_comm_split(comm, 0, 0, &child, NULL) == MSCCLC_OUT_OF_MEMORY);
    _exit(0);
  }
  CHECK(mscclc_comm_split(comm, 0, 0, &child, NULL) == MSCCLC_PEER_FAILED);
  CHECK(strstr(mscclc_last_error(), "rank 1") != NULL && child == NULL);
  OK(mscclc_comm_destroy(comm));
}

/* Lets this process open so many files more than now; -1: as many as before. */
static void let_open(int more) {
  static struct rlimit before;
  struct rlimit limit;
  if (more >= 0) CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
  limit = before;
  if (more >= 0) {
    const int next = dup(0);
    CHECK(next >= 0 && close(next) == 0);
    limit.rlim_cur = (rlim_t)(next + more);
  }
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* Rank 1 cannot find out which machine it is on: its child fails on all its ranks, and nothing else
 * does. */
static void split_without_place(uint32_t rank, const int pipe_fds[2]) {
  mscclc_comm_t *comm = comm_of_a_process(3, rank, pipe_fds), *child = NULL;
  const int color = rank == 2 ? 1 : 0;
  const char *missing =
      "cannot find out which machine this is by "
      "/proc/sys/kernel/random/boot_id: Too many open files";
  if (rank == 1) let_open(0);
  if (rank == 2) {
    OK(mscclc_comm_split(comm, color, 0, &child, NULL));
    OK(mscclc_comm_destroy(child));
  } else {
    CHECK(mscclc_comm_split(comm, color, 0, &child, NULL) ==
          (rank == 1 ? MSCCLC_OUT_OF_MEMORY : MSCCLC_PEER_FAILED));
    CHECK(child == NULL && strstr(mscclc_last_error(), missing) != NULL);
    CHECK(rank == 1 || strstr(mscclc_last_error(), "rank 1 of the parent: ") != NULL);
  }
  OK(mscclc_comm_split(comm, rank == 1 ? -1 : 0, 0, &child, NULL)); /* it needs no place */
  CHECK((child == NULL) == (rank == 1));
  if (rank == 1) let_open(-1);
  if (child != NULL) OK(mscclc_comm_destroy(child));
  OK(mscclc_comm_split(comm, 0, 0, &child, NULL)); /* the parent lives on */
  OK(mscclc_comm_destroy(child));
  OK(mscclc_comm_destroy(comm));
}

/* Rank 1 dies when rank 0 has launched a call, which ends the process of rank 0, as its config
 * says. */
static void rank_that_ends(uint32_t rank, const int pipe_fds[2]) {
  mscclc_comm_t *const parent = comm_of_a_process(2, rank, pipe_fds), *comm = NULL;
  mscclc_config_t config = host();
  mscclc_stream_t stream = NULL;
  float data[5] = {0};
  char byte = 0;
  config.ends_process = 1;
  OK(mscclc_comm_split(parent, 0, (int32_t)rank, &comm, &config));
  OK(mscclc_stream_create(comm, &stream));
  OK(mscclc_allreduce(comm, data, data, 5, MSCCLC_F32, MSCCLC_SUM, stream));
  if (rank == 1) {
    OK(mscclc_stream_synchronize(comm, stream));
    CHECK(read(pipe_fds[0], &byte, 1) == 1);
    _exit(0);
  }
  OK(mscclc_allreduce(comm, data, data, 5, MSCCLC_F32, MSCCLC_SUM, stream));
  CHECK(write(pipe_fds[1], &byte, 1) == 1);
  (void)mscclc_stream_synchronize(comm, stream);
  _exit(1);
}

static void a_process_that_ends(void) {
  int pipe_fds[2], status = 0;
  pid_t children[2];
  CHECK(pipe(pipe_fds) == 0);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    CHECK(children[rank] >= 0);
    if (children[rank] == 0) rank_that_ends(rank, pipe_fds);
  }
  CHECK(waitpid(children[1], &status, 0) == children[1]);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(waitpid(children[0], &status, 0) == children[0]);
  CHECK(close(pipe_fds[0]) == 0 && close(pipe_fds[1]) == 0);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* A parent makes the id, and its children are the ranks. The thread sanitizer allows no threads in
 * children of a process with threads; the address sanitizer's allocator leaves a child the locks
 * that its parent's threads held. */
#if !defined(MSCCLC_TSAN) && !defined(MSCCLC_ASAN)
static void children_of_who_made_the_id(void) {
  mscclc_unique_id_t made;
  int status = 0;
  OK(mscclc_unique_id(&made));
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) continue;
    mscclc_comm_t *comm = NULL;
    const mscclc_config_t config = host();
    OK(mscclc_comm_create(&comm, kRanks, &made, rank, &config));
    work(comm);
    exit(0);
  }
  for (int i = 0; i < kRanks; ++i) {
    CHECK(wait(&status) > 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

#endif

/* ---- Ranks as threads, which share a store ---- */

typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  char key[300], value[200];
  size_t bytes;
  int removed;
} board_t;
static board_t board = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, "", "", 0, 0};

static int board_set(void *user, const char *key, const void *value, size_t bytes) {
  board_t *b = user;
  if (bytes > sizeof b->value) return 1;
  pthread_mutex_lock(&b->mutex);
  strncpy(b->key, key, sizeof b->key - 1);
  memcpy(b->value, value, bytes);
  b->bytes = bytes;
  pthread_cond_broadcast(&b->changed);
  pthread_mutex_unlock(&b->mutex);
  return 0;
}
static int board_get(void *user, const char *key, void *value, size_t *bytes, uint32_t timeout) {
  board_t *b = user;
  int known = 0;
  (void)timeout; /* rank 0 always comes */
  pthread_mutex_lock(&b->mutex);
  while (b->bytes == 0) pthread_cond_wait(&b->changed, &b->mutex);
  known = strcmp(b->key, key) == 0 && b->bytes <= *bytes;
  if (known) memcpy(value, b->value, *bytes = b->bytes);
  pthread_mutex_unlock(&b->mutex);
  return known ? 0 : 1;
}
static int board_remove(void *user, const char *key) {
  board_t *b = user;
  b->removed += strcmp(b->key, key) == 0;
  return 0;
}

static void *rank_of_a_thread(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  mscclc_store_t store = MSCCLC_STORE_INIT;
  mscclc_comm_t *comm = NULL;
  mscclc_config_t config = host();
  config.ready_bytes = 1024;
  config.beside = 2 * (kRanks - 1);
  store.user = &board;
  store.set = board_set;
  store.get = board_get;
  store.remove = board_remove;
  OK(mscclc_comm_create_store(&comm, kRanks, rank, &store, "test", &config));
  work(comm);
  return NULL;
}

static void threads(void) {
  pthread_t running[kRanks];
  uint32_t ranks[kRanks];
  for (uint32_t r = 0; r < kRanks; ++r) {
    ranks[r] = r;
    CHECK(pthread_create(&running[r], NULL, rank_of_a_thread, &ranks[r]) == 0);
  }
  for (uint32_t r = 0; r < kRanks; ++r) CHECK(pthread_join(running[r], NULL) == 0);
  CHECK(board.removed == 1);
}

/* What meets by a store has raised the soft limit of descriptors, in a process that did nothing
 * before. */
static void limit_at_a_store(uint32_t rank, const int pipe_fds[2]) {
  mscclc_store_t store = MSCCLC_STORE_INIT;
  mscclc_comm_t *comm = NULL;
  const mscclc_config_t config = host();
  struct rlimit limit;
  (void)pipe_fds;
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = 200;
  CHECK(limit.rlim_max > 200 && setrlimit(RLIMIT_NOFILE, &limit) == 0);
  store.user = &board;
  store.set = board_set;
  store.get = board_get;
  OK(mscclc_comm_create_store(&comm, 1, rank, &store, "limit", &config));
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 200);
  OK(mscclc_comm_destroy(comm));
}

/* ---- One thread that drives several ranks ---- */

static mscclc_comm_t *comms[kRanks];
static mscclc_unique_id_t id;
static mscclc_registry_t *registry;

static void *create_rank(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  mscclc_config_t config = host();
  config.registry = registry;
  OK(mscclc_comm_create(&comms[rank], kRanks, &id, rank, &config));
  return NULL;
}

static int asked;
static mscclc_selection_t select_none_for_gathers(void *user, const mscclc_request_t *request,
                                                  char plan[256]) {
  __atomic_fetch_add((int *)user, 1, __ATOMIC_RELAXED);
  CHECK(request->size == sizeof *request && request->ranks == kRanks && request->nodes == 1);
  CHECK(strcmp(request->tag, "") == 0);
  if (request->kind == MSCCLC_ALLGATHER) {
    strcpy(plan, "mine");
    return MSCCLC_SELECT_PLAN;
  }
  if (request->kind == MSCCLC_SCATTER) return (mscclc_selection_t)99;
  return request->kind == MSCCLC_GATHER ? MSCCLC_SELECT_NONE : MSCCLC_SELECT_USUAL;
}

static void plans_of_the_registry(void) {
  char hash[65] = "";
  char *json = plan_text(), *text = NULL;
  mscclc_call_t call = MSCCLC_CALL_INIT;
  OK(mscclc_register_plan(registry, json, strlen(json), "mine", hash));
  CHECK(strlen(hash) == 64);
  OK(mscclc_set_selector(registry, select_none_for_gathers, &asked));
  call.kind = MSCCLC_ALLGATHER;
  call.count = 10;
  OK(mscclc_choose(comms[0], &call, 0, &text));
  CHECK(strncmp(text, "mine\n", 5) == 0);
  mscclc_free(text);
  call.kind = MSCCLC_GATHER;
  CHECK(mscclc_choose(comms[0], &call, 0, &text) == MSCCLC_NO_PLAN);
  mscclc_free(text);
  call.kind = MSCCLC_SCATTER;
  CHECK(mscclc_choose(comms[0], &call, 0, &text) == MSCCLC_INVALID_USAGE);
  CHECK(strncmp(mscclc_last_error(), "error: the selector's answer for scatter", 40) == 0);
  mscclc_free(text);
  CHECK(__atomic_load_n(&asked, __ATOMIC_RELAXED) >= 2);
  OK(mscclc_set_selector(registry, NULL, NULL));
  OK(mscclc_remove_plan(registry, hash));
  CHECK(mscclc_remove_plan(registry, hash) == MSCCLC_NO_PLAN);
  CHECK(mscclc_register_plan(registry, "{}", 2, "empty", NULL) == MSCCLC_INVALID_ARGUMENT);
  CHECK(mscclc_registry_add(registry, "/no/such/folder") == MSCCLC_SYSTEM_ERROR);
  mscclc_free(json);
}

static void groups(void) {
  mscclc_stream_t streams[kRanks];
  int32_t in[kRanks], out[kRanks], twice[kRanks];
  for (uint32_t r = 0; r < kRanks; ++r) {
    in[r] = (int32_t)r + 1;
    OK(mscclc_stream_create(comms[r], &streams[r]));
  }
  OK(mscclc_group_start());
  OK(mscclc_group_start());
  for (uint32_t r = 0; r < kRanks; ++r) {
    OK(mscclc_allreduce(comms[r], &in[r], &out[r], 1, MSCCLC_I32, MSCCLC_SUM, streams[r]));
    OK(mscclc_allreduce(comms[r], &out[r], &twice[r], 1, MSCCLC_I32, MSCCLC_SUM, streams[r]));
  }
  OK(mscclc_group_end());
  OK(mscclc_group_end());
  for (uint32_t r = 0; r < kRanks; ++r) {
    OK(mscclc_stream_synchronize(comms[r], streams[r]));
    CHECK(out[r] == 6 && twice[r] == 18);
    out[r] = 0;
  }
  OK(mscclc_group_start());
  OK(mscclc_allreduce(comms[0], &in[0], &out[0], 1, MSCCLC_I32, MSCCLC_SUM, streams[0]));
  REFUSED(mscclc_allreduce(comms[1], &in[1], NULL, 1, MSCCLC_I32, MSCCLC_SUM, streams[1]),
          "error: allreduce: rank 1 needs an output, but gives nullptr");
  REFUSED(mscclc_group_end(),
          "the group was not launched, as a call of it was refused: error: allreduce: rank 1 needs "
          "an output, but gives nullptr");
  CHECK(mscclc_group_end() == MSCCLC_INVALID_USAGE);
  OK(mscclc_group_start()); /* what is no call at all is refused, too */
  CHECK(mscclc_collective(comms[0], NULL, NULL) == MSCCLC_INVALID_ARGUMENT);
  REFUSED(mscclc_group_end(),
          "the group was not launched, as a call of it was refused: mscclc_collective: 'call' is "
          "NULL, or has no size that this version knows");
  OK(mscclc_stream_synchronize(comms[0], streams[0]));
  CHECK(out[0] == 0);
  OK(mscclc_group_start());
  OK(mscclc_allreduce(comms[0], &in[0], &out[0], 1, MSCCLC_I32, MSCCLC_SUM, streams[0]));
  OK(mscclc_stream_destroy(comms[1], streams[0])); /* any communicator's will do */
  CHECK(mscclc_group_end() == MSCCLC_INVALID_USAGE);
  CHECK(strcmp(mscclc_last_error(), "a stream of the group was destroyed before its end") == 0);
  OK(mscclc_stream_create(comms[0], &streams[0]));
  for (uint32_t r = 0; r < kRanks; ++r) OK(mscclc_stream_destroy(comms[r], streams[r]));
}

static mscclc_comm_t *alone(void) {
  mscclc_comm_t *comm = NULL;
  mscclc_unique_id_t made;
  mscclc_config_t config = host();
  OK(mscclc_unique_id(&made));
  OK(mscclc_comm_create(&comm, 1, &made, 0, &config));
  return comm;
}

/* A communicator that comes to lie where the one of a noted call was does not make that call. */
static void group_without_its_communicator(void) {
  int32_t in = 1, out = 0;
  mscclc_stream_t stream;
  mscclc_comm_t *made[20], *noted = alone();
  size_t count = 0;
  OK(mscclc_stream_create(comms[0], &stream));
  OK(mscclc_group_start());
  OK(mscclc_allreduce(noted, &in, &out, 1, MSCCLC_I32, MSCCLC_SUM, stream));
  OK(mscclc_comm_destroy(noted));
  do made[count] = alone();
  while (made[count++] != noted && count < 20);
  CHECK(mscclc_group_end() == MSCCLC_INVALID_USAGE);
  CHECK(strcmp(mscclc_last_error(), "a communicator of the group was destroyed before its end") ==
        0);
  OK(mscclc_stream_synchronize(comms[0], stream));
  CHECK(out == 0);
  while (count > 0) OK(mscclc_comm_destroy(made[--count]));
  OK(mscclc_stream_destroy(comms[0], stream));
}

/* Whatever the rank that has called it does then. */
static void ended_by_own_abort(mscclc_comm_t *comm) {
  mscclc_comm_t *child = NULL;
  mscclc_stream_t stream;
  uint64_t number;
  int32_t word = 1;
  mscclc_result_t said[4];
  OK(mscclc_stream_create(comm, &stream));
  said[0] = mscclc_allreduce(comm, &word, &word, 1, MSCCLC_I32, MSCCLC_SUM, stream);
  said[1] = mscclc_register(comm, &word, 4, &number);
  said[2] = mscclc_comm_split(comm, 0, 0, &child, NULL);
  said[3] = mscclc_stream_synchronize(comm, stream);
  for (int i = 0; i < 4; ++i) CHECK(said[i] == MSCCLC_ABORTED);
  CHECK(strcmp(mscclc_last_error(), "error: rank 1: enough") == 0);
  OK(mscclc_stream_destroy(comm, stream));
}

static void aborted(void) {
  OK(mscclc_comm_abort(comms[1], "enough"));
  CHECK(mscclc_comm_async_error(comms[1]) == MSCCLC_ABORTED);
  CHECK(strcmp(mscclc_last_error(), "error: rank 1: enough") == 0);
  ended_by_own_abort(comms[1]);
  for (uint32_t r = 0; r < kRanks; ++r) OK(mscclc_comm_destroy(comms[r]));
}

static void one_thread(void) {
  pthread_t running[kRanks];
  uint32_t ranks[kRanks];
  OK(mscclc_unique_id(&id));
  OK(mscclc_registry_create(&registry));
  for (uint32_t r = 0; r < kRanks; ++r) {
    ranks[r] = r;
    CHECK(pthread_create(&running[r], NULL, create_rank, &ranks[r]) == 0);
  }
  for (uint32_t r = 0; r < kRanks; ++r) CHECK(pthread_join(running[r], NULL) == 0);
  groups();
  group_without_its_communicator();
  group_without_its_communicator();
  plans_of_the_registry();
  OK(mscclc_registry_destroy(registry));
  REFUSED(mscclc_registry_destroy(registry), "mscclc_registry_destroy: 'registry' is none");
  aborted();
}

/* ---- One rank, the environment, and what needs no communicator ---- */

static int lines;
static void count_lines(void *user, const char *line) {
  ++*(int *)user;
  CHECK(strstr(line, " mscclc ") != NULL);
}

static void by_the_environment(void) {
  mscclc_comm_t *comm = NULL;
  const mscclc_config_t config = host();
  mscclc_stream_t stream;
  int32_t in = 7, out = 0;
  OK(mscclc_set_log(count_lines, &lines));
  OK(mscclc_comm_create_env(&comm, "alone", &config));
  OK(mscclc_stream_create(comm, &stream));
  OK(mscclc_allreduce(comm, &in, &out, 1, MSCCLC_I32, MSCCLC_AVG, stream));
  OK(mscclc_stream_synchronize(comm, stream));
  CHECK(out == 7);
  OK(mscclc_stream_destroy(comm, stream));
  OK(mscclc_comm_destroy(comm));
  OK(mscclc_set_log(NULL, NULL));
  CHECK(lines > 0);
}

/* It is a variable's value that is wrong, not an argument of the call. */
static void by_a_wrong_id(void) {
  mscclc_comm_t *comm = NULL;
  const mscclc_config_t config = host();
  setenv("MSCCLC_ID", "mscclc1/nowhere", 1);
  CHECK(mscclc_comm_create_env(&comm, "alone", &config) == MSCCLC_INVALID_USAGE);
  CHECK(strstr(mscclc_last_error(), "MSCCLC_ID: this is not a unique id: it has 2 parts") != NULL);
  unsetenv("MSCCLC_ID");
}

typedef mscclc_result_t create_rank_0_t(mscclc_comm_t **comm, const mscclc_config_t *config);

/* Rank 1 does not come: the config says how long the first one waits. Where that is not the error,
 * rank 0 itself may have been too slow for so few seconds. */
static void wait_in_vain(create_rank_0_t *create) {
  unsigned seconds;
  int said = 0;
  for (seconds = 3; !said && seconds <= 300; seconds *= 10) {
    mscclc_comm_t *comm = NULL;
    mscclc_config_t config = host();
    char text[64];
    config.timeout_ms = 1000 * seconds;
    CHECK(create(&comm, &config) == MSCCLC_TIMEOUT);
    CHECK(comm == NULL);
    snprintf(text, sizeof text, "rank 1 did not reach the bootstrap within %u s", seconds);
    said = strstr(mscclc_last_error(), text) != NULL;
  }
  CHECK(said);
}

static mscclc_result_t create_at_a_store(mscclc_comm_t **comm, const mscclc_config_t *config) {
  board_t own = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, "", "", 0, 0};
  mscclc_store_t store = MSCCLC_STORE_INIT;
  store.user = &own;
  store.set = board_set;
  store.get = board_get;
  return mscclc_comm_create_store(comm, 2, 0, &store, "alone", config);
}
static void alone_at_a_store(void) { wait_in_vain(create_at_a_store); }

/* Rank 1 does not come, and rank 0 does not want it any more. */
static int board_given_up(void *user) {
  (void)user;
  return 1;
}
static void given_up_at_a_store(void) {
  board_t own = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, "", "", 0, 0};
  mscclc_store_t store = MSCCLC_STORE_INIT;
  mscclc_comm_t *comm = NULL;
  mscclc_config_t config = host();
  config.timeout_ms = 24u * 3600 * 1000;
  store.user = &own;
  store.set = board_set;
  store.get = board_get;
  store.given_up = board_given_up;
  CHECK(mscclc_comm_create_store(&comm, 2, 0, &store, "given up", &config) != MSCCLC_SUCCESS);
  CHECK(comm == NULL);
  CHECK(strstr(mscclc_last_error(), "its store says that it has given up") != NULL);
}

/* Rank 0 makes no id, and rank 1 does not wait for one. */
static void no_id_at_a_store(void) {
  board_t own = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, "", "", 0, 0};
  mscclc_store_t store = MSCCLC_STORE_INIT;
  mscclc_comm_t *comm = NULL;
  const mscclc_config_t config = host();
  store.user = &own;
  store.set = board_set;
  store.get = board_get;
  setenv("MSCCLC_SOCKET_IFNAME", "=nosuch0", 1);
  CHECK(mscclc_comm_create_store(&comm, 2, 0, &store, "no id", &config) != MSCCLC_SUCCESS);
  unsetenv("MSCCLC_SOCKET_IFNAME");
  CHECK(strstr(mscclc_last_error(), "=nosuch0") != NULL);
  CHECK(mscclc_comm_create_store(&comm, 2, 1, &store, "no id", &config) == MSCCLC_PEER_FAILED);
  CHECK(strstr(mscclc_last_error(), "rank 0 has made no id: ") != NULL && comm == NULL);
}

/* alone_at_a_store() where an id was made, which has only the environment's timeout. */
static mscclc_result_t create_at_an_id(mscclc_comm_t **comm, const mscclc_config_t *config) {
  mscclc_unique_id_t made;
  OK(mscclc_unique_id(&made));
  return mscclc_comm_create(comm, 2, &made, 0, config);
}
static void alone_at_an_id(void) { wait_in_vain(create_at_an_id); }

/* What a call of a plan takes, predicted. */
static void explanations(void) {
  char *json = plan_text(), *text = NULL;
  OK(mscclc_plan_explain(json, strlen(json), 1 << 20, MSCCLC_F32, "4xH200", &text));
  CHECK(strstr(text, "\"collective\":\"allgather\"") != NULL);
  CHECK(strstr(text, "\"machine\":\"4xH200\"") != NULL);
  CHECK(strstr(text, "\"path\":[{\"cause\":\"launch\"") != NULL);
  CHECK(strstr(text, "\"proved\":true") != NULL);
  CHECK(strstr(text, "\"passes\":[]") != NULL);
  CHECK(strstr(text, "\"why_picked\":\"the library picks ") != NULL);
  CHECK(strstr(text, "\"choices\":[{\"plan\":\"") != NULL);
  CHECK(strstr(text, "\"asked_bytes\":1048576") != NULL); /* three ranks' share is less */
  mscclc_free(text);
  CHECK(mscclc_plan_explain(json, strlen(json), 1 << 20, MSCCLC_F32, "2xH200", &text) !=
        MSCCLC_SUCCESS);
  CHECK(text == NULL && strstr(mscclc_last_error(), "has 2 GPUs") != NULL);
  CHECK(mscclc_plan_explain(json, strlen(json), 4, MSCCLC_F32, "4xH20", &text) != MSCCLC_SUCCESS);
  CHECK(strstr(mscclc_last_error(), "did you mean '4xH200'?") != NULL);
  CHECK(mscclc_plan_explain("{}", 2, 4, MSCCLC_F32, "4xH200", &text) != MSCCLC_SUCCESS);
  REFUSED(mscclc_plan_explain(json, strlen(json), 4, (mscclc_dtype_t)99, "4xH200", &text),
          "mscclc_plan_explain: 'dtype' is none");
  REFUSED(mscclc_plan_explain(NULL, 0, 4, MSCCLC_F32, "4xH200", &text),
          "mscclc_plan_explain: 'json' or 'machine' is NULL");
  REFUSED(mscclc_plan_explain(json, 0, 4, MSCCLC_F32, "4xH200", NULL),
          "mscclc_plan_explain: 'explanation' is NULL");
  /* Without our key it is a plan of MSCCL++'s; rank 2 then copies its chunk to a wrong place. */
  static const char kChunk[] = "\"type\":\"o\",\"index\":2";
  char *key = strstr(json, ",\"mscclc\":{"), *chunk = strstr(json, kChunk);
  CHECK(key != NULL && chunk != NULL && chunk < key);
  strcpy(key, "}");
  chunk[sizeof kChunk - 2] = '0';
  OK(mscclc_plan_explain(json, strlen(json), 768 << 10, MSCCLC_F32, "4xH200", &text));
  CHECK(
      strstr(text, "\"proved\":false,\"not_proved\":\"error: output[2] of rank 2 does not hold") !=
      NULL);
  CHECK(strstr(text, "asked_bytes") == NULL);
  mscclc_free(text);
  mscclc_free(json);
}

/* What the package for Python hands over: its tests have what is right. */
static void traces(void) {
  /* One rank, of two chunks each, whose thread block 3 has a sync. */
  const uint64_t trace[] = {3, 1, 7, 1, 2, 2, 0, 29, 0, 3, 10};
  const uint64_t signal[] = {3, 1, 7, 2, 2, 2, 0, 2, 2, 0, 66, 0, 0, 1, 23, 0, 0, 0, 12};
  char *gpus = NULL;
  uint64_t *places = NULL, at = 0;
  size_t count = 0;
  OK(mscclc_plan_of_trace(trace, 11, MSCCLC_JSON_COMPACT, &gpus, &places, &count, &at));
  CHECK(strstr(gpus, "[{\"id\":0,\"input_chunks\":2,") == gpus);
  CHECK(count == 7 && places[0] == 4 && places[4] == 1 && places[5] == 10 && at == UINT64_MAX);
  mscclc_free(gpus);
  gpus = NULL;
  mscclc_free((char *)places);
  OK(mscclc_plan_of_trace(trace, 11, 0, NULL, NULL, NULL, &at));
  CHECK(mscclc_plan_of_trace(signal, 19, 0, NULL, NULL, NULL, &at) == MSCCLC_NOT_PROVED);
  CHECK(at == 12 && strcmp(mscclc_last_error(),
                           "rank 0 signals rank 1 once over memory channels, "
                           "which waits never") == 0);
  REFUSED(mscclc_plan_of_trace(trace, 10, 0, &gpus, NULL, NULL, &at),
          "mscclc_plan_of_trace: 'trace' is not of this version");
  REFUSED(mscclc_plan_of_trace(NULL, 0, 0, &gpus, NULL, NULL, &at),
          "mscclc_plan_of_trace: 'trace' or 'wrong_at' is NULL, or only one of 'places' and "
          "'places_count'");
  CHECK(gpus == NULL);
}

static void without_communicators(void) {
  mscclc_unique_id_t bad;
  mscclc_comm_t *comm = (mscclc_comm_t *)&bad;
  mscclc_config_t config = host();
  mscclc_store_t store = MSCCLC_STORE_INIT;
  mscclc_registry_t *shared = NULL;
  char *json = NULL, *said = NULL;
  memset(&bad, 'x', sizeof bad);
  CHECK(strcmp(mscclc_result_text(MSCCLC_NO_PLAN), "no plan") == 0);
  CHECK(strcmp(mscclc_result_text(-1), "unknown result") == 0);
  CHECK(strcmp(mscclc_result_text(11), "unknown result") == 0);
  CHECK(strchr(mscclc_version(), '.') != NULL);
  CHECK(strcmp(mscclc_last_error(), "") == 0);
  REFUSED(mscclc_unique_id(NULL), "mscclc_unique_id: 'id' is NULL");
  CHECK(mscclc_comm_create(&comm, 2, &bad, 0, &config) == MSCCLC_INVALID_ARGUMENT && comm == NULL);
  REFUSED(mscclc_comm_create(&comm, 2, &bad, 2, &config), "error: rank 2 of 2 ranks");
  REFUSED(mscclc_comm_create(NULL, 2, &bad, 0, &config), "mscclc_comm_create: 'comm' is NULL");
  config.size = 4;
  REFUSED(mscclc_comm_create(&comm, 2, &bad, 0, &config),
          "error: the config has no size that this version knows");
  config.size = sizeof config;
  config.registry = (mscclc_registry_t *)&bad;
  REFUSED(mscclc_comm_create(&comm, 2, &bad, 0, &config),
          "error: the config's 'registry' is not a registry");
  REFUSED(mscclc_comm_create_store(&comm, 2, 0, &store, "x", NULL),
          "mscclc_comm_create_store: the store cannot set or get");
  REFUSED(mscclc_comm_create_store(&comm, 2, 0, NULL, "x", NULL),
          "mscclc_comm_create_store: there is no store");
  REFUSED(mscclc_comm_finalize(NULL), "mscclc_comm_finalize: 'comm' is not a communicator");
  REFUSED(mscclc_comm_abort(NULL, NULL), "mscclc_comm_abort: 'comm' is not a communicator");
  REFUSED(mscclc_comm_async_error(NULL), "mscclc_comm_async_error: 'comm' is not a communicator");
  CHECK(mscclc_compile("program x\nnonsense", 18, "x.mscl", NULL, 0, &json, &said) ==
        MSCCLC_NOT_PROVED);
  CHECK(json == NULL && said != NULL && strstr(said, "x.mscl:2:1: error: ") == said);
  mscclc_free(said);
  const char *defines[] = {"R"};
  REFUSED(mscclc_compile("", 0, "x", defines, 1, &json, &said),
          "mscclc_compile: a define is not 'name=value'");
  REFUSED(mscclc_compile(NULL, 0, "x", NULL, 0, &json, &said),
          "mscclc_compile: 'source', 'name' or 'defines' is NULL");
  traces();
  explanations();
  OK(mscclc_registry_default(&shared));
  OK(mscclc_registry_destroy(shared));
  OK(mscclc_registry_destroy(NULL));
  mscclc_free(NULL);
}

int main(void) {
  processes(kRanks, rank_of_a_process);
  processes(2, split_of_who_dies);
  processes(3, split_without_place);
  processes(2, calls_that_are_compared_wait);
  processes(1, limit_at_a_store);
  a_process_that_ends();
#if !defined(MSCCLC_TSAN) && !defined(MSCCLC_ASAN)
  children_of_who_made_the_id();
#endif
  setenv("MSCCLC_DEBUG", "INFO", 1);
  setenv("MSCCLC_DEBUG_SUBSYS", "INIT", 1);
  setenv("MSCCLC_RANK", "0", 1);
  setenv("MSCCLC_WORLD_SIZE", "1", 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", "29500", 1);
  without_communicators();
  alone_at_a_store();
  given_up_at_a_store();
  no_id_at_a_store();
  alone_at_an_id();
  by_the_environment();
  by_a_wrong_id();
  threads();
  one_thread();
  return 0;
}
