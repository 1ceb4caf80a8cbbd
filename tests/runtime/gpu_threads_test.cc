// Communicators on the fake driver, whose ranks are threads of one process, each with a GPU of its
// own: they come and go, plan after plan, and capture while others load. What the driver forbids is
// not done and nothing is left; the thread sanitizer looks for races (./test).
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "executor/interpreter/steps.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"
#include "runtime/core/runner/checked_call.h"
#include "tests/fakes/cuda/test_world.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using cuda::FakeDriver;
using cuda::World;
using testing::RankBody;

/// Plans here are made for what they ask of the driver; nothing runs.
constexpr ProofPolicy kProof = ProofPolicy::skip;

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
                        const RankBody& body, bool multicast = false) {
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
        return world.open(0, static_cast<int>(rank), d, multicast);
      });
}

/// Loads a plan and makes some calls: nothing runs on a fake GPU, so no result is looked at.
std::string use_plan(World& world, Communicator& communicator,
                     const std::shared_ptr<const Program>& plan, bool zero_copy) {
  Diagnostics d;
  Device& device = communicator.device();
  const auto memory =
      CallerMemory::make(communicator, *plan, {.max_bytes = 4096, .registered = zero_copy}, d);
  const auto loaded =
      communicator.load(plan, {.max_bytes = 4096, .zero_copy = zero_copy, .proof = kProof}, d);
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

/// Binds and captures symmetric calls at several places of registered memory, one rank after
/// another: the others wait for this one, so it would wait forever if it waited for them.
std::string bind_alone(World& world, Communicator& communicator,
                       const std::shared_ptr<const Program>& plan) {
  Diagnostics d;
  Device& device = communicator.device();
  const auto memory =
      CallerMemory::make(communicator, *plan, {.max_bytes = 4096, .registered = true}, d);
  const auto loaded =
      communicator.load(plan, {.max_bytes = 4096, .zero_copy = true, .proof = kProof}, d);
  const StreamHandle stream = device.create_stream(d);
  bool good = memory != nullptr && loaded != nullptr && stream != nullptr;
  std::vector<std::vector<uint8_t>> all;
  for (uint32_t turn = 0; good && turn < plan->ranks.size(); ++turn) {
    for (const uint64_t offset : {0, 64, 2048, 64}) {
      if (turn != communicator.rank()) break;
      const CollectiveCall options{
          .bytes = 1024,
          .dtype = Dtype::f32,
          .input = static_cast<const uint8_t*>(memory->device(kInput)) + offset,
          .output = static_cast<uint8_t*>(memory->device(kOutput)) + offset,
          .registered = true};
      if (loaded->bind_waits(options)) return "it waits";
      world.fake.begin_capture(cuda::abi::kCaptureModeGlobal);
      const BoundCall call = loaded->bind(options, d);
      good = good && call && loaded->launch(call, stream, d);
      world.fake.end_capture();
    }
    good = good && communicator.bootstrap().all_gather({}, "the next rank", all, d);
  }
  device.destroy_stream(stream);
  return good ? "" : testing::text(d);
}

TEST_CASE("symmetric calls are bound by each rank alone, in captures too") {
  World world({.devices = 4});
  {
    cuda::ContextKeeper keeper;
    const auto plan = plans().front();
    CHECK(run_on_gpus(world, keeper, static_cast<uint32_t>(plan->ranks.size()),
                      [&](Communicator& c) { return bind_alone(world, c, plan); }) == "");
    CHECK(world.fake.misuses() == std::vector<std::string>{});
  }
  world.check_clean();
}

// Every buffer is unmapped by all ranks at once, each for its GPU.
TEST_CASE("threads take turns to map and unmap what they share") {
  World world({.devices = 4});
  {
    cuda::ContextKeeper keeper;
    CHECK(run_on_gpus(world, keeper, 4, [&](Communicator& communicator) -> std::string {
            Diagnostics d;
            for (int i = 0; i < 50; ++i) {
              const auto memory = communicator.device().allocate(4096, "a buffer", d);
              if (memory == nullptr ||
                  communicator.register_buffer(memory->data(), 4096, d) == nullptr) {
                return testing::text(d);
              }
            }
            return "";
          }) == "");
  }
  world.check_clean();
}

/// The addresses at a switch in a launch's first block, which stand with each member's operand.
std::vector<cuda::abi::Address> switch_addresses(const device::LaunchPlan& plan) {
  const auto* header = reinterpret_cast<const device::StepHeader*>(plan.programs);
  const device::Steps steps(header);
  std::vector<cuda::abi::Address> found;
  for (uint32_t i = 0; i < header->extras; ++i) {
    const auto* at = static_cast<const void*>(steps.extras[i].multicast);
    if (at != nullptr) found.push_back(cuda::address_of(at));
  }
  return found;
}

/// Calls of a plan with a switch on registered buffers, whose bytes are the rank + 1.
std::string use_switch(World& world, Communicator& communicator,
                       const std::shared_ptr<const Program>& plan, bool symmetric,
                       std::map<std::thread::id, std::vector<cuda::abi::Address>>& seen) {
  Diagnostics d;
  Device& device = communicator.device();
  const auto memory = CallerMemory::make(
      communicator, *plan, {.max_bytes = 4096, .input_offset = 64, .registered = true}, d);
  const auto loaded =
      communicator.load(plan, {.max_bytes = 4096, .zero_copy = true, .proof = kProof}, d);
  const StreamHandle stream = device.create_stream(d);
  if (memory == nullptr || loaded == nullptr || stream == nullptr) return testing::text(d);
  const std::vector<uint8_t> bytes(3072, static_cast<uint8_t>(communicator.rank() + 1));
  bool good = device.write(memory->device(kOutput), bytes.data(), bytes.size(), d);
  for (const uint64_t size : {3072, 1536}) {
    const CollectiveCall options{.bytes = size,
                                 .dtype = Dtype::f32,
                                 .input = memory->device(kInput),
                                 .output = memory->device(kOutput),
                                 .registered = symmetric};
    // The first call joins the buffer, for which ranks wait in any case.
    if (loaded->bind_waits(options) != (!symmetric || size == 3072)) return "it waits, or not";
    const BoundCall call = loaded->bind(options, d);
    good = good && call && loaded->launch(call, stream, d) && communicator.synchronize(stream, d);
  }
  device.destroy_stream(stream);
  std::vector<std::vector<uint8_t>> all;
  if (!good || !communicator.bootstrap().all_gather({}, "look", all, d)) return testing::text(d);
  std::vector<cuda::abi::Address> addresses;
  {
    const std::lock_guard lock(world.launching);
    addresses = seen[std::this_thread::get_id()];
  }
  if (addresses.size() != 2 * 3) return "not every call went through the switch";
  for (const cuda::abi::Address at : addresses) {
    if (world.fake.multicast_bytes(at) != std::vector<int>{1, 2, 3}) return "another place";
  }
  return communicator.bootstrap().all_gather({}, "end", all, d) ? "" : testing::text(d);
}

TEST_CASE("registered buffers are joined at a switch, once") {
  std::shared_ptr<const Program> plan;
  for (const testing::OpPlan& op : testing::op_plans()) {
    if (op.name != "switch_broadcast") continue;
    testing::TestProgram t = op.build(PacketFormat::none);
    t.program.launch.threads = 128;
    plan = std::make_shared<const Program>(std::move(t.program));
  }
  for (const auto& [asked, symmetric] :
       {std::pair{true, false}, std::pair{true, true}, std::pair{false, false}}) {
    World world({.devices = 3, .multicast = true});
    std::map<std::thread::id, std::vector<cuda::abi::Address>> seen;
    world.on_launch = [&](const device::LaunchPlan& launch) {
      for (const cuda::abi::Address at : switch_addresses(launch)) {
        seen[std::this_thread::get_id()].push_back(at);
      }
    };
    {
      cuda::ContextKeeper keeper;
      const std::string said = run_on_gpus(
          world, keeper, 3,
          [&, symmetric = symmetric](Communicator& c) {
            return use_switch(world, c, plan, symmetric, seen);
          },
          asked);
      if (asked) {
        CHECK(said == "");
      } else {
        CHECK(said.find("not every call went through the switch") != std::string::npos);
      }
      // The plan's own memory when it is loaded, then the output buffer.
      CHECK(world.fake.calls("MulticastCreate") == (asked ? 2 : 0));
    }
    world.check_clean();
  }
}

/// Binds calls on two GPUs that hold no block of a launch at odd addresses: `bind` is given a call
/// whose input is at the begin of `memory`.
void with_no_room_for_odd_calls(
    bool zero_copy, const std::function<std::string(uint32_t rank, Executable& loaded,
                                                    CollectiveCall call, Diagnostics& d)>& bind) {
  World world({.devices = 2});
  world.most_uneven_blocks = 0;
  {
    cuda::ContextKeeper keeper;
    const auto plan = plans().back();
    CHECK(run_on_gpus(world, keeper, 2, [&](Communicator& communicator) -> std::string {
            Diagnostics d;
            const auto loaded = communicator.load(
                plan, {.max_bytes = 4096, .zero_copy = zero_copy, .proof = kProof}, d);
            const auto memory = communicator.device().allocate(16384, "buffers", d);
            if (loaded == nullptr || memory == nullptr) return testing::text(d);
            std::unique_ptr<RegisteredBuffer> buffer;
            if (zero_copy) {
              buffer = communicator.register_buffer(memory->data(), 16384, d);
              if (buffer == nullptr) return testing::text(d);
            }
            return bind(communicator.rank(), *loaded,
                        {.bytes = 4096,
                         .dtype = Dtype::f32,
                         .input = memory->data(),
                         .output = memory->data() + 8192},
                        d);
          }) == "");
  }
  world.check_clean();
}

CollectiveCall odd(CollectiveCall call) {
  call.input = static_cast<const uint8_t*>(call.input) + 4;
  return call;
}

/// What picks a kernel.
using KernelOf = std::tuple<uint32_t, uint32_t, Dtype, Dtype, ReduceOp>;
KernelOf kernel_of(const device::LaunchPlan& plan) {
  return {plan.uses, plan.program_bytes, plan.dtype, plan.accumulate, plan.reduce};
}

TEST_CASE("residency is asked of the kernel that is launched") {
  World world({.devices = 4});
  std::set<KernelOf> asked;
  uint32_t launched = 0;
  std::mutex mutex;
  world.on_ask = [&](const device::LaunchPlan& plan) {
    const std::lock_guard lock(mutex);
    asked.insert(kernel_of(plan));
  };
  world.on_launch = [&](const device::LaunchPlan& plan) {
    const std::lock_guard lock(mutex);
    ++launched;
    CHECK(asked.count(kernel_of(plan)) == 1);
  };
  {
    cuda::ContextKeeper keeper;
    const auto plan = plans()[1];
    CHECK(run_on_gpus(world, keeper, 4, [&](Communicator& communicator) -> std::string {
            Diagnostics d;
            const auto loaded = communicator.load(plan, {.max_bytes = 4096, .proof = kProof}, d);
            const auto memory = communicator.device().allocate(16384, "buffers", d);
            if (loaded == nullptr || memory == nullptr) return testing::text(d);
            const StreamHandle stream = communicator.device().create_stream(d);
            bool good = true;
            for (const Dtype dtype : {Dtype::f16, Dtype::e4m3, Dtype::i32}) {
              for (const std::optional<Dtype> accumulate : {std::optional<Dtype>(), {Dtype::f32}}) {
                if (accumulate && dtype == Dtype::i32) continue;
                const BoundCall call = loaded->bind({.bytes = 4096,
                                                     .dtype = dtype,
                                                     .op = ReduceOp::max,
                                                     .accumulate = accumulate,
                                                     .input = memory->data(),
                                                     .output = memory->data() + 8192},
                                                    d);
                good = good && call && loaded->launch(call, stream, d);
              }
            }
            communicator.device().destroy_stream(stream);
            return good ? "" : testing::text(d);
          }) == "");
  }
  CHECK(launched == 4 * 5);
  // Types are asked for as they add up by default.
  for (const KernelOf& kernel : asked) {
    if (std::get<2>(kernel) == Dtype::f16)
      CHECK(std::get<3>(kernel) == info(Dtype::f16).accumulate);
  }
  world.check_clean();
}

TEST_CASE("ranks of a communicator that share a GPU are counted") {
  World world({.devices = 2});
  std::mutex mutex;
  std::set<uint32_t> counts;
  world.on_ask = [&](const device::LaunchPlan& plan) {
    const std::lock_guard lock(mutex);
    counts.insert(plan.ranks_here);
  };
  {
    cuda::ContextKeeper keeper;
    const auto plan = plans()[1];
    // Ranks 0 to 2 on one GPU, rank 3 on the other.
    CHECK(testing::run_threads(
              4,
              [&](Communicator& communicator) -> std::string {
                Diagnostics d;
                if (!communicator.device().bind_thread(d)) return testing::text(d);
                const auto loaded =
                    communicator.load(plan, {.max_bytes = 4096, .proof = kProof}, d);
                return loaded == nullptr ? testing::text(d) : "";
              },
              testing::kPatience,
              [&](uint32_t rank, Diagnostics& d) -> std::unique_ptr<Device> {
                FakeDriver::enter(0);
                const int ordinal = rank < 3 ? 0 : 1;
                if (!keeper.keep(world.fake.driver(), ordinal, d)) return nullptr;
                return world.open(0, ordinal, d);
              }) == "");
  }
  CHECK(counts == std::set<uint32_t>{1, 3});
  world.check_clean();
}

TEST_CASE("a call whose kernel does not hold all blocks is refused") {
  with_no_room_for_odd_calls(
      false, [](uint32_t, Executable& loaded, const CollectiveCall& call, Diagnostics& d) {
        if (!loaded.bind(call, d)) return testing::text(d);
        if (loaded.bind(odd(call), d)) return std::string("an odd address was taken");
        return cuda::has_code(d, "too-many-blocks") ? "" : testing::text(d);
      });
}

TEST_CASE("ranks that bind together all learn that one cannot") {
  with_no_room_for_odd_calls(
      true, [](uint32_t rank, Executable& loaded, const CollectiveCall& call, Diagnostics& d) {
        if (loaded.bind(rank == 1 ? odd(call) : call, d)) {
          return std::string("a call that a rank cannot make was bound");
        }
        if (!cuda::has_code(d, rank == 1 ? "too-many-blocks" : "peer-failed")) {
          return testing::text(d);
        }
        return loaded.bind(call, d) ? "" : testing::text(d);
      });
}

/// The beginning of the only mapping or plain allocation of a test's buffers.
cuda::abi::Address begin_of(const Memory& memory) { return cuda::address_of(memory.data()); }

TEST_CASE("registered memory that was freed and allocated again is noticed at bind") {
  for (const bool mappings : {true, false}) {  // as of cuMemCreate, as of cudaMalloc
    INFO("mappings: " << mappings);
    World world({.devices = 2, .mappings = mappings});
    {
      cuda::ContextKeeper keeper;
      const auto plan = plans().back();
      CHECK(run_on_gpus(world, keeper, 2, [&](Communicator& communicator) -> std::string {
              Diagnostics d, refused;
              const auto loaded = communicator.load(
                  plan, {.max_bytes = 4096, .zero_copy = true, .proof = kProof}, d);
              const auto memory = communicator.device().allocate(16384, "buffers", d);
              if (loaded == nullptr || memory == nullptr) return testing::text(d);
              const CollectiveCall call = {.bytes = 4096,
                                           .dtype = Dtype::f32,
                                           .input = memory->data(),
                                           .output = memory->data() + 8192};
              const auto old = communicator.register_buffer(memory->data(), 16384, d);
              if (old == nullptr || !loaded->bind(call, d)) return testing::text(d);
              if (communicator.rank() == 1) world.fake.allocate_again(begin_of(*memory));
              if (loaded->bind(call, refused)) return "memory that is gone was bound";
              const char* const code =
                  communicator.rank() == 1 ? "stale-registration" : "peer-failed";
              if (!cuda::has_code(refused, code)) return testing::text(refused);
              // The new memory, registered on all ranks: the old registration is not in the way.
              const auto again = communicator.register_buffer(memory->data(), 16384, d);
              return again != nullptr && loaded->bind(call, d) ? "" : testing::text(d);
            }) == "");
    }
    world.check_clean();
  }
}

}  // namespace
}  // namespace mscclc
