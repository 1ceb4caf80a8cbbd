/* The library as programs load it that do not link it: closed while its threads run, opened again,
 * and twice in one process, as two files of two packages that keep their names to themselves. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mscclc.h"

static const char kFile[] = "runtime/doors/c/libmscclc.so.0";

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) {                                                          \
      fprintf(stderr, "%s:%d: %s %s\n", __FILE__, __LINE__, #condition, said()); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

static const char *said(void) {
  const char *text = dlerror();
  return text == NULL ? "" : text;
}

/* What a program needs of one copy. */
typedef struct copy {
  void *library;
  mscclc_result_t (*unique_id)(mscclc_unique_id_t *);
  mscclc_result_t (*create)(mscclc_comm_t **, uint32_t, const mscclc_unique_id_t *, uint32_t,
                            const mscclc_config_t *);
  mscclc_result_t (*destroy)(mscclc_comm_t *);
  mscclc_result_t (*stream_create)(mscclc_comm_t *, mscclc_stream_t *);
  mscclc_result_t (*stream_destroy)(mscclc_comm_t *, mscclc_stream_t);
  mscclc_result_t (*synchronize)(mscclc_comm_t *, mscclc_stream_t);
  mscclc_result_t (*allreduce)(mscclc_comm_t *, const void *, void *, uint64_t, mscclc_dtype_t,
                               mscclc_op_t, mscclc_stream_t);
} copy_t;

/* A function is no object for ISO C: its address is copied. */
#define FIND(copy, member, name)                        \
  do {                                                  \
    void *const found = dlsym((copy)->library, (name)); \
    CHECK(found != NULL);                               \
    memcpy(&(copy)->member, &found, sizeof found);      \
  } while (0)

static copy_t open_copy(const char *path) {
  copy_t copy;
  copy.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(copy.library != NULL);
  FIND(&copy, unique_id, "mscclc_unique_id");
  FIND(&copy, create, "mscclc_comm_create");
  FIND(&copy, destroy, "mscclc_comm_destroy");
  FIND(&copy, stream_create, "mscclc_stream_create");
  FIND(&copy, stream_destroy, "mscclc_stream_destroy");
  FIND(&copy, synchronize, "mscclc_stream_synchronize");
  FIND(&copy, allreduce, "mscclc_allreduce");
  return copy;
}

/* A communicator that is made and used, and an id that no rank uses: a thread serves it. */
static mscclc_comm_t *use(const copy_t *copy) {
  mscclc_unique_id_t id, unused;
  mscclc_comm_t *comm = NULL;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  mscclc_stream_t stream;
  float in = 3, out = 0;
  config.device = MSCCLC_HOST;
  CHECK(copy->unique_id(&unused) == MSCCLC_SUCCESS);
  CHECK(copy->unique_id(&id) == MSCCLC_SUCCESS);
  CHECK(copy->create(&comm, 1, &id, 0, &config) == MSCCLC_SUCCESS);
  CHECK(copy->stream_create(comm, &stream) == MSCCLC_SUCCESS);
  CHECK(copy->allreduce(comm, &in, &out, 1, MSCCLC_F32, MSCCLC_SUM, stream) == MSCCLC_SUCCESS);
  CHECK(copy->synchronize(comm, stream) == MSCCLC_SUCCESS && out == 3);
  CHECK(copy->stream_destroy(comm, stream) == MSCCLC_SUCCESS);
  return comm;
}

/* In a thread that ends: what is its own then keeps the library no longer. */
static void *use_and_close(void *unused) {
  const copy_t copy = open_copy(kFile);
  (void)use(&copy); /* stays, with its threads */
  CHECK(dlclose(copy.library) == 0);
  return unused;
}

static void closed_and_opened(void) {
  for (int i = 0; i < 3; ++i) {
    pthread_t user;
    void *const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    CHECK(pthread_create(&user, NULL, use_and_close, NULL) == 0);
    CHECK(pthread_join(user, NULL) == 0);
    CHECK(dlclose(library) == 0);
    /* Its threads go on. */
    void *const kept = dlopen(kFile, RTLD_NOW | RTLD_NOLOAD);
    CHECK(kept != NULL && dlclose(kept) == 0);
  }
}

static void copy_file(const char *from, const char *to) {
  static char part[1 << 16];
  FILE *const in = fopen(from, "rb"), *const out = fopen(to, "wb");
  CHECK(in != NULL && out != NULL);
  for (size_t got; (got = fread(part, 1, sizeof part, in)) > 0;) {
    CHECK(fwrite(part, 1, got, out) == got);
  }
  CHECK(fclose(in) == 0 && fclose(out) == 0);
}

static void two_copies(void) {
  char path[4096];
  const char *folder = getenv("TEST_TMPDIR");
  snprintf(path, sizeof path, "%s/libmscclc_copy.so.0", folder == NULL ? "/tmp" : folder);
  copy_file(kFile, path);
  const copy_t one = open_copy(kFile), two = open_copy(path);
  CHECK(remove(path) == 0);
  CHECK(one.create != two.create);
  mscclc_comm_t *const of_one = use(&one), *const of_two = use(&two);
  CHECK(two.destroy(of_one) == MSCCLC_INVALID_ARGUMENT); /* the other's */
  CHECK(one.destroy(of_one) == MSCCLC_SUCCESS);
  CHECK(two.destroy(of_two) == MSCCLC_SUCCESS);
}

int main(void) {
  closed_and_opened();
  two_copies();
  return 0;
}
