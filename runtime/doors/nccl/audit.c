/* An audit library of the dynamic loader, libmscclc_audit.so: a program that loads libnccl.so.2
 * under that name, wherever it lies, gets ours, which lies beside this file.
 *
 *   LD_AUDIT=/opt/mscclc/lib/mscclc/libmscclc_audit.so program
 *
 * Unlike LD_PRELOAD it loads nothing into programs that use no NCCL. Our own load of NVIDIA's stays
 * what it is: the loader says which library asks. It lies in a namespace of its own, with a C
 * library of its own, and must not use anything of the program's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const char kName[] = "libnccl.so.2";
static char ours[PATH_MAX];       /* "": not found */
static const uintptr_t kOurs = 1; /* cookie of our library */

static const char* base_of(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static void find_ours(void) {
  Dl_info info;
  if (dladdr((void*)find_ours, &info) == 0 || info.dli_fname == NULL) return;
  const size_t folder = (size_t)(base_of(info.dli_fname) - info.dli_fname);
  if (folder == 0 || folder + sizeof kName > sizeof ours) return;
  memcpy(ours, info.dli_fname, folder);
  memcpy(ours + folder, kName, sizeof kName);
}

EXPORT unsigned int la_version(unsigned int version) {
  (void)version;
  find_ours();
  return LAV_CURRENT;
}

/* Nothing is bound here: only searches are of interest. */
EXPORT unsigned int la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)space;
  *cookie = ours[0] != '\0' && strcmp(map->l_name, ours) == 0 ? kOurs : 0;
  return 0;
}

EXPORT char* la_objsearch(const char* name, uintptr_t* cookie, unsigned int flag) {
  const int renames = flag == LA_SER_ORIG && ours[0] != '\0' && *cookie != kOurs &&
                      strcmp(base_of(name), kName) == 0;
  return renames ? ours : (char*)name;
}
