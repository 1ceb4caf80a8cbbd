/* Callbacks of the application that use the library, or wait for a thread that is in it, and what
 * becomes of them in processes that fork or end. Communicators of one rank, on the host device. */
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

static mscclc_comm_t *create(void) {
  mscclc_unique_id_t id;
  mscclc_comm_t *comm = NULL;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  config.device = MSCCLC_HOST;
  OK(mscclc_unique_id(&id));
  OK(mscclc_comm_create(&comm, 1, &id, 0, &config));
  return comm;
}

/* ---- The log ---- */

static atomic_int lines;

/* Whatever the library was doing when it wrote the line, it is not in the way. */
static void use_the_library(void *user, const char *line) {
  mscclc_registry_t *registry;
  mscclc_unique_id_t id;
  static atomic_int inside;
  CHECK(user == &lines && strstr(line, " mscclc ") != NULL);
  CHECK(inside++ == 0); /* one call at a time */
  if (lines++ < 8) {    /* these calls are logged, too */
    OK(mscclc_registry_default(&registry));
    OK(mscclc_registry_destroy(registry));
    OK(mscclc_unique_id(&id));
    OK(mscclc_comm_destroy(create()));
  }
  --inside;
}

static void a_log_uses_the_library(void) {
  OK(mscclc_set_log(use_the_library, &lines));
  OK(mscclc_comm_destroy(create()));
  OK(mscclc_set_log(NULL, NULL));
  CHECK(lines > 8);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void wait_for_lock(void *user, const char *line) {
  CHECK(pthread_mutex_lock(&held) == 0);
  ++*(int *)user;
  CHECK(line != NULL);
  CHECK(pthread_mutex_unlock(&held) == 0);
}

/* A lock of the application, which its threads hold while they use the library. */
static void a_log_waits_for_a_lock(void) {
  int said = 0;
  OK(mscclc_set_log(wait_for_lock, &said));
  CHECK(pthread_mutex_lock(&held) == 0);
  mscclc_comm_t *const comm = create();
  OK(mscclc_comm_abort(comm, "enough"));
  CHECK(mscclc_comm_async_error(comm) == MSCCLC_ABORTED);
  OK(mscclc_comm_destroy(comm));
  CHECK(said == 0);
  CHECK(pthread_mutex_unlock(&held) == 0);
  OK(mscclc_set_log(NULL, NULL));
  CHECK(said > 0);
}

static void take_away(void *user, const char *line) {
  CHECK(line != NULL);
  OK(mscclc_set_log(NULL, NULL));
  ++*(atomic_int *)user;
}

static void a_log_takes_itself_away(void) {
  static atomic_int said;
  OK(mscclc_set_log(take_away, &said));
  OK(mscclc_comm_destroy(create()));
  while (said == 0) CHECK(sched_yield() == 0);
  CHECK(said == 1);
}

/* ---- Processes that end, or fork ---- */

/* Runs it in a child, whose exit must be a good one. */
static void in_child(void (*body)(int), int to) {
  int status = 0;
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    body(to);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void write_line(void *user, const char *line) {
  const int to = *(const int *)user;
  CHECK(pthread_mutex_lock(&held) == 0 && pthread_mutex_unlock(&held) == 0);
  CHECK(write(to, line, strlen(line)) > 0 && write(to, "\n", 1) == 1);
}

static void let_write(void) { CHECK(pthread_mutex_unlock(&held) == 0); }

/* No line is delivered before the end begins. */
static void log_and_end(int given) {
  static int to;
  to = given;
  CHECK(pthread_mutex_lock(&held) == 0);
  OK(mscclc_set_log(write_line, &to));
  CHECK(atexit(let_write) == 0);
  OK(mscclc_comm_destroy(create()));
}

/* The callback stays set until the process ends. Whether it has had its lines. */
static int has_lines_at_the_end(void) {
  int ends[2];
  char text[65536] = "";
  size_t bytes = 0;
  CHECK(pipe(ends) == 0);
  in_child(log_and_end, ends[1]);
  CHECK(close(ends[1]) == 0);
  for (ssize_t got = 1; got > 0 && bytes < sizeof text - 1; bytes += (size_t)got) {
    got = read(ends[0], text + bytes, sizeof text - 1 - bytes);
    CHECK(got >= 0);
  }
  CHECK(close(ends[0]) == 0);
  return strstr(text, "INFO INIT communicator of 1 ranks on host") != NULL;
}

/* The end of a process waits a second for them: a thread may stand still for longer. */
static void a_process_ends(void) {
  int tries = 1;
  while (!has_lines_at_the_end()) CHECK(++tries <= 5);
}

/* The thread sanitizer allows threads in no child of a process that has some. */
#ifndef MSCCLC_TSAN
static void count(void *user, const char *line) {
  CHECK(line != NULL);
  ++*(atomic_int *)user;
}

#ifdef MSCCLC_ASAN
static int is_child; /* what the parent's threads hold looks lost there */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return is_child; }
#endif

static void log_in_child(int unused) {
#ifdef MSCCLC_ASAN
  is_child = 1;
#endif
  (void)unused;
  lines = 0;
  OK(mscclc_comm_destroy(create()));
  OK(mscclc_set_log(NULL, NULL));
  CHECK(lines > 0);
}

/* The child has none of its parent's threads. */
static void a_process_forks(void) {
  OK(mscclc_set_log(count, &lines));
  OK(mscclc_comm_destroy(create()));
  in_child(log_in_child, 0);
  OK(mscclc_set_log(NULL, NULL));
}
#endif

/* ---- Selectors and stores ---- */

static mscclc_comm_t *chosen_by;

/* It asks what it is asked itself. */
static mscclc_selection_t ask_the_library(void *user, const mscclc_request_t *request,
                                          char plan[256]) {
  mscclc_call_t call = MSCCLC_CALL_INIT;
  char *text = NULL;
  call.kind = MSCCLC_ALLGATHER;
  call.count = 5;
  CHECK(plan[0] == '\0' && request->ranks == 2);
  CHECK(mscclc_choose(chosen_by, &call, 0, &text) == MSCCLC_INVALID_USAGE);
  CHECK(text == NULL && strstr(mscclc_last_error(), "by itself") != NULL);
  ++*(int *)user;
  return MSCCLC_SELECT_USUAL;
}

static mscclc_unique_id_t met;
static mscclc_registry_t *registry;

static void *be_rank(void *given) {
  const uint32_t rank = given != NULL;
  mscclc_comm_t *comm = NULL;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  mscclc_call_t call = MSCCLC_CALL_INIT;
  char *text = NULL;
  int asked = 0;
  config.device = MSCCLC_HOST;
  config.registry = registry;
  OK(mscclc_comm_create(&comm, 2, &met, rank, &config));
  if (rank == 0) {
    chosen_by = comm;
    OK(mscclc_set_selector(registry, ask_the_library, &asked));
    call.kind = MSCCLC_ALLREDUCE;
    call.count = 5;
    OK(mscclc_choose(comm, &call, 0, &text));
    CHECK(asked == 1 && strstr(text, "allreduce") != NULL);
    mscclc_free(text);
    OK(mscclc_set_selector(registry, NULL, NULL));
  }
  OK(mscclc_comm_destroy(comm));
  return NULL;
}

static void a_selector_uses_the_library(void) {
  pthread_t other;
  OK(mscclc_unique_id(&met));
  OK(mscclc_registry_create(&registry));
  CHECK(pthread_create(&other, NULL, be_rank, &met) == 0);
  be_rank(NULL);
  CHECK(pthread_join(other, NULL) == 0);
  OK(mscclc_registry_destroy(registry));
}

static int set_nothing(void *user, const char *key, const void *value, size_t bytes) {
  return user != NULL || key == NULL || value == NULL || bytes == 0;
}
/* More than there was room for. On its way it uses the library. */
static int get_too_much(void *user, const char *key, void *value, size_t *bytes, uint32_t timeout) {
  OK(mscclc_comm_destroy(create()));
  memset(value, 'x', *bytes);
  *bytes = 1000000;
  return user != NULL || key == NULL || timeout == 0;
}

static void a_store_lies(void) {
  mscclc_comm_t *comm = NULL;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  mscclc_store_t store = MSCCLC_STORE_INIT;
  config.device = MSCCLC_HOST;
  store.set = set_nothing;
  store.get = get_too_much;
  CHECK(mscclc_comm_create_store(&comm, 2, 1, &store, "lies", &config) == MSCCLC_INVALID_ARGUMENT);
  CHECK(comm == NULL && strstr(mscclc_last_error(), "it is too long") != NULL);
}

int main(void) {
  CHECK(setenv("MSCCLC_DEBUG", "TRACE", 1) == 0);
  CHECK(setenv("MSCCLC_DEBUG_SUBSYS", "ALL", 1) == 0);
  CHECK(setenv("MSCCLC_DEBUG_FILE", "/dev/null", 1) == 0);
  CHECK(setenv("MSCCLC_FLIGHT_FILE", "none", 1) == 0);
  a_process_ends(); /* while there are no threads */
  a_log_uses_the_library();
  a_log_waits_for_a_lock();
  a_log_takes_itself_away();
#ifndef MSCCLC_TSAN
  a_process_forks();
#endif
  a_selector_uses_the_library();
  a_store_lies();
  return 0;
}
