// libnvrtc in builds without the GPU part: the command is linked statically then, and loads no
// library.
#include "tools/cubin/cubin_compiler.h"

namespace mscclc {

std::unique_ptr<CubinCompiler> find_nvrtc() { return nullptr; }

}  // namespace mscclc
