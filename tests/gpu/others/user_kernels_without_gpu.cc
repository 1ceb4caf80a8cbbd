#include "tests/gpu/others/user_kernels.h"

namespace mscclc::testing {
namespace {

bool refuse(Diagnostics& diagnostics) {
  diagnostics.error("no-gpu-part", {}, "this program was built without its GPU part");
  return false;
}

}  // namespace

bool fill_gpu(StreamHandle, Manner, std::chrono::microseconds, Diagnostics& diagnostics) {
  return refuse(diagnostics);
}
bool hold(StreamHandle, std::chrono::milliseconds, Diagnostics& diagnostics) {
  return refuse(diagnostics);
}

}  // namespace mscclc::testing
