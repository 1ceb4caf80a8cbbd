/* Externals of a plan with row functions, from C: two ranks of the host device as threads; tensors,
 * scalars by value and in memory, and what is refused. All numbers are exact. */
#define _POSIX_C_SOURCE 200809L /* setenv() */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mscclc.h"
#include "runtime/doors/c/check.h"

enum { kRanks = 2, kColumns = 8, kRows = 5 };

static const char kProgram[] =
    "row step(x: row T, residual: row T, gain: columns T, scale: scalar f32, least: scalar f32) {\n"
    "  let stream = T(T(x) + residual)\n"
    "  out residual_out: row T = stream\n"
    "  out total: token f32 = max(sum(stream), least)\n"
    "  out y: row T = stream * gain * scale\n"
    "}\n"
    "program    mine\n"
    "external   residual: row T inout, gain: columns T replicated\n"
    "external   scale: scalar f32 replicated, least: scalar f32, total: token f32 out\n"
    "collective allreduce(ranks: 2, columns: 8, then: step)\n"
    "rank r in 0..2 {\n"
    "  let p = 1 - r\n"
    "  buffer inbox[1] packets: LL16, copies: 2\n"
    "  buffer all[1]\n"
    "  channel to = memory(p)\n"
    "  tb 0 {\n"
    "    put_packets to.inbox[0] <- input[0]\n"
    "    reduce_packets all[0] <- inbox[0], input[0]\n"
    "    apply step residual[0], total[0], output[0] <- all[0], residual[0], gain, scale, least\n"
    "  }\n"
    "}\n";

static mscclc_unique_id_t id;
static char *json;

static const size_t kBytes = sizeof(float) * kRows * kColumns;

typedef struct {
  float in[kRows * kColumns], out[kRows * kColumns];
  float residual[(kRows + 1) * kColumns], gain[kColumns], total[kRows + 1], scale;
} data_t;

static float in_of(uint32_t rank, int i) { return (float)(i % 7 + (int)rank); }
static float residual_of(uint32_t rank, int i) { return (float)(i % 3 - (int)rank); }
static float gain_of(int c) { return (float)(1 << c % 4); }

static void fill(data_t *d, uint32_t rank) {
  for (int i = 0; i < kRows * kColumns; ++i) {
    d->in[i] = in_of(rank, i);
    d->out[i] = -1;
  }
  for (int i = 0; i < (kRows + 1) * kColumns; ++i) d->residual[i] = residual_of(rank, i);
  for (int c = 0; c < kColumns; ++c) d->gain[c] = gain_of(c);
  for (int i = 0; i <= kRows; ++i) d->total[i] = -7;
  d->scale = 2;
}

static void compare(const data_t *d, uint32_t rank, float scale, float least) {
  for (int row = 0; row < kRows; ++row) {
    float total = 0;
    for (int c = 0; c < kColumns; ++c) {
      const int i = row * kColumns + c;
      const float stream = in_of(0, i) + in_of(1, i) + residual_of(rank, i);
      total += stream;
      CHECK(d->residual[i] == stream);
      CHECK(d->out[i] == stream * gain_of(c) * scale);
    }
    CHECK(d->total[row] == (total > least ? total : least));
  }
  for (int c = 0; c < kColumns; ++c) { /* beyond the call's rows */
    CHECK(d->residual[kRows * kColumns + c] == residual_of(rank, kRows * kColumns + c));
  }
  CHECK(d->total[kRows] == -7);
}

