/* A program in C as NCCL's users write them, for library_test.sh: it knows nothing of mscclc.
 *
 *   consumer RANKS HOW    HOW: all (destroys what it made), leave, abort, fork
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/doors/nccl/abi/api.h"

/* No rank ends before all have their results. */
static int done[2], go[2];
static void meet(void) {
  char byte = 0;
  if (write(done[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) exit(1);
}

static int run(int rank, int ranks, ncclUniqueId id, const char* how) {
  ncclComm_t comm = NULL;
  int in = rank + 1, out = 0;
  if (ncclCommInitRank(&comm, ranks, id, rank) != ncclSuccess ||
      ncclAllReduce(&in, &out, 1, 2, 0, comm, NULL) != ncclSuccess) {
    fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(NULL));
    return 1;
  }
  if (out != ranks * (ranks + 1) / 2) {
    fprintf(stderr, "rank %d: the sum is %d\n", rank, out);
    return 1;
  }
  meet();
  if (strcmp(how, "leave") == 0) exit(0);
  if (strcmp(how, "abort") == 0) exit(ncclCommAbort(comm) == ncclSuccess ? 0 : 1);
  if (strcmp(how, "fork") == 0) {
    ncclGroupStart();
    if (ncclAllReduce(&in, &out, 1, 2, 0, comm, NULL) != ncclSuccess) return 1;
    const pid_t child = fork();
    int status = 1;
    if (child == 0) { /* what the parent's communicator lives by is not here */
      if (ncclGroupEnd() != ncclInvalidUsage) _exit(1);
      if (ncclAllReduce(&in, &out, 1, 2, 0, comm, NULL) != ncclInvalidArgument ||
          ncclCommDestroy(comm) != ncclInvalidArgument) {
        _exit(1);
      }
      exit(0); /* its handlers find the parent's communicator */
    }
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    out = 0;
    if (ncclGroupEnd() != ncclSuccess || out != ranks * (ranks + 1) / 2) return 1;
  }
  return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
}

int main(int count, char** words) {
  const int ranks = count > 1 ? atoi(words[1]) : 1;
  const char* how = count > 2 ? words[2] : "all";
  /* A load by name gets the same library as the linker did. */
  void* by_name = dlopen("libnccl.so.2", RTLD_NOW);
  if (by_name == NULL || dlsym(by_name, "ncclAllReduce") == NULL ||
      dlsym(by_name, "pncclAllReduce") != dlsym(RTLD_DEFAULT, "pncclAllReduce")) {
    fprintf(stderr, "libnccl.so.2 by name is another library\n");
    return 1;
  }
  ncclUniqueId id;
  int pipes[16][2];
  int failed = 0;
  char byte = 0;
  if (pipe(done) != 0 || pipe(go) != 0) return 1;
  for (int rank = 0; rank < ranks; ++rank) {
    if (pipe(pipes[rank]) != 0) return 1;
    if (fork() == 0) {
      if (rank == 0) {
        if (ncclGetUniqueId(&id) != ncclSuccess) _exit(1);
        if (write(pipes[0][1], &id, sizeof id) != sizeof id) _exit(1);
      } else if (read(pipes[rank][0], &id, sizeof id) != sizeof id) {
        _exit(1);
      }
      exit(run(rank, ranks, id, how));
    }
  }
  if (read(pipes[0][0], &id, sizeof id) != sizeof id) return 1;
  for (int rank = 1; rank < ranks; ++rank) {
    if (write(pipes[rank][1], &id, sizeof id) != sizeof id) return 1;
  }
  close(done[1]);
  for (int rank = 0; rank < ranks && read(done[0], &byte, 1) == 1; ++rank) {
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if (write(go[1], &byte, 1) != 1) return 1;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 1;
    if (wait(&status) < 0 || status != 0) failed = 1;
  }
  return failed;
}
