/* Flags of a plan, from C: two ranks of the host device as threads. The other side raises those of
 * the input while the call runs, and looks for those of the output; and what is refused. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mscclc.h"
#include "runtime/doors/c/check.h"

enum { kRanks = 2, kFlags = 2, kCount = 8, kCalls = 5 };

static const char kProgram[] =
    "program    through\n"
    "external   flags made[2] of: input, raises: 3\n"
    "external   flags ready[2] of: output, bits: 64\n"
    "collective sendrecv(ranks: 2, chunks: 2, shift: 0)\n"
    "rank r in 0..2 {\n"
    "  tb c in 0..2 {\n"
    "    await made[c]\n"
    "    copy output[c] <- input[c]\n"
    "    notify ready[c]\n"
    "  }\n"
    "}\n";

static mscclc_unique_id_t id;
static char *json;

static const uint64_t kBytes = sizeof(float) * kCount;

static void wrong_flags(mscclc_plan_t *plan, mscclc_call_t call, mscclc_stream_t stream) {
  mscclc_flags_t own[3];
  const mscclc_flags_t *good = call.flags;
  call.flags = own;
#define WRONG(change, text)                             \
  do {                                                  \
    memcpy(own, good, sizeof *own * 2);                 \
    own[2] = good[0];                                   \
    call.flags_count = 2;                               \
    call.launch_order = 0;                              \
    change;                                             \
    check_refused(plan, &call, kBytes, stream, (text)); \
  } while (0)
  WRONG(call.flags_count = 1, "the flags 'ready' are missing: the call needs 2 words of 64 bits");
  WRONG(call.flags_count = 3, "the flags 'made' are given twice");
  WRONG(own[0].name = "mine", "'through' declares no flags 'mine'; it has 'made', 'ready'");
  WRONG(own[0].count = 1, "the flags 'made' have 1 words: the call needs 2 words of 32 bits");
  WRONG(own[1].bits = 32, "the flags 'ready' have words of 32 bits: the call needs 2 words of 64");
  WRONG(own[0].words = NULL, "the flags 'made' have no memory");
  WRONG(own[1].words = (char *)own[1].words + 4, "no multiple of 8 bytes");
  WRONG(own[1].words = own[0].words, "the flags 'ready' overlap the flags 'made'");
  WRONG(own[1].name = NULL, "flags 1 of the call have no name");
  WRONG(own[1].reserved = 1, "flags 1 of the call have 'reserved' that is not 0");
  WRONG(call.flags = NULL, "'flags' of the call is NULL");
  call.flags = own;
  WRONG(call.launch_order = 3, "'launch_order' of the call is none");
}

/* The other side of one call: it has the input ready in the opposite order. */
static void raise_all(uint32_t *made, float *in, int call) {
  for (int c = kFlags - 1; c >= 0; --c) {
    __atomic_fetch_add(made + c, 2, __ATOMIC_RELEASE);
    for (int i = 0; i < kCount / kFlags; ++i) in[c * kCount / kFlags + i] = (float)(call + i);
    __atomic_fetch_add(made + c, 1, __ATOMIC_RELEASE);
  }
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
  OK(mscclc_plan_load(comm, json, strlen(json), "through.json", 1 << 12, MSCCLC_F32, &plan));
  float in[kCount], out[kCount];
  uint64_t made[kFlags] = {0}, ready[kFlags] = {0};
  const mscclc_flags_t flags[] = {{"ready", ready, kFlags, 64, 0}, {"made", made, 4, 32, 0}};
  const mscclc_flags_t in_order[] = {flags[1], flags[0]};
  mscclc_call_t call = MSCCLC_CALL_INIT;
  call.input = in;
  call.output = out;
  call.flags = in_order;
  call.flags_count = 2;
  wrong_flags(plan, call, stream);
  call.flags = flags;
  call.launch_order = MSCCLC_PLAN_FIRST;
  call.budget = 4;
  for (int k = 0; k < kCalls; ++k) {
    for (int i = 0; i < kCount; ++i) in[i] = out[i] = -1;
    OK(mscclc_plan_launch(plan, &call, kBytes, stream));
    raise_all((uint32_t *)made, in, k);
    for (int c = 0; c < kFlags; ++c) {
      while (__atomic_load_n(ready + c, __ATOMIC_ACQUIRE) != (uint64_t)(k + 1)) {
      }
      for (int i = 0; i < kCount / kFlags; ++i) {
        CHECK(out[c * kCount / kFlags + i] == (float)(k + i));
      }
    }
    OK(mscclc_stream_synchronize(comm, stream));
  }
  CHECK(mscclc_collective(comm, &call, stream) == MSCCLC_INVALID_ARGUMENT);
  CHECK(strstr(mscclc_last_error(), "launch_order go with a plan") != NULL);
  OK(mscclc_plan_destroy(plan));
  OK(mscclc_stream_destroy(comm, stream));
  OK(mscclc_comm_destroy(comm));
  return NULL;
}

int main(void) {
  static const uint32_t ranks[kRanks] = {0, 1};
  pthread_t threads[kRanks];
  char *said = NULL;
  OK(mscclc_compile(kProgram, strlen(kProgram), "through.mscl", NULL, 0, &json, &said));
  mscclc_free(said);
  OK(mscclc_unique_id(&id));
  for (int r = 0; r < kRanks; ++r) {
    CHECK(pthread_create(&threads[r], NULL, work, (void *)&ranks[r]) == 0);
  }
  for (int r = 0; r < kRanks; ++r) CHECK(pthread_join(threads[r], NULL) == 0);
  mscclc_free(json);
  return 0;
}