static void wrong_externals(mscclc_plan_t *plan, mscclc_call_t call, mscclc_stream_t stream) {
  mscclc_external_t own[6];
  const mscclc_external_t *good = call.externals;
  call.externals = own;
#define WRONG(change, text)                             \
  do {                                                  \
    memcpy(own, good, sizeof *own * 5);                 \
    own[5] = good[0];                                   \
    call.externals_count = 5;                           \
    change;                                             \
    check_refused(plan, &call, kBytes, stream, (text)); \
  } while (0)
  WRONG(call.externals_count = 4, "the external 'total' is missing: the call needs 5 x 1 f32");
  WRONG(call.externals_count = 6, "the external 'residual' is given twice");
  WRONG(own[0].name = "mine", "'mine' declares no external 'mine'; it has 'residual', 'gain', ");
  WRONG(own[0].rows = 4, "the external 'residual' has 4 rows: the call needs 5 x 8 f32");
  WRONG(own[0].columns = 9, "the external 'residual' has 9 columns: the call needs 5 x 8 f32");
  WRONG(own[0].dtype = MSCCLC_F16, "the external 'residual' is of f16: the call needs 5 x 8 f32");
  WRONG(own[0].data = NULL, "the external 'residual' has no memory");
  WRONG(own[0].data = (char *)own[0].data + 4, "no multiple of 16 bytes");
  WRONG(own[4].data = own[0].data, "the external 'total' overlaps the external 'residual'");
  WRONG(own[1].data = call.output, "the external 'gain' overlaps the output, and the plan writes");
  WRONG(own[2].dtype = MSCCLC_I32, "external 2 of the call has a type that no external has");
  WRONG(own[2].name = NULL, "external 2 of the call has no name");
  WRONG(own[2].reserved = 1, "external 2 of the call has 'reserved' that is not 0");
  WRONG(call.externals = NULL, "'externals' of the call is NULL");
}

static void *work(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  config.device = MSCCLC_HOST;
  mscclc_comm_t *comm = NULL;
  mscclc_stream_t stream = NULL;
  mscclc_plan_t *plan = NULL;
  OK(mscclc_comm_create(&comm, kRanks, &id, rank, &config));
  OK(mscclc_stream_create(comm, &stream));
  CHECK(mscclc_plan_load(comm, json, strlen(json), "mine.json", 31, MSCCLC_F32, &plan) != 0);
  CHECK(strstr(mscclc_last_error(), "of up to 31 bytes, and a row of 8 f32 takes 32: load it for"));
  OK(mscclc_plan_load(comm, json, strlen(json), "mine.json", 1 << 12, MSCCLC_F32, &plan));
  data_t *d = aligned_alloc(64, (sizeof *d + 63) / 64 * 64);
  CHECK(d != NULL);
  mscclc_external_t externals[] = {
      {"residual", d->residual, MSCCLC_F32, 0, kRows + 1, kColumns, 0},
      {"gain", d->gain, MSCCLC_F32, 0, 1, kColumns, 0},
      {"scale", &d->scale, MSCCLC_F32, 0, 1, 1, 0},
      {"least", NULL, MSCCLC_F32, 20, 1, 1, 0},
      {"total", d->total, MSCCLC_F32, 0, kRows, 1, 0},
  };
  mscclc_call_t call = MSCCLC_CALL_INIT;
  call.input = d->in;
  call.output = d->out;
  call.externals = externals;
  call.externals_count = 5;
  wrong_externals(plan, call, stream);
  uint64_t input = 0, output = 0;
  OK(mscclc_plan_buffers(plan, kBytes, &input, &output));
  CHECK(input > 0);
  // Whole rows of a narrower type, and of none.
  OK(mscclc_plan_buffers(plan, kBytes + 2 * kColumns, &input, &output));
  CHECK(input == kBytes + 2 * kColumns && output == input);
  CHECK(mscclc_plan_buffers(plan, kBytes + 8, &input, &output) == MSCCLC_INVALID_ARGUMENT);
  CHECK(strstr(mscclc_last_error(),
               "168 bytes are no message of the plan's 2 ranks: it has whole "
               "rows of 8 values, 16 bytes each of f16 and bf16, 32 of f32"));
  for (int i = 0; i < 4; ++i) {
    /* Memory is read when the call runs; a value is that of the launch. */
    fill(d, rank);
    d->scale = (float)(1 << i);
    externals[3].value = (float)(10 * i);
    OK(mscclc_plan_launch(plan, &call, kBytes, stream));
    OK(mscclc_stream_synchronize(comm, stream));
    compare(d, rank, d->scale, externals[3].value);
  }
  check_refused(plan,
                &(mscclc_call_t){.size = sizeof(mscclc_call_t),
                                 .op = MSCCLC_SUM,
                                 .accumulate = MSCCLC_DTYPE_DEFAULT,
                                 .input = d->in,
                                 .output = d->out},
                kBytes, stream, "the external 'residual' is missing");
  CHECK(mscclc_collective(comm, &call, stream) == MSCCLC_INVALID_ARGUMENT);
  CHECK(strstr(mscclc_last_error(), "launch_order go with a plan") != NULL);
  OK(mscclc_plan_destroy(plan));
  OK(mscclc_stream_destroy(comm, stream));
  OK(mscclc_comm_destroy(comm));
  free(d);
  return NULL;
}

