/* Communicators that are used where they may not be: by a second thread, while they are destroyed,
 * in a child of fork(), and with a config or an argument of one rank that is wrong. Ranks are
 * threads on the host device. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mscclc.h"
#include "runtime/doors/c/check.h"

enum { kRanks = 2 };

#define MISUSE(call, text)                              \
  do {                                                  \
    CHECK((call) == MSCCLC_INVALID_USAGE);              \
    CHECK(strstr(mscclc_last_error(), (text)) != NULL); \
  } while (0)

static const char kTwoThreads[] = "another thread is inside";

static mscclc_unique_id_t id;
static mscclc_comm_t *comms[kRanks];
static mscclc_stream_t streams[kRanks];
static float data[kRanks] = {1, 2};

static void *create(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  config.device = MSCCLC_HOST;
  OK(mscclc_comm_create(&comms[rank], kRanks, &id, rank, &config));
  OK(mscclc_stream_create(comms[rank], &streams[rank]));
  return NULL;
}

/* Runs `body` on a thread for each rank. */
static void on_ranks(void *(*body)(void *)) {
  static const uint32_t ranks[kRanks] = {0, 1};
  pthread_t threads[kRanks];
  for (int r = 0; r < kRanks; ++r) {
    CHECK(pthread_create(&threads[r], NULL, body, (void *)&ranks[r]) == 0);
  }
  for (int r = 0; r < kRanks; ++r) CHECK(pthread_join(threads[r], NULL) == 0);
}

/* ---- A second thread ---- */

static int first_call;
static atomic_int queued, refused;

static mscclc_result_t sum(uint32_t rank) {
  return mscclc_allreduce(comms[rank], &data[rank], &data[rank], 1, MSCCLC_F32, MSCCLC_SUM,
                          streams[rank]);
}

/* All that a thread may ask while another one is inside rank 0's communicator. */
static void *enter_too(void *unused) {
  mscclc_comm_t *const comm = comms[0];
  mscclc_call_t call = MSCCLC_CALL_INIT;
  mscclc_comm_t *child = NULL;
  mscclc_memory_t *made = NULL;
  mscclc_stream_t stream = NULL;
  char *text = NULL;
  int32_t waits = 0;
  float other = 0;
  while (!first_call && !queued) sched_yield();
  /* Until the other one is inside, there is no such registration. It stays inside until the other
   * is refused. */
  while (mscclc_deregister(comm, 99) != MSCCLC_INVALID_USAGE) sched_yield();
  MISUSE(mscclc_deregister(comm, 99), kTwoThreads);
  MISUSE(sum(0), kTwoThreads);
  MISUSE(mscclc_stream_synchronize(comm, streams[0]), kTwoThreads);
  call.kind = MSCCLC_ALLREDUCE;
  call.count = 1;
  MISUSE(mscclc_choose(comm, &call, 0, &text), kTwoThreads);
  MISUSE(mscclc_waits(comm, &call, streams[0], &waits), kTwoThreads);
  MISUSE(mscclc_comm_split(comm, 0, 0, &child, NULL), kTwoThreads);
  MISUSE(mscclc_comm_finalize(comm), kTwoThreads);
  MISUSE(mscclc_stream_create(comm, &stream), kTwoThreads);
  MISUSE(mscclc_stream_destroy(comm, streams[0]), kTwoThreads);
  MISUSE(mscclc_memory_create(comm, 4, &made), kTwoThreads);
  MISUSE(mscclc_write(comm, &other, &waits, 4), kTwoThreads);
  MISUSE(mscclc_read(comm, &other, &waits, 4), kTwoThreads);
  CHECK(stream == NULL && made == NULL);
  MISUSE(mscclc_comm_destroy(comm), kTwoThreads);
  OK(mscclc_comm_async_error(comm));
  refused = 1;
  return unused;
}

/* Rank 0 is inside its first call, or waits for the end of a later one, until rank 1 comes; rank 1
 * comes when the second thread of rank 0 has been refused. */
