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
constexpr unsigned kWaitAtLeast = 0, kWaitEqual = 1, kWriteDefault = 0;

StreamOp driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  TORCH_CHECK(driver != nullptr, "mscclc: libcuda.so.1 cannot be loaded: ", dlerror());
  void* const found = dlsym(driver, name);
  TORCH_CHECK(found != nullptr, "mscclc: the driver has no ", name);
  return reinterpret_cast<StreamOp>(found);
}

void on_current_stream(const char* function, const c10::Device& device, uint32_t* word,
                       uint32_t value, unsigned flags) {
  const StreamOp op = driver_function(function);
  const c10::impl::VirtualGuardImpl impl(device.type());
  void* const stream = impl.getStream(device).native_handle();
  const int result = op(stream, reinterpret_cast<uint64_t>(word), value, flags);
  TORCH_CHECK(result == 0, "mscclc: the driver does not take a signal: CUresult ", result);
}

void wait_on_stream(const c10::Device& device, uint32_t* word, uint32_t value, unsigned how) {
  on_current_stream("cuStreamWaitValue32_v2", device, word, value, how);
}

void write_on_stream(const c10::Device& device, uint32_t* word, uint32_t value) {
  on_current_stream("cuStreamWriteValue32_v2", device, word, value, kWriteDefault);
}

template <class Done>
void wait_here(const SignalLimit& limit, Done done) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; !done(); ++i) {
    if (i < kSpins) continue;
    limit.check();
    TORCH_CHECK(
        limit.timeout.count() == 0 || std::chrono::steady_clock::now() - begin < limit.timeout,
        "mscclc: a signal of symmetric memory did not come within ", limit.timeout.count(), " ms");
    std::this_thread::sleep_for(kNap);
  }
}

void check_limit(const c10::Device& device, const SignalLimit& limit) {
  TORCH_CHECK(device.is_cpu() || limit.timeout.count() == 0,
              "mscclc: waits of symmetric memory have timeouts on the host only");
}

}  // namespace

void change_signal(const c10::Device& device, uint32_t* word, uint32_t from, uint32_t to,
                   const SignalLimit& limit) {
  check_limit(device, limit);
  if (!device.is_cpu()) {
    wait_on_stream(device, word, from, kWaitEqual);
    return write_on_stream(device, word, to);
  }
  wait_here(limit, [&] {
    uint32_t seen = from;
    return std::atomic_ref(*word).compare_exchange_strong(seen, to, std::memory_order_acq_rel);
  });
}

void count_signal(const c10::Device& device, uint32_t* word, uint32_t count) {
  if (!device.is_cpu()) return write_on_stream(device, word, count);
  std::atomic_ref(*word).store(count, std::memory_order_release);
}

void await_signal(const c10::Device& device, uint32_t* word, uint32_t count,
                  const SignalLimit& limit) {
  check_limit(device, limit);
  if (!device.is_cpu()) return wait_on_stream(device, word, count, kWaitAtLeast);
  wait_here(limit, [&] {
    const uint32_t seen = std::atomic_ref(*word).load(std::memory_order_acquire);
    return static_cast<int32_t>(seen - count) >= 0;
  });
}

}  // namespace mscclc::torch_adapter