/* Plans by name and shape. Those of the library are compiled, run and compared elsewhere. */
static void by_shape(void) {
  char *plan = NULL, *choice = NULL;
  uint64_t most = 0;
  OK(mscclc_row_plan("allreduce_norm", 2, 6144, 6, MSCCLC_BF16, MSCCLC_ORDER_DEFAULT, &plan,
                     &choice, &most));
  CHECK(strcmp(choice, "allreduce_norm_1shot:R=2,N=6144,B=8,T=768,F=sentinel") == 0);
  CHECK(most == 8);
  CHECK(strstr(plan, "\"name\":\"allreduce_norm_1shot\"") != NULL);
  CHECK(strstr(plan, "\"proof\"") != NULL);
  mscclc_free(plan);
  mscclc_free(choice);
  OK(mscclc_row_plan("allreduce_norm", 2, 6144, most + 1, MSCCLC_BF16, MSCCLC_ORDER_DEFAULT, NULL,
                     NULL, &most));
  CHECK(most == 32);
  choice = (char *)&most;
  CHECK(mscclc_row_plan("allreduce_nrom", 2, 64, 6, MSCCLC_F32, MSCCLC_ORDER_DEFAULT, NULL, &choice,
                        NULL) == MSCCLC_INVALID_ARGUMENT);
  CHECK(strstr(mscclc_last_error(), "'allreduce_nrom' is none of the collectives of rows") != NULL);
  CHECK(choice == NULL);
  CHECK(mscclc_row_plan(NULL, 2, 64, 6, MSCCLC_F32, MSCCLC_ORDER_DEFAULT, NULL, NULL, NULL) ==
        MSCCLC_INVALID_ARGUMENT);
  CHECK(mscclc_row_plan("allreduce_norm", 2, 64, 6, 99, MSCCLC_ORDER_DEFAULT, NULL, NULL, NULL) ==
        MSCCLC_INVALID_ARGUMENT);
  CHECK(mscclc_row_plan("allreduce_norm", 2, 64, 6, MSCCLC_I32, MSCCLC_ORDER_DEFAULT, NULL, NULL,
                        NULL) == MSCCLC_INVALID_ARGUMENT);
  OK(mscclc_row_plan("allreduce_norm", 72, 64, 6, MSCCLC_F32, MSCCLC_ORDER_DEFAULT, NULL, NULL,
                     NULL));
  CHECK(mscclc_row_plan("allreduce_norm", 73, 64, 6, MSCCLC_F32, MSCCLC_ORDER_DEFAULT, &plan, NULL,
                        NULL) == MSCCLC_INVALID_ARGUMENT);
  CHECK(strstr(mscclc_last_error(), "for up to 72 ranks, not 73") != NULL && plan == NULL);
  CHECK(mscclc_row_plan("allreduce_norm", 4, 64, 6, MSCCLC_F32, 99, NULL, NULL, NULL) ==
        MSCCLC_INVALID_ARGUMENT);
}

static mscclc_result_t in_order(uint32_t ranks, mscclc_order_t order) {
  return mscclc_row_plan("allreduce_norm", ranks, 64, 6, MSCCLC_BF16, order, NULL, NULL, NULL);
}

