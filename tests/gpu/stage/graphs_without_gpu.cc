#include "tests/gpu/stage/graphs.h"

namespace mscclc::testing {

std::unique_ptr<Graphs> cuda_graphs(bool, Diagnostics& diagnostics) {
  diagnostics.error("no-gpu-part", {}, "this program was built without its GPU part");
  return nullptr;
}

}  // namespace mscclc::testing
