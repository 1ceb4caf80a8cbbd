// Executables that are loaded in turn have one scratch where the prover shows that nothing touches
// a rank's scratch outside of its call (docs/design/proofs.md, "What the runtime shares"): random
// sequences of such plans, and of others beside them, without anything between the calls.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "passes/prove/prove.h"
#include "runtime/api/host_device.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint32_t kRanks = 4;
constexpr uint64_t kMaxElements = 4096;  ///< of a row of a call
constexpr int kCalls = 80;

struct ScratchPlan {
  const char* name;
  bool shares;
};
/// Slots of these overlap in many ways; those that do not share have packets, or write to a peer's
/// scratch as soon as they begin.
constexpr std::array kScratchPlans = {
    ScratchPlan{"alltoall_scratch", true},         ScratchPlan{"alltoall_ring", true},
    ScratchPlan{"alltoall_pipeline", true},        ScratchPlan{"allreduce_push", false},
    ScratchPlan{"allreduce_2shot_packets", false}, ScratchPlan{"alltoall_packets", false}};

std::shared_ptr<const Program> scratch_plan(const char* name) {
  const CompiledWorld world(name, {{"R", std::to_string(kRanks)}});
  INFO(name);
  REQUIRE(world.errors() == "");
  return std::make_shared<const Program>(world.program());
}

std::vector<std::shared_ptr<const Program>> scratch_plans() {
  std::vector<std::shared_ptr<const Program>> plans;
  for (const ScratchPlan& plan : kScratchPlans) plans.push_back(scratch_plan(plan.name));
  return plans;
}

TEST_CASE("scratch that nothing touches outside of its rank's call") {
  for (const ScratchPlan& plan : kScratchPlans) {
    INFO(plan.name);
    CHECK(scratch_in_call(*scratch_plan(plan.name)) == plan.shares);
  }
}

/// One call: buffers of its own, so that nothing is waited for before the end.
struct ScratchCall {
  size_t plan;
  uint64_t elements;  ///< of the message
  std::unique_ptr<Memory> memory;
  uint32_t *in, *out;
  BoundCall bound;

  uint64_t bytes() const { return elements * sizeof(uint32_t); }
  static uint32_t value(uint32_t rank, uint64_t i, uint32_t salt) {
    return rank * 1'000'003 + static_cast<uint32_t>(i) * 17 + salt * 7919;
  }
  uint32_t expected(bool reduces, uint32_t rank, uint64_t i, uint32_t salt) const {
    const uint64_t row = elements / kRanks;
    if (!reduces) return value(static_cast<uint32_t>(i / row), rank * row + i % row, salt);
    uint32_t sum = 0;
    for (uint32_t r = 0; r < kRanks; ++r) sum += value(r, i, salt);
    return sum;
  }
};

/// The same sequence on all ranks.
std::vector<ScratchCall> random_calls(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<ScratchCall> calls;
  for (int i = 0; i < kCalls; ++i) {
    const size_t plan = random() % kScratchPlans.size();
    const uint64_t row = 1 + random() % (random() % 2 == 0 ? kMaxElements : 16);
    calls.push_back({plan, row * kRanks, nullptr, nullptr, nullptr, {}});
  }
  return calls;
}

