// The driver of this machine, in builds with the GPU part.
#include <dlfcn.h>

#include "tools/doctor/cuda_facts.h"

namespace mscclc::doctor {

CudaFacts ask_this_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  return ask_driver([library](const char* name) { return ::dlsym(library, name); });
}

}  // namespace mscclc::doctor
