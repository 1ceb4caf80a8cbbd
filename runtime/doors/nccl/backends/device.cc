#include "runtime/doors/nccl/backends/device.h"

#include <dlfcn.h>

#include "runtime/api/gpu.h"
#include "runtime/api/host_device.h"
#include "runtime/support/environment/environment.h"

namespace mscclc::nccl {
namespace {

/// CUresult cuCtxGetDevice(CUdevice*), of the driver itself: only a library in other programs'
/// processes asks what they have made current. nullptr: there is no driver.
using CtxGetDevice = int (*)(int* device);
CtxGetDevice ctx_get_device() {
  static const CtxGetDevice function = [] {
    void* const handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return handle == nullptr ? nullptr
                             : reinterpret_cast<CtxGetDevice>(::dlsym(handle, "cuCtxGetDevice"));
  }();
  return function;
}

}  // namespace

bool runs_on_host() {
  Diagnostics ignored;
  const Environment environment = Environment::of_process();
  return environment.text(Variable::MSCCLC_DEVICE, ignored).value_or("") == "host";
}

int current_ordinal() {
  constexpr int kSuccess = 0;
  int ordinal = 0;
  if (runs_on_host() || ctx_get_device() == nullptr) return 0;
  return ctx_get_device()(&ordinal) == kSuccess ? ordinal : 0;
}

int count_devices(Diagnostics& diagnostics) {
  return runs_on_host() ? 1 : cuda::count_gpus(diagnostics);
}

std::shared_ptr<Device> open_device(int ordinal, Diagnostics& diagnostics) {
  return runs_on_host() ? make_host_device(diagnostics) : cuda::open_gpu(ordinal, diagnostics);
}

}  // namespace mscclc::nccl