std::string run_sequence(Communicator& communicator,
                         const std::vector<std::shared_ptr<const Program>>& plans, uint32_t seed) {
  Diagnostics said;
  Device& device = communicator.device();
  const uint32_t rank = communicator.rank();
  std::vector<std::unique_ptr<Executable>> loaded;
  for (const auto& plan : plans) {
    loaded.push_back(communicator.load(
        plan, {.max_bytes = kMaxElements * kRanks * 4, .dtype = Dtype::u32, .in_turn = true},
        said));
    if (loaded.back() == nullptr) return testing::text(said);
  }
  std::vector<ScratchCall> calls = random_calls(seed);
  for (uint32_t i = 0; i < calls.size(); ++i) {
    ScratchCall& call = calls[i];
    call.memory = device.allocate(2 * call.bytes(), "buffers", said);
    if (call.memory == nullptr) return testing::text(said);
    call.in = reinterpret_cast<uint32_t*>(call.memory->data());
    call.out = call.in + call.elements;
    for (uint64_t e = 0; e < call.elements; ++e) call.in[e] = ScratchCall::value(rank, e, i);
    call.bound = loaded[call.plan]->bind(
        {.bytes = call.bytes(), .dtype = Dtype::u32, .input = call.in, .output = call.out}, said);
    if (!call.bound) return testing::text(said);
  }
  const StreamHandle stream = device.create_stream(said);
  bool good = stream != nullptr;
  for (const ScratchCall& call : calls) {
    good = good && loaded[call.plan]->launch(call.bound, stream, said);
  }
  good = good && communicator.synchronize(stream, said);
  device.destroy_stream(stream);
  if (!good) return testing::text(said);
  for (uint32_t i = 0; i < calls.size(); ++i) {
    const ScratchCall& call = calls[i];
    const bool reduces = plans[call.plan]->contract.kind == CollectiveKind::allreduce;
    for (uint64_t e = 0; e < call.elements; ++e) {
      if (call.out[e] == call.expected(reduces, rank, e, i)) continue;
      return fmt::format("seed {}: call {} of {}: element {} of {} is wrong at rank {}", seed, i,
                         kScratchPlans[call.plan].name, e, call.elements, rank);
    }
  }
  return "";
}

TEST_CASE("random sequences of plans over one scratch") {
  const auto plans = scratch_plans();
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    const auto body = [&](Communicator& communicator) {
      return run_sequence(communicator, plans, seed);
    };
    CHECK(testing::run_threads(kRanks, body) == "");
  }
}

/// Notes the large allocations of a rank.
class NotingDevice final : public testing::ForwardingDevice {
 public:
  NotingDevice(std::unique_ptr<Device> device, size_t& large)
      : ForwardingDevice(std::move(device)), large_(large) {}
  std::unique_ptr<Memory> allocate(uint64_t bytes, const std::string& what,
                                   Diagnostics& diagnostics) override {
    if (bytes >= kLarge && what == "the scratch memory of a plan") ++large_;
    return ForwardingDevice::allocate(bytes, what, diagnostics);
  }
  static constexpr uint64_t kLarge = 5 << 20;

 private:
  size_t& large_;
};

/// Allocations of scratch by a rank that loads these, each with some 6 MiB.
size_t scratch_allocations(const std::vector<const char*>& names, bool in_turn) {
  std::vector<std::shared_ptr<const Program>> plans;
  for (const char* name : names) plans.push_back(scratch_plan(name));
  std::array<size_t, kRanks> large{};
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics said;
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const auto& plan : plans) {
      loaded.push_back(communicator.load(
          plan, {.max_bytes = 8 << 20, .dtype = Dtype::u32, .in_turn = in_turn}, said));
      if (loaded.back() == nullptr) return testing::text(said);
    }
    return "";
  };
  const auto open = [&](uint32_t rank, Diagnostics& said) -> std::unique_ptr<Device> {
    return std::make_unique<NotingDevice>(make_host_device(said), large[rank]);
  };
  CHECK(testing::run_threads(kRanks, body, {}, open) == "");
  for (const size_t count : large) CHECK(count == large[0]);
  return large[0];
}

TEST_CASE("plans in turn have one scratch, others their own") {
  CHECK(scratch_allocations({"alltoall_scratch", "alltoall_ring"}, true) == 1);
  CHECK(scratch_allocations({"alltoall_scratch", "alltoall_ring"}, false) == 2);
  CHECK(scratch_allocations({"alltoall_scratch", "allreduce_push", "alltoall_ring"}, true) == 2);
}

}  // namespace
}  // namespace mscclc
