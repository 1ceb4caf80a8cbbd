// A device in name only, which counts its events, and calls on it by the lanes of GPUs: how many
// events they make. For event_pool.py.
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <atomic>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "python/mscclc/torch/adapter/calls.h"
#include "python/mscclc/torch/adapter/lanes/lane.h"

namespace {

using namespace mscclc::torch_adapter;
const c10::Device kDevice(c10::kPrivateUse1, 0);

class CountedEvents final : public c10::impl::DeviceGuardImplInterface {
 public:
  static inline std::atomic<int64_t> made = 0, ended = 0;

  c10::DeviceType type() const override { return c10::kPrivateUse1; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return stream(current); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(1); }
  c10::Stream exchangeStream(c10::Stream next) const override {
    return stream(std::exchange(current, next.id()));
  }
  void* getStreamNativeHandle(const c10::Stream) const override { return nullptr; }

  void record(void** event, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event != nullptr) return;
    *event = new char;
    ++made;
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<char*>(event);
    ++ended;
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}

 private:
  static inline thread_local c10::StreamId current = 0;
  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, kDevice, id);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, CountedEvents)

void make_calls(Lane& lane, int64_t calls, int64_t at_once) {
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (int64_t i = 0; i < calls; ++i) {
    Request request;
    request.about.op = c10d::OpType::ALLREDUCE;
    request.about.name = "a call";
    request.body = [](const Runner& run) { barrier(run); };
    works.push_back(lane.submit(std::move(request)));
    if (static_cast<int64_t>(works.size()) < at_once) continue;
    for (const auto& work : works) work->synchronize();
    works.clear();
  }
}

/// Calls by some threads, each of which has up to so many that were not waited for: how many events
/// were made so far in the process, and how many of them there are.
std::vector<int64_t> events_of_calls(int64_t threads, int64_t calls, int64_t at_once) {
  DeviceLane lane({.store = c10::make_intrusive<c10d::HashStore>(),
                   .name = "events",
                   .timeout = std::chrono::minutes(1)},
                  kDevice);
  std::vector<std::thread> all;
  for (int64_t i = 0; i < threads; ++i) {
    all.emplace_back([&] { make_calls(lane, calls, at_once); });
  }
  for (std::thread& one : all) one.join();
  lane.close();
  return {CountedEvents::made, CountedEvents::made - CountedEvents::ended};
}

/// What the pool keeps of a device.
int64_t most_events() { return EventPool::kMost; }

TORCH_LIBRARY(mscclc_tests, library) {
  library.def("events_of_calls", events_of_calls);
  library.def("most_events", most_events);
}

}  // namespace
