// A libcuda.so.1 for tests that can only be initialised, and, as NVIDIA's, not in a child of fork()
// once its parent has done so.
#include <unistd.h>

#include <cstring>

#include "runtime/devices/cuda/driver/abi.h"

namespace mscclc::cuda {
namespace {

pid_t initialised_in = 0;

abi::Result init(unsigned /*flags*/) {
  if (initialised_in == 0) initialised_in = ::getpid();
  return initialised_in == ::getpid() ? abi::kSuccess : abi::kNotInitialized;
}

abi::Result error_text(abi::Result /*error*/, const char** text) {
  *text = "what the fake says";
  return abi::kSuccess;
}

abi::Result count_devices(int* count) {
  if (initialised_in != ::getpid()) return abi::kNotInitialized;
  *count = 2;
  return abi::kSuccess;
}

abi::Result anything_else() { return abi::kNotFound; }

}  // namespace
}  // namespace mscclc::cuda

using namespace mscclc::cuda;

extern "C" bool fakeCudaInitialised() { return initialised_in != 0; }

extern "C" abi::Result cuGetProcAddress_v2(const char* symbol, void** function, int /*version*/,
                                           uint64_t /*flags*/, int* /*why_not*/) {
  *function = reinterpret_cast<void*>(&anything_else);
  if (std::strcmp(symbol, "cuInit") == 0) *function = reinterpret_cast<void*>(&init);
  if (std::strcmp(symbol, "cuDeviceGetCount") == 0) {
    *function = reinterpret_cast<void*>(&count_devices);
  }
  if (std::strncmp(symbol, "cuGetError", 10) == 0) *function = reinterpret_cast<void*>(&error_text);
  return abi::kSuccess;
}
