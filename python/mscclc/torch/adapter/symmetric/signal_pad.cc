#include "python/mscclc/torch/adapter/symmetric/signal_pad.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <atomic>
#include <thread>

namespace mscclc::torch_adapter {
namespace {

constexpr int kSpins = 1000;  // before a wait on the host gives its processor away
constexpr auto kNap = std::chrono::microseconds(50);

/// The driver's operations on words by streams: int f(stream, address, value, flags).
using StreamOp = int (*)(void*, uint64_t, uint32_t, unsigned);
constexpr unsigned kWaitEqual = 1, kWriteDefault = 0;

StreamOp driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  TORCH_CHECK(driver != nullptr, "mscclc: libcuda.so.1 cannot be loaded: ", dlerror());
  void* const found = dlsym(driver, name);
  TORCH_CHECK(found != nullptr, "mscclc: the driver has no ", name);
  return reinterpret_cast<StreamOp>(found);
}

void change_on_stream(const c10::Device& device, uint32_t* word, uint32_t from, uint32_t to) {
  static const StreamOp wait = driver_function("cuStreamWaitValue32_v2");
  static const StreamOp write = driver_function("cuStreamWriteValue32_v2");
  const c10::impl::VirtualGuardImpl impl(device.type());
  void* const stream = impl.getStream(device).native_handle();
  const auto address = reinterpret_cast<uint64_t>(word);
  int result = wait(stream, address, from, kWaitEqual);
  if (result == 0) result = write(stream, address, to, kWriteDefault);
  TORCH_CHECK(result == 0, "mscclc: the driver does not take a signal: CUresult ", result);
}

void change_here(uint32_t* word, uint32_t from, uint32_t to, const SignalLimit& limit) {
  const std::atomic_ref<uint32_t> atomic(*word);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0;; ++i) {
    uint32_t seen = from;
    if (atomic.compare_exchange_strong(seen, to, std::memory_order_acq_rel)) return;
    if (i < kSpins) continue;
    limit.check();
    TORCH_CHECK(
        limit.timeout.count() == 0 || std::chrono::steady_clock::now() - begin < limit.timeout,
        "mscclc: a signal of symmetric memory did not come within ", limit.timeout.count(), " ms");
    std::this_thread::sleep_for(kNap);
  }
}

}  // namespace

void change_signal(const c10::Device& device, uint32_t* word, uint32_t from, uint32_t to,
                   const SignalLimit& limit) {
  if (device.is_cpu()) return change_here(word, from, to, limit);
  TORCH_CHECK(limit.timeout.count() == 0,
              "mscclc: waits of symmetric memory have timeouts on the host only");
  change_on_stream(device, word, from, to);
}

}  // namespace mscclc::torch_adapter
