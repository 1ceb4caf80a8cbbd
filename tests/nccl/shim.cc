// A library that programs load before NCCL, and that passes every call on to the next one, as tools
// that record calls do; for library_test.sh. At the process's end it says how often each function
// was called.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "runtime/doors/nccl/abi/api.h"

namespace {

struct Counts {
  ~Counts() {
    std::string text = "shim:";
    for (const auto& [name, count] : calls) text += " " + name + " " + std::to_string(count);
    text += "\n";
    if (calls.empty() || ::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
  }
  std::map<std::string, int> calls;
} counts;

void* next(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return found;
}

}  // namespace

#define API(since, how, result, name, parameters, arguments)                       \
  extern "C" __attribute__((visibility("default"))) result nccl##name parameters { \
    ++counts.calls[#name];                                                         \
    return reinterpret_cast<result(*) parameters>(next("nccl" #name)) arguments;   \
  }
#include "runtime/doors/nccl/abi/api.def"
#undef API
