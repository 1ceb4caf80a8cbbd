#include "runtime/support/observe/flight_recorder.h"

#include <algorithm>
#include <chrono>
#include <set>

namespace mscclc {
namespace {

/// Plans to keep before those that no call names any more are forgotten.
constexpr size_t kPlans = 2 * FlightRecorder::kCalls;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void FlightRecorder::loaded(uint32_t executable, FlightPlan plan) {
  std::set<uint32_t> named;
  const std::lock_guard lock(mutex_);
  if (plans_.size() >= kPlans) {
    for (const FlightCall& call : calls()) named.insert(call.executable);
    std::erase_if(plans_, [&](const auto& entry) { return named.count(entry.first) == 0; });
  }
  plans_[executable] = std::move(plan);
}

void FlightRecorder::add(const FlightCall& call) {
  const uint64_t count = count_.load(std::memory_order_relaxed);
  Slot& slot = slots_[count % kCalls];
  const uint64_t version = slot.version.load(std::memory_order_relaxed);
  slot.version.store(version + 1, std::memory_order_relaxed);
  const uint64_t kinds = uint64_t{call.executable} << 32 | static_cast<uint64_t>(call.dtype) << 8 |
                         static_cast<uint64_t>(call.op);
  const uint64_t words[kWords] = {count + 1,  kinds,       call.call,
                                  call.bytes, call.stream, static_cast<uint64_t>(now())};
  slot.ended.store(0, std::memory_order_release);
  for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.version.store(version + 2, std::memory_order_release);
  count_.store(count + 1, std::memory_order_release);
}

void FlightRecorder::ended(uint64_t stream) {
  const uint64_t count = count_.load(std::memory_order_relaxed);
  const uint64_t kept = count > kCalls ? count - kCalls : 0;
  const int64_t time = now();
  bool all = true;
  for (uint64_t i = std::max(known_ended_, kept); i < count; ++i) {
    Slot& slot = slots_[i % kCalls];
    const bool here = slot.words[4].load(std::memory_order_relaxed) == stream;
    if (here && slot.ended.load(std::memory_order_relaxed) == 0) {
      slot.ended.store(time, std::memory_order_release);
    }
    all = all && slot.ended.load(std::memory_order_relaxed) != 0;
    if (all) known_ended_ = i + 1;
  }
}

std::vector<FlightCall> FlightRecorder::calls() const {
  const uint64_t end = count();
  std::vector<FlightCall> calls;
  for (uint64_t i = end > kCalls ? end - kCalls : 0; i < end; ++i) {
    const Slot& slot = slots_[i % kCalls];
    const uint64_t before = slot.version.load(std::memory_order_acquire);
    uint64_t words[kWords];
    for (size_t w = 0; w < kWords; ++w) words[w] = slot.words[w].load(std::memory_order_acquire);
    const int64_t ended = slot.ended.load(std::memory_order_acquire);
    const uint64_t after = slot.version.load(std::memory_order_relaxed);
    // Another call has come in its place, or is just coming.
    if (before != after || before % 2 != 0 || words[0] != i + 1) continue;
    calls.push_back({.number = words[0],
                     .executable = static_cast<uint32_t>(words[1] >> 32),
                     .call = words[2],
                     .dtype = static_cast<Dtype>(words[1] >> 8 & 0xff),
                     .op = static_cast<ReduceOp>(words[1] & 0xff),
                     .bytes = words[3],
                     .stream = words[4],
                     .launched = static_cast<int64_t>(words[5]),
                     .ended = ended});
  }
  return calls;
}

std::map<uint32_t, FlightPlan> FlightRecorder::plans() const {
  const std::lock_guard lock(mutex_);
  return plans_;
}

}  // namespace mscclc
