// Plans with flags on GPUs of the fake driver, which runs nothing: which are loaded and called, for
// what room they have beside their other side.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/fakes/cuda/test_world.h"
#include "tests/overlap/flag_plans.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using cuda::FakeDriver;
using cuda::World;

constexpr uint32_t kLaunches = 3;  ///< of a call

/// A call's words about room.
struct Room {
  uint32_t budget = 0;
  LaunchOrder order = LaunchOrder::other_first;
};

/// Loads a plan of two ranks on as many GPUs, and calls it; "": all was well. Else the first error
/// of rank 0, up to its numbers.
std::string call_on_gpus(World& world, const std::string& name, const testing::FlagDefines& defines,
                         const Room& room) {
  cuda::ContextKeeper keeper;
  const auto plan =
      std::make_shared<const Program>(testing::flag_plan(testing::overlap_text(name), defines));
  std::string said;
  const std::string ran = testing::run_threads(
      2,
      [&](Communicator& communicator) -> std::string {
        Diagnostics d;
        Device& device = communicator.device();
        if (!device.bind_thread(d)) return testing::text(d);
        const auto executable = communicator.load(
            plan, {.max_bytes = 4096, .zero_copy = true, .proof = ProofPolicy::skip}, d);
        std::unique_ptr<Memory> memory = device.allocate(8192, "buffers", d);
        std::unique_ptr<Memory> words = device.allocate(4096, "flags", d);
        if (memory == nullptr || words == nullptr) return testing::text(d);
        const auto registered = communicator.register_buffer(memory->data(), 8192, d);
        if (registered == nullptr) return testing::text(d);
        const FlagArray& array = plan->flags[0];
        const CallFlags flags[] = {
            {.name = array.name, .words = words->data(), .count = array.count}};
        const CollectiveCall call{.bytes = 4096,
                                  .input = memory->data(),
                                  .output = memory->data() + 4096,
                                  .flags = flags,
                                  .budget = room.budget,
                                  .launch_order = room.order};
        const StreamHandle stream = device.create_stream(d);
        const BoundCall bound = executable == nullptr ? BoundCall() : executable->bind(call, d);
        bool good = static_cast<bool>(bound);
        for (uint32_t i = 0; good && i < kLaunches; ++i) {
          good = executable->launch(bound, stream, d);
        }
        good = good && communicator.synchronize(stream, d);
        device.destroy_stream(stream);
        const auto error = std::ranges::find(d.all(), Severity::error, &Diagnostic::severity);
        if (communicator.rank() == 0 && !good) said = error->code + ": " + error->message;
        return "";
      },
      testing::kPatience,
      [&](uint32_t rank, Diagnostics& d) -> std::unique_ptr<Device> {
        FakeDriver::enter(0);
        if (!keeper.keep(world.fake.driver(), static_cast<int>(rank), d)) return nullptr;
        return world.open(0, static_cast<int>(rank), d, false);
      });
  CHECK(ran == "");
  CHECK(world.fake.misuses() == std::vector<std::string>{});
  return said;
}

TEST_CASE("a plan with flags is called on GPUs that have room for its other side, too") {
  World world({.devices = 2});
  const auto refused = [&](const char* name, const char* chunks, const Room& room) {
    const std::string said =
        call_on_gpus(world, name, {{"R", "2"}, {"C", chunks}, {"T", "256"}}, room);
    return said.substr(0, said.find(" at rank"));
  };
  CHECK(refused("gemm_reducescatter", "2", {}) == "");
  CHECK(refused("gemm_reducescatter", "2", {.budget = 4}) == "");
  CHECK(refused("gemm_reducescatter", "2", {.budget = 3}) ==
        "flags-not-resident: 'gemm_reducescatter' has 4 thread blocks");
  CHECK(refused("gemm_reducescatter", "64", {}) == "");  // 128 of 132 multiprocessors
  CHECK(refused("alltoall_gemm", "2", {.order = LaunchOrder::plan_first}) == "");
  CHECK(refused("alltoall_gemm", "2", {.budget = 8}) == "");
  CHECK(refused("alltoall_gemm", "2", {}) ==
        "flags-not-resident: 'alltoall_gemm' has 4 thread blocks");
  CHECK(refused("alltoall_gemm", "64", {.order = LaunchOrder::plan_first}) == "");
}

TEST_CASE("calls with flags do not begin before those ahead have ended, with room that both need") {
  World world({.devices = 2});
  uint32_t launches = 0, early = 0;
  world.on_launch = [&](const device::LaunchPlan& plan) {
    ++launches;
    early += plan.early ? 1 : 0;
  };
  CHECK(call_on_gpus(world, "gemm_reducescatter", {{"R", "2"}, {"C", "2"}, {"T", "256"}}, {}) ==
        "");
  CHECK(launches == 2 * kLaunches);
  CHECK(early == 0);
}

TEST_CASE("a plan that leaves its other side no multiprocessor of a GPU is not loaded") {
  World world({.devices = 2, .multiprocessors = 64});
  CHECK(
      call_on_gpus(world, "gemm_reducescatter", {{"R", "2"}, {"C", "32"}, {"T", "256"}}, {}) ==
      "flags-not-resident: 'gemm_reducescatter' has 64 thread blocks at rank 0, which hold as many "
      "multiprocessors while they wait for flags; the device has 64, and the other side needs some "
      "to raise them");
}

}  // namespace
}  // namespace mscclc