/* They add in the order of the ranks; of two ranks that is every order. */
static void by_order(void) {
  for (mscclc_order_t order = MSCCLC_ORDER_ANY; order <= MSCCLC_ORDER_EXACT; ++order) {
    OK(in_order(2, order));
    if (order <= MSCCLC_ORDER_RANKS) OK(in_order(4, order));
  }
  CHECK(in_order(4, MSCCLC_ORDER_TREE) == MSCCLC_INVALID_USAGE);
  CHECK(strstr(mscclc_last_error(),
               "no plan serves allreduce_norm of 4 ranks, 'bf16', under "
               "'tree'") != NULL);
  CHECK(strstr(mscclc_last_error(),
               "the nearest plan is 'allreduce_norm_1shot', which keeps 'ranks'") != NULL);
  CHECK(in_order(3, MSCCLC_ORDER_EXACT) == MSCCLC_INVALID_USAGE);
  OK(in_order(4, MSCCLC_ORDER_DEFAULT));
  setenv("MSCCLC_ORDER", "exact", 1);
  CHECK(in_order(4, MSCCLC_ORDER_DEFAULT) == MSCCLC_INVALID_USAGE);
  OK(in_order(4, MSCCLC_ORDER_RANKS));
  setenv("MSCCLC_ORDER", "exactly", 1);
  CHECK(in_order(4, MSCCLC_ORDER_DEFAULT) == MSCCLC_INVALID_USAGE);
  unsetenv("MSCCLC_ORDER");
}

/* Columns that the caller fixes before a plan is loaded. */
static void any_columns(void) {
  static const char kAny[] = "columns: 4..";
  char source[sizeof kProgram + sizeof kAny], *plan = NULL, *fixed = NULL, *said = NULL;
  const char *at = strstr(kProgram, "columns: 8");
  CHECK(at != NULL);
  snprintf(source, sizeof source, "%.*s%s%s", (int)(at - kProgram), kProgram, kAny,
           at + strlen("columns: 8"));
  OK(mscclc_compile(source, strlen(source), "any.mscl", NULL, 0, &plan, &said));
  mscclc_free(said);
  CHECK(mscclc_plan_columns(plan, strlen(plan), 10, &fixed) == MSCCLC_INVALID_ARGUMENT);
  CHECK(strstr(mscclc_last_error(), "8 is the last, and 12 is the next") != NULL);
  CHECK(fixed == NULL);
  OK(mscclc_plan_columns(plan, strlen(plan), kColumns, &fixed));
  CHECK(strstr(fixed, "\"columns\":8") != NULL);
  CHECK(mscclc_plan_columns(fixed, strlen(fixed), kColumns, &said) == MSCCLC_INVALID_ARGUMENT);
  CHECK(mscclc_plan_columns("{}", 2, 8, &said) == MSCCLC_INVALID_ARGUMENT);
  CHECK(mscclc_plan_columns(NULL, 0, 8, &said) == MSCCLC_INVALID_ARGUMENT);
  CHECK(mscclc_plan_columns(plan, strlen(plan), 8, NULL) == MSCCLC_INVALID_ARGUMENT);
  mscclc_free(plan);
  mscclc_free(json);
  json = fixed; /* what the ranks run */
}

int main(void) {
  static const uint32_t ranks[kRanks] = {0, 1};
  pthread_t threads[kRanks];
  char *said = NULL;
  OK(mscclc_compile(kProgram, strlen(kProgram), "mine.mscl", NULL, 0, &json, &said));
  mscclc_free(said);
  by_shape();
  by_order();
  for (int turn = 0; turn < 2; ++turn) {
    if (turn == 1) any_columns();
    OK(mscclc_unique_id(&id));
    for (int r = 0; r < kRanks; ++r) {
      CHECK(pthread_create(&threads[r], NULL, work, (void *)&ranks[r]) == 0);
    }
    for (int r = 0; r < kRanks; ++r) CHECK(pthread_join(threads[r], NULL) == 0);
  }
  mscclc_free(json);
  return 0;
}
