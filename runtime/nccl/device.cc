#include "runtime/nccl/device.h"

#include <dlfcn.h>

#include "runtime/api/gpu.h"
#include "runtime/api/host_device.h"
#include "runtime/base/environment.h"
#include "runtime/cuda/driver/driver.h"

namespace mscclc::nccl {
namespace {

/// Two of the driver's functions that only a library in other programs' processes needs.
struct MoreOfTheDriver {
  cuda::abi::Result (*CtxGetDevice)(cuda::abi::Ordinal* device) = nullptr;
  cuda::abi::Result (*StreamWaitEvent)(cuda::abi::Stream stream, cuda::abi::Event event,
                                       unsigned flags) = nullptr;
};

const MoreOfTheDriver& more() {
  static const MoreOfTheDriver more = [] {
    MoreOfTheDriver found;
    void* const handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return found;
    found.CtxGetDevice =
        reinterpret_cast<decltype(found.CtxGetDevice)>(::dlsym(handle, "cuCtxGetDevice"));
    found.StreamWaitEvent =
        reinterpret_cast<decltype(found.StreamWaitEvent)>(::dlsym(handle, "cuStreamWaitEvent"));
    return found;
  }();
  return more;
}

bool wait_by_event(StreamHandle front, StreamHandle behind, Diagnostics& diagnostics) {
  const cuda::Driver* driver = cuda::load_driver(diagnostics);
  if (driver == nullptr || more().StreamWaitEvent == nullptr) return false;
  cuda::abi::Event event = nullptr;
  const auto ok = [&](cuda::abi::Result result, const char* attempt) {
    return cuda::succeeded(*driver, result, attempt, diagnostics);
  };
  if (!ok(driver->EventCreate(&event, cuda::abi::kEventDisableTiming), "make an event")) {
    return false;
  }
  const bool done =
      ok(driver->EventRecord(event, static_cast<cuda::abi::Stream>(front)), "record an event") &&
      ok(more().StreamWaitEvent(static_cast<cuda::abi::Stream>(behind), event, 0),
         "let a stream wait for an event");
  // The driver keeps what streams still wait for.
  (void)driver->EventDestroy(event);
  return done;
}

}  // namespace

bool runs_on_host() {
  Diagnostics ignored;
  const Environment environment = Environment::of_process();
  return environment.text(Variable::MSCCLC_DEVICE, ignored).value_or("") == "host";
}

int current_ordinal() {
  cuda::abi::Ordinal ordinal = 0;
  if (runs_on_host() || more().CtxGetDevice == nullptr) return 0;
  return more().CtxGetDevice(&ordinal) == cuda::abi::kSuccess ? ordinal : 0;
}

int count_devices(Diagnostics& diagnostics) {
  return runs_on_host() ? 1 : cuda::count_gpus(diagnostics);
}

std::shared_ptr<Device> open_device(int ordinal, Diagnostics& diagnostics) {
  return runs_on_host() ? make_host_device(diagnostics) : cuda::open_gpu(ordinal, diagnostics);
}

bool order_streams(Device& device, StreamHandle front, StreamHandle behind,
                   Diagnostics& diagnostics) {
  if (front == behind) return true;
  // Streams of the host know no events: waiting here gives the same order.
  if (device.name() == "host") return device.synchronize(front, diagnostics);
  return wait_by_event(front, behind, diagnostics);
}

}  // namespace mscclc::nccl