static void *call_beside_another(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  pthread_t other;
  if (rank == 0) CHECK(pthread_create(&other, NULL, enter_too, NULL) == 0);
  while (rank == 1 && !refused) sched_yield();
  mscclc_result_t result;
  do { /* the other thread may have been inside just now */
    result = sum(rank);
  } while (result == MSCCLC_INVALID_USAGE && rank == 0);
  OK(result);
  if (rank == 0) queued = 1;
  do {
    result = mscclc_stream_synchronize(comms[rank], streams[rank]);
  } while (result == MSCCLC_INVALID_USAGE && rank == 0);
  OK(result);
  if (rank == 0) CHECK(pthread_join(other, NULL) == 0);
  CHECK(data[rank] == (first_call ? 3 : 6));
  return NULL;
}

/* ---- Memory that its last owner releases while others ask for it ---- */

enum { kAskers = 3 };
static _Atomic(mscclc_memory_t *) asked;
static atomic_int answered;

static void *ask(void *unused) {
  while (!answered) {
    (void)mscclc_memory_address(asked);
    (void)mscclc_memory_bytes(asked);
  }
  return unused;
}

static void release_beside_others(void) {
  pthread_t askers[kAskers];
  for (int i = 0; i < kAskers; ++i) CHECK(pthread_create(&askers[i], NULL, ask, NULL) == 0);
  for (int i = 0; i < 3000; ++i) {
    mscclc_memory_t *made = NULL;
    OK(mscclc_memory_create(comms[0], 1, &made));
    asked = made;
    OK(mscclc_memory_release(made));
  }
  answered = 1;
  for (int i = 0; i < kAskers; ++i) CHECK(pthread_join(askers[i], NULL) == 0);
}

/* ---- A child of fork(): the thread sanitizer allows it no threads ---- */

#ifndef MSCCLC_TSAN
static const char kAfterFork[] = "before this process was forked";

/* What the parent's threads hold looks lost to the leak sanitizer in a child, which has none of
 * them. */
static int is_child;
#ifdef MSCCLC_ASAN
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return is_child; }
#endif

static mscclc_memory_t *memory;
static mscclc_registry_t *registry;

static void be_child(void) {
  mscclc_comm_t *const comm = comms[0];
  mscclc_comm_t *made = NULL;
  uint32_t number = 0;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  MISUSE(sum(0), kAfterFork);
  MISUSE(mscclc_comm_rank(comm, &number), kAfterFork);
  MISUSE(mscclc_stream_synchronize(comm, streams[0]), kAfterFork);
  MISUSE(mscclc_comm_async_error(comm), kAfterFork);
  MISUSE(mscclc_comm_abort(comm, "not from here"), kAfterFork);
  MISUSE(mscclc_comm_split(comm, 0, 0, &made, NULL), kAfterFork);
  MISUSE(mscclc_comm_destroy(comm), kAfterFork);
  MISUSE(mscclc_memory_release(memory), kAfterFork);
  CHECK(mscclc_memory_address(memory) == NULL);
  MISUSE(mscclc_registry_add(registry, "."), kAfterFork);
  MISUSE(mscclc_registry_destroy(registry), kAfterFork);
  /* It may make its own. */
  config.device = MSCCLC_HOST;
  OK(mscclc_unique_id(&id));
  OK(mscclc_comm_create(&made, 1, &id, 0, &config));
  OK(mscclc_comm_rank(made, &number));
  OK(mscclc_comm_destroy(made));
}

static void child_of_fork(void) {
  int status = 0;
  OK(mscclc_memory_create(comms[0], 4, &memory));
  OK(mscclc_registry_create(&registry));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    is_child = 1;
    be_child();
    exit(0); /* with all that a program does at its end */
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(mscclc_memory_address(memory) != NULL);
  OK(mscclc_memory_release(memory));
  OK(mscclc_registry_destroy(registry));
}
#endif

/* ---- A config of one rank alone that is wrong: the others do not wait for that rank ---- */

