#include "tools/cubin/cubin_compiler.h"

namespace mscclc {

std::unique_ptr<CubinCompiler> find_cubin_compiler() {
  auto found = find_nvcc();
  return found != nullptr ? std::move(found) : find_nvrtc();
}

}  // namespace mscclc
