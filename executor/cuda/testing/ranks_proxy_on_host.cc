// The proxy where threads of blocks are fibers: it takes turns with them.
#include "executor/cuda/testing/ranks_proxy.h"

namespace mscclc::cuda {

void RanksProxy::begin(int) {
  service_ = host::Gpu::get().services().add([this] { return serve_request(); });
}

void RanksProxy::end() { host::Gpu::get().services().remove(service_); }

}  // namespace mscclc::cuda
