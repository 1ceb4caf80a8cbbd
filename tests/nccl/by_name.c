/* A program that loads a library early, by its path, and then asks for NCCL by name, as Python's
 * bindings do: by_name FILE VERSION. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** words) {
  if (count != 3) return 2;
  void* early = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  void* by_name = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (early == NULL || early != by_name) {
    fprintf(stderr, "%s\n", early == NULL ? dlerror() : "another library has the name");
    return 1;
  }
  int (*get_version)(int*) = (int (*)(int*))dlsym(by_name, "ncclGetVersion");
  int version = 0;
  if (get_version == NULL || get_version(&version) != 0 || version != atoi(words[2])) {
    fprintf(stderr, "the version is %d\n", version);
    return 1;
  }
  return 0;
}
