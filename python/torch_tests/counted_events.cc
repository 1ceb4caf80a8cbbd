// Calls by the queues of GPUs on a device that counts its events. For event_pool.py.
#include <torch/library.h>

#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "python/mscclc/torch/adapter/calls.h"
#include "python/mscclc/torch/adapter/queues/call_queue.h"
#include "python/mscclc/torch/adapter/where.h"
#include "python/torch_tests/counted_device.h"

namespace {

using namespace mscclc::torch_adapter;
C10_REGISTER_GUARD_IMPL(PrivateUse1, CountedEvents)

void make_calls(CallQueue& queue, int64_t calls, int64_t at_once) {
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (int64_t i = 0; i < calls; ++i) {
    Request request;
    request.about.op = c10d::OpType::ALLREDUCE;
    request.about.name = "a call";
    request.body = [](const Runner& run) { barrier(run); };
    works.push_back(queue.submit(std::move(request)));
    if (static_cast<int64_t>(works.size()) < at_once) continue;
    for (const auto& work : works) work->synchronize();
    works.clear();
  }
}

/// Calls by some threads, each of which has up to so many that were not waited for: how many events
/// were made so far in the process, and how many of them there are.
std::vector<int64_t> events_of_calls(int64_t threads, int64_t calls, int64_t at_once) {
  DeviceCallQueue queue({.store = c10::make_intrusive<c10d::HashStore>(),
                         .name = "events",
                         .timeout = std::chrono::minutes(1)},
                        kDevice);
  std::vector<std::thread> all;
  for (int64_t i = 0; i < threads; ++i) {
    all.emplace_back([&] { make_calls(queue, calls, at_once); });
  }
  for (std::thread& one : all) one.join();
  queue.close();
  return CountedEvents::counts();
}

/// What the pool keeps of a device.
int64_t most_events() { return EventPool::kMax; }

/// Where a rank's barrier is that has called on these devices, as the sender of a message or, -1,
/// with all ranks.
std::string barrier_after(const std::vector<std::string>& devices,
                          const std::vector<int64_t>& senders) {
  std::vector<Where> places;
  for (size_t i = 0; i < devices.size(); ++i) {
    places.push_back({c10::Device(devices[i]), static_cast<int>(senders[i])});
  }
  return device_of_barrier(places).str();
}

TORCH_LIBRARY(mscclc_tests, library) {
  library.def("events_of_calls", events_of_calls);
  library.def("most_events", most_events);
  library.def("barrier_after", barrier_after);
}

}  // namespace
