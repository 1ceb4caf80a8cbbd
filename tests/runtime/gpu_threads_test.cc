// Ranks that are threads of one process, each with a GPU of its own, on the fake driver: they come
// and go, plan after plan, and capture while others load. What the driver forbids is not done and
// nothing is left; the thread sanitizer looks for races (./test).
#include <catch2/catch.hpp>

#include "executor/host/test_plans.h"
#include "runtime/checked_call.h"
#include "runtime/cuda/test_world.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using cuda::FakeDriver;
using cuda::World;
using testing::RankBody;

std::vector<std::shared_ptr<const Program>> plans() {
  std::vector<std::shared_ptr<const Program>> made;
  for (testing::TestProgram t :
       {testing::with_syncs(testing::two_shot(4)), testing::one_shot(4, 2, PacketFormat::LL8),
        testing::exchange(ChannelKind::port)}) {
    t.program.launch.threads = 128;
    made.push_back(std::make_shared<const Program>(std::move(t.program)));
  }
  return made;
}

/// Runs a body on ranks that are threads, each with its GPU, as gpu_check --threads does.
std::string run_on_gpus(World& world, cuda::ContextKeeper& keeper, uint32_t ranks,
                        const RankBody& body) {
  return testing::run_threads(
      ranks,
      [&](Communicator& communicator) -> std::string {
        Diagnostics d;
        return communicator.device().bind_thread(d) ? body(communicator) : testing::text(d);
      },
      testing::kPatience,
      [&](uint32_t rank, Diagnostics& d) -> std::unique_ptr<Device> {
        FakeDriver::enter(0);
        if (!keeper.keep(world.fake.driver(), static_cast<int>(rank), d)) return nullptr;
        return world.open(0, static_cast<int>(rank), d);
      });
}

/// Loads a plan and makes some calls: nothing runs on a fake GPU, so no result is looked at.
std::string use_plan(World& world, Communicator& communicator,
                     const std::shared_ptr<const Program>& plan, bool zero_copy) {
  Diagnostics d;
  Device& device = communicator.device();
  const auto memory =
      CallerMemory::make(communicator, *plan, {.max_bytes = 4096, .registered = zero_copy}, d);
  const auto loaded = communicator.load(plan, {.max_bytes = 4096, .zero_copy = zero_copy}, d);
  if (memory == nullptr || loaded == nullptr) return testing::text(d);
  const StreamHandle stream = device.create_stream(d);
  bool good = stream != nullptr;
  for (const uint64_t bytes : {4096, 512}) {
    CheckedCall call(communicator, *loaded, *memory, {.bytes = bytes, .dtype = Dtype::f32});
    good = good && call.bind(d) && call.fill(0, d) && call.launch(stream, d);
    world.fake.begin_capture(cuda::abi::kCaptureModeGlobal);
    good = good && call.launch(stream, d);
    world.fake.end_capture();
    good = good && communicator.synchronize(stream, d) && call.compare(0, d);
  }
  device.destroy_stream(stream);
  return good ? "" : testing::text(d);
}

TEST_CASE("ranks that are threads with a GPU each come and go") {
  World world({.devices = 4, .deferred = true});
  {
    cuda::ContextKeeper keeper;
    for (int round = 0; round < 3; ++round) {
      for (const auto& plan : plans()) {
        for (const bool zero_copy : {false, true}) {
          CHECK(run_on_gpus(world, keeper, static_cast<uint32_t>(plan->ranks.size()),
                            [&](Communicator& c) { return use_plan(world, c, plan, zero_copy); }) ==
                "");
        }
      }
    }
    CHECK(world.fake.misuses() == std::vector<std::string>{});
  }
  world.check_clean();
}

TEST_CASE("a call whose kernel does not hold all blocks is refused") {
  World world({.devices = 2});
  world.most_uneven_blocks = 0;
  {
    cuda::ContextKeeper keeper;
    const auto plan = plans().back();
    CHECK(run_on_gpus(world, keeper, 2, [&](Communicator& communicator) -> std::string {
            Diagnostics d;
            const auto loaded = communicator.load(plan, {.max_bytes = 4096}, d);
            const auto memory = communicator.device().allocate(16384, "buffers", d);
            if (loaded == nullptr || memory == nullptr) return testing::text(d);
            CallOptions call{.bytes = 4096,
                             .dtype = Dtype::f32,
                             .input = memory->data(),
                             .output = memory->data() + 8192};
            if (!loaded->bind(call, d)) return testing::text(d);
            call.input = memory->data() + 4;
            if (loaded->bind(call, d)) return "an odd address was taken";
            return cuda::has_code(d, "too-many-blocks") ? "" : testing::text(d);
          }) == "");
  }
  world.check_clean();
}

}  // namespace
}  // namespace mscclc
