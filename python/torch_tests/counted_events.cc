// Calls by the queues of GPUs on a device that counts its events. For event_pool.py.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <torch/library.h>

#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "python/mscclc/torch/adapter/barriers.h"
#include "python/mscclc/torch/adapter/calls.h"
#include "python/mscclc/torch/adapter/queues/call_queue.h"
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

/// A call that fails after it has put something on the stream: how many of its two tensors are kept
/// for that, and whether the current stream waits for it. Later: by the thread of the queue, for
/// which wait() waits and says the error.
std::vector<int64_t> uses_of_failed(bool later) {
  DeviceCallQueue queue({.store = c10::make_intrusive<c10d::HashStore>(),
                         .name = "fails",
                         .timeout = std::chrono::minutes(1)},
                        kDevice);
  Request request;
  request.about.name = "a call";
  request.about.tensors = {at::ones({3}), at::ones({3})};
  request.body = [](const Runner& run) {
    barrier(run);
    throw NoPlan("the second is refused");
  };
  if (later) request.waits = [](const Runner&) { return true; };
  const std::vector<int64_t> before = CountedEvents::uses();
  bool failed = false;
  try {
    queue.submit(std::move(request))->wait();
  } catch (const c10::NotImplementedError&) {
    failed = true;
  }
  TORCH_CHECK(failed, "it did not fail");
  queue.close();
  const std::vector<int64_t> now = CountedEvents::uses();
  return {now[0] - before[0], now[1] - before[1]};
}

/// What a process has of the device.
struct Hooks final : at::PrivateUse1HooksInterface {
  bool in_use = false;
  bool hasPrimaryContext(c10::DeviceIndex) const override { return in_use; }
};

/// How many GPUs' work a barrier on this device waits for, of a rank that has called on these, if
/// the process uses the device that counts, or not.
int64_t waits_of_barrier(const std::string& device, const std::vector<std::string>& devices,
                         bool in_use) {
  static Hooks hooks;
  if (!at::isPrivateUse1HooksRegistered()) at::RegisterPrivateUse1HooksInterface(&hooks);
  hooks.in_use = in_use;
  std::vector<Where> places;
  for (const std::string& one : devices) places.push_back({c10::Device(one)});
  return static_cast<int64_t>(work_beside(c10::Device(device), places, c10::kPrivateUse1)->size());
}

/// Where a rank's barrier is that has called on these GPUs, in this order, as the sender of a
/// message or, -1, with all ranks.
std::string barrier_after(const std::vector<std::string>& gpus,
                          const std::vector<int64_t>& senders) {
  UsedGpus used;
  for (size_t i = 0; i < gpus.size(); ++i) {
    used.number_of({c10::Device(gpus[i]), static_cast<int>(senders[i])});
  }
  return used.first_of_all().str();
}

TORCH_LIBRARY(mscclc_tests, library) {
  library.def("events_of_calls", events_of_calls);
  library.def("most_events", most_events);
  library.def("barrier_after", barrier_after);
  library.def("uses_of_failed", uses_of_failed);
  library.def("waits_of_barrier", waits_of_barrier);
}

}  // namespace