static mscclc_config_t unknown_order_of_rank_1(uint32_t rank) {
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  config.device = MSCCLC_HOST;
  if (rank == 1) config.order = (mscclc_order_t)99;
  return config;
}

static void check_wrong(uint32_t rank, mscclc_result_t result, const mscclc_comm_t *made) {
  CHECK(result == (rank == 1 ? MSCCLC_INVALID_ARGUMENT : MSCCLC_PEER_FAILED));
  CHECK(strstr(mscclc_last_error(), rank == 1 ? "the config's 'order' is unknown" : "rank 1"));
  CHECK(made == NULL);
}

static void *create_wrongly(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  const mscclc_config_t config = unknown_order_of_rank_1(rank);
  mscclc_comm_t *made = NULL;
  check_wrong(rank, mscclc_comm_create(&made, kRanks, &id, rank, &config), made);
  return NULL;
}

static void *split_wrongly(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  const mscclc_config_t config = unknown_order_of_rank_1(rank);
  mscclc_comm_t *made = NULL;
  check_wrong(rank, mscclc_comm_split(comms[rank], 0, 0, &made, &config), made);
  if (rank == 1) {
    check_wrong(rank, mscclc_comm_split(comms[rank], -1, 0, &made, &config), made);
  } else {
    OK(mscclc_comm_split(comms[rank], -1, 0, &made, &config));
  }
  return NULL;
}

/* ---- Arguments of one rank alone that are NULL: neither ---- */

static void *name_nothing(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  const mscclc_result_t expected = rank == 1 ? MSCCLC_INVALID_ARGUMENT : MSCCLC_PEER_FAILED;
  mscclc_comm_t *child = NULL;
  mscclc_plan_t *plan = NULL;
  uint64_t registration = 0;
  char *json = NULL;
  OK(mscclc_row_plan("allreduce_norm", kRanks, 512, 4, MSCCLC_F32, MSCCLC_ORDER_DEFAULT, &json,
                     NULL, NULL));
  CHECK(mscclc_comm_split(comms[rank], 0, 0, rank == 1 ? NULL : &child, NULL) == expected);
  CHECK(strstr(mscclc_last_error(), rank == 1 ? "'child' is NULL" : "rank 1") != NULL);
  CHECK(mscclc_register(comms[rank], &data[rank], sizeof data[rank],
                        rank == 1 ? NULL : &registration) == expected);
  CHECK(strstr(mscclc_last_error(), rank == 1 ? "'address' or 'registration' is NULL"
                                              : "rank 1 cannot register a buffer") != NULL);
  CHECK(mscclc_plan_load(comms[rank], json, strlen(json), "norm.json", 8192, MSCCLC_F32,
                         rank == 1 ? NULL : &plan) == expected);
  CHECK(strstr(mscclc_last_error(), "'json', 'name' or 'plan' is NULL") != NULL);
  CHECK(child == NULL && plan == NULL && registration == 0);
  mscclc_free(json);
  return NULL;
}

static void *call_again(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  OK(sum(rank));
  OK(mscclc_stream_synchronize(comms[rank], streams[rank]));
  CHECK(data[rank] == 12);
  OK(mscclc_comm_async_error(comms[rank]));
  return NULL;
}

static void *destroy(void *given) {
  const uint32_t rank = *(const uint32_t *)given;
  OK(mscclc_stream_destroy(comms[rank], streams[rank]));
  OK(mscclc_comm_destroy(comms[rank]));
  return NULL;
}

int main(void) {
  OK(mscclc_unique_id(&id));
  on_ranks(create);
  for (first_call = 1; first_call >= 0; --first_call) {
    queued = refused = 0;
    on_ranks(call_beside_another);
  }
  release_beside_others();
#ifndef MSCCLC_TSAN
  child_of_fork();
#endif
  on_ranks(split_wrongly);
  OK(mscclc_unique_id(&id));
  on_ranks(create_wrongly);
  on_ranks(name_nothing);
  on_ranks(call_again);
  on_ranks(destroy);
  return 0;
}
