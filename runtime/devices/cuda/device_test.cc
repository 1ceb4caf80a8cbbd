#include "runtime/devices/cuda/device.h"

#include <cstdlib>
#include <thread>

#include "executor/short_program.h"
#include "tests/fakes/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

TEST_CASE("cuda: a device says what it is") {
  World world;
  {
    const auto device = world.open(0, 1);
    CHECK(device->name() == "cuda:1 (Fake GPU)");
  }
  world.check_clean();
}

TEST_CASE("cuda: a device that is not there") {
  World world({.devices = 2});
  for (const int ordinal : {-1, 2}) {
    Diagnostics diagnostics;
    CHECK(world.open(0, ordinal, diagnostics) == nullptr);
    CHECK(text_of(diagnostics) ==
          fmt::format("no-such-device: there is no cuda:{}: this process sees 2 GPUs\n"
                      "  CUDA_VISIBLE_DEVICES chooses which; the local rank must be below\n",
                      ordinal));
  }
  world.check_clean();
}

TEST_CASE("cuda: allocated memory is zeros, in whole granules") {
  World world({.granule = 65536});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const uint64_t own = world.fake.allocated(0);
    for (const uint64_t bytes : {0, 1, 1000, 65536, 65537}) {
      const auto memory = device->allocate(bytes, "scratch", diagnostics);
      REQUIRE(memory != nullptr);
      CHECK(memory->data() != nullptr);
      CHECK(memory->bytes() == bytes);
      std::vector<uint8_t> seen(bytes, 1);
      CHECK(device->read(seen.data(), memory->data(), bytes, diagnostics));
      CHECK(seen == std::vector<uint8_t>(bytes, 0));
      CHECK(world.fake.allocated(0) == own + (bytes <= 65536 ? 65536 : 131072));
    }
    CHECK(world.fake.allocated(0) == own);
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("cuda: no memory left, and sizes that cannot be") {
  World world({.granule = 65536, .memory = 1 << 20});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    CHECK(device->allocate(2 << 20, "scratch", diagnostics) == nullptr);
    CHECK(text_of(diagnostics) ==
          "cuda: cannot allocate scratch (2097152 bytes): out of memory "
          "(CUDA_ERROR_OUT_OF_MEMORY); 1048572 of the 1048576 bytes of cuda:0 are free\n");
    for (const uint64_t bytes : {~uint64_t{0}, uint64_t{1} << 63, (uint64_t{1} << 63) - 1}) {
      Diagnostics other;
      CHECK(device->allocate(bytes, "scratch", other) == nullptr);
      CHECK(text_of(other) == fmt::format("cuda: cannot allocate scratch ({} bytes): there is no "
                                          "such memory\n",
                                          bytes));
    }
  }
  world.check_clean();
}

TEST_CASE("cuda: without virtual memory management memory is as of cudaMalloc") {
  World world({.mappings = false});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto memory = device->allocate(1000, "scratch", diagnostics);
    REQUIRE(memory != nullptr);
    CHECK(world.fake.bytes_at(address_of(memory->data()), 1000) == std::vector<uint8_t>(1000, 0));
    const auto handle = device->export_memory(memory->data(), 1000, diagnostics);
    REQUIRE(handle.has_value());
    CHECK(handle->offers.back().kind == HandleKind::cuda_ipc);
  }
  world.check_clean();
}

TEST_CASE("cuda: visible memory is zeros at the host's address") {
  World world;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto memory = device->allocate_visible(100, "the abort word", diagnostics);
    REQUIRE(memory != nullptr);
    CHECK(std::vector<uint8_t>(memory->data(), memory->data() + 100) ==
          std::vector<uint8_t>(100, 0));
  }
  world.check_clean();
}

TEST_CASE("cuda: copies there and back, on streams too") {
  for (const bool deferred : {false, true}) {
    World world({.deferred = deferred});
    {
      const auto device = world.open(0, 0);
      Diagnostics diagnostics;
      const auto a = device->allocate(64, "a", diagnostics);
      const auto b = device->allocate(64, "b", diagnostics);
      const std::vector<uint8_t> sent = {1, 2, 3, 4};
      std::vector<uint8_t> seen(4);
      CHECK(device->write(a->data() + 8, sent.data(), 4, diagnostics));
      const StreamHandle stream = device->create_stream(diagnostics);
      CHECK(device->copy(b->data(), a->data() + 8, 4, stream, diagnostics));
      CHECK(device->synchronize(stream, diagnostics));
      CHECK(device->read(seen.data(), b->data(), 4, diagnostics));
      CHECK(seen == sent);
      device->destroy_stream(stream);
      device->destroy_stream(nullptr);
      CHECK(text_of(diagnostics) == "");
    }
    world.check_clean();
  }
}

TEST_CASE("cuda: an event of the caller's is recorded on the stream, and errors say so") {
  World world;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const StreamHandle stream = device->create_stream(diagnostics);
    const CurrentContext current(*device->context());  // the caller's
    abi::Event event = nullptr;
    REQUIRE(world.fake.driver().EventCreate(&event, abi::kEventDisableTiming) == abi::kSuccess);
    const uint64_t before = world.fake.calls("EventRecord");
    CHECK(device->record_event(event, stream, diagnostics));
    CHECK(world.fake.calls("EventRecord") == before + 1);
    CHECK(text_of(diagnostics) == "");
    world.fake.fail_function("EventRecord");
    CHECK_FALSE(device->record_event(event, stream, diagnostics));
    CHECK_THAT(text_of(diagnostics), Catch::Contains("cannot record the caller's event"));
    world.fake.driver().EventDestroy(event);
    device->destroy_stream(stream);
  }
  world.check_clean();
}

TEST_CASE("cuda: scaling is a launch on the stream, and errors say so") {
  World world({.granule = 65536});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto a = device->allocate(64, "a", diagnostics);
    const StreamHandle stream = device->create_stream(diagnostics);
    const Scaling what{a->data(), a->data(), 16, Dtype::f32, 0.25};
    CHECK(device->scale(what, stream, diagnostics));
    CHECK(device->scale({a->data(), a->data(), 0, Dtype::f32, 0.25}, stream, diagnostics));
    REQUIRE(world.scaled.size() == 1);
    CHECK(world.scaled[0].count == 16);
    world.launch_error = 7;
    CHECK(!device->scale(what, stream, diagnostics));
    CHECK_THAT(text_of(diagnostics),
               Catch::Contains("cannot scale 16 elements") && Catch::Contains("launch error 7"));
    world.launch_error = 0;
    CHECK(device->synchronize(stream, diagnostics));
    device->destroy_stream(stream);
  }
  world.check_clean();
}

TEST_CASE("cuda: a copy beyond an allocation is the driver's error") {
  World world({.granule = 65536});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto memory = device->allocate(64, "a", diagnostics);
    std::vector<uint8_t> bytes(70000);
    CHECK(!device->write(memory->data(), bytes.data(), bytes.size(), diagnostics));
    CHECK(text_of(diagnostics).rfind("cuda: cannot copy 70000 bytes to cuda:0 (Fake GPU): ", 0) ==
          0);
  }
  CHECK(world.fake.leaks() == std::vector<std::string>{});
}

TEST_CASE("cuda: the guard puts back what was current") {
  World world({.devices = 2});
  {
    const auto a = world.open(0, 0);
    const auto b = world.open(0, 1);
    const Driver& driver = world.fake.driver();
    const auto current = [&] {
      abi::Context context = nullptr;
      driver.CtxGetCurrent(&context);
      return context;
    };
    CHECK(current() == nullptr);
    {
      const CurrentContext outer(*a->context());
      CHECK(current() == a->context()->handle());
      Diagnostics diagnostics;
      const auto memory = b->allocate(10, "x", diagnostics);
      CHECK(current() == a->context()->handle());
      {
        const CurrentContext inner(*b->context());
        CHECK(current() == b->context()->handle());
        const CurrentContext again(*b->context());
        CHECK(current() == b->context()->handle());
      }
      CHECK(current() == a->context()->handle());
    }
    CHECK(current() == nullptr);
  }
  world.check_clean();
}

TEST_CASE("cuda: a thread bound to its device touches no other GPU") {
  World world({.devices = 2});
  {
    const auto device = world.open(0, 1);
    std::thread proxy([&] {
      FakeDriver::enter(0);
      Diagnostics diagnostics;
      CHECK(device->bind_thread(diagnostics));
      const auto lane = device->open_lane({}, diagnostics);
      CHECK(lane != nullptr);
      CHECK(text_of(diagnostics) == "");
    });
    proxy.join();
    // One context in all, that of cuda:1: the line of a context in use names its device.
    int contexts = 0;
    for (const std::string& line : world.fake.leaks()) {
      if (line.find("the context of") == std::string::npos) continue;
      ++contexts;
      CHECK(line.find("cuda:1") != std::string::npos);
    }
    CHECK(contexts == 1);
  }
  world.check_clean();
}

TEST_CASE("cuda: several threads, several GPUs in one process") {
  World world({.devices = 4});
  {
    std::vector<std::unique_ptr<CudaDevice>> devices;
    for (int i = 0; i < 4; ++i) devices.push_back(world.open(0, i));
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        FakeDriver::enter(0);
        CudaDevice& device = *devices[static_cast<size_t>(i % 4)];
        for (int k = 0; k < 100; ++k) {
          Diagnostics diagnostics;
          const auto memory = device.allocate(1000, "x", diagnostics);
          const uint64_t number = static_cast<uint64_t>(i * 1000 + k);
          uint64_t seen = 0;
          const bool good = device.write(memory->data(), &number, 8, diagnostics) &&
                            device.read(&seen, memory->data(), 8, diagnostics);
          if (!good || seen != number || diagnostics.has_errors()) std::abort();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  world.check_clean();
}

TEST_CASE("cuda: contexts that are kept do not end with their devices") {
  World world({.devices = 2});
  {
    ContextKeeper keeper;
    Diagnostics diagnostics;
    for (int i = 0; i < 3; ++i) {
      FakeDriver::enter(0);
      CHECK(keeper.keep(world.fake.driver(), 1, diagnostics));
      CHECK(world.open(0, 1) != nullptr);
    }
    CHECK(world.fake.leaks() ==
          std::vector<std::string>{"process 0: the context of cuda:1 is retained 1 times"});
    CHECK_FALSE(keeper.keep(world.fake.driver(), 2, diagnostics));
    CHECK(has_code(diagnostics, "no-such-device"));
  }
  world.check_clean();
}

/// Uses all of a device that is not part of a capture. True if all went well.
bool use_outside_captures(World& world, int ordinal, Diagnostics& d) {
  const auto device = world.open(0, ordinal, d), peer = world.open(0, 1 - ordinal, d);
  if (device == nullptr || peer == nullptr) return false;
  const auto memory = device->allocate(1000, "scratch", d);
  const auto visible = device->allocate_visible(100, "faults", d);
  const auto lane = device->open_lane({}, d);
  const StreamHandle stream = device->create_stream(d);
  if (memory == nullptr || visible == nullptr || lane == nullptr || stream == nullptr) return false;
  const auto handle = device->export_memory(memory->data(), 1000, d);
  const auto mapped = handle ? peer->import_memory(*handle, d) : nullptr;
  uint64_t number = 1;
  const bool good = mapped != nullptr && device->write(memory->data(), &number, 8, d) &&
                    peer->read(&number, mapped->data(), 8, d) &&
                    lane->put({memory.get(), 0}, memory->data() + 8, 8, d) && lane->flush(d) &&
                    device->fits(launch_of(8, 128), d) && device->synchronize(stream, d);
  device->destroy_stream(stream);
  return good;
}

TEST_CASE("cuda: captures of this thread, or of another, forbid the runtime nothing") {
  for (const FakeOptions& machine : {FakeOptions{}, FakeOptions{.mappings = false}}) {
    for (const int mode : {abi::kCaptureModeGlobal, abi::kCaptureModeThreadLocal}) {
      World world(machine);
      Diagnostics diagnostics;
      world.fake.begin_capture(mode);
      CHECK(use_outside_captures(world, 0, diagnostics));
      std::thread other([&] {
        Diagnostics d;
        if (!use_outside_captures(world, 1, d)) std::abort();
      });
      other.join();
      CHECK(text_of(diagnostics) == "");
      world.fake.end_capture();
      world.check_clean();
    }
  }
}

TEST_CASE("cuda: what is launched cannot be waited for while a stream is captured") {
  World world({.deferred = true});
  {
    const auto device = world.open(0, 0), other = world.open(0, 1);
    Diagnostics diagnostics;
    const StreamHandle stream = device->create_stream(diagnostics);
    const StreamHandle captured = device->create_stream(diagnostics);
    REQUIRE(device->launch(launch_of(1, 128, 132), stream, diagnostics));
    world.fake.begin_capture(abi::kCaptureModeRelaxed, captured);
    CHECK(other->drain(diagnostics));
    CHECK(text_of(diagnostics) == "");
    CHECK_FALSE(device->drain(diagnostics));
    CHECK(text_of(diagnostics) ==
          "cuda: cannot run what was launched on cuda:0 (Fake GPU): this process captures a "
          "stream of cuda:0 in a CUDA graph, and the driver cannot wait for the GPU meanwhile\n"
          "  that has broken the capture, which will end with an error\n"
          "  outside of captures, make the first call of a communicator on each stream, and "
          "destroy communicators\n");
    CHECK(device->is_capturing(captured));
    CHECK(world.fake.end_capture() == nullptr);
    CHECK_FALSE(device->is_capturing(captured));
    Diagnostics after;
    CHECK(device->drain(after));
    CHECK(world.fake.run_launches(stream) == 1);
    for (const StreamHandle made : {stream, captured}) device->destroy_stream(made);
  }
  world.check_clean();
}

TEST_CASE("cuda: memory may outlive its device") {
  World world;
  std::unique_ptr<Memory> memory, pinned;
  std::unique_ptr<Lane> lane;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    memory = device->allocate(10, "x", diagnostics);
    pinned = device->allocate_visible(10, "x", diagnostics);
    lane = device->open_lane({}, diagnostics);
  }
  CHECK(!world.fake.leaks().empty());
  memory.reset();
  pinned.reset();
  lane.reset();
  world.check_clean();
}

TEST_CASE("cuda: freeing when the driver is gone is quiet") {
  World world;
  Diagnostics diagnostics;
  auto device = world.open(0, 0);
  auto memory = device->allocate(10, "x", diagnostics);
  auto pinned = device->allocate_visible(10, "x", diagnostics);
  auto lane = device->open_lane({}, diagnostics);
  auto handle = device->export_memory(memory->data(), 10, diagnostics);
  auto mapped = device->import_memory(*handle, diagnostics);
  CHECK(text_of(diagnostics) == "");
  world.fake.deinitialise();
  mapped.reset();
  handle.reset();
  lane.reset();
  pinned.reset();
  memory.reset();
  device.reset();
  CHECK(world.fake.misuses() == std::vector<std::string>{});
}

TEST_CASE("cuda: a launch goes to the launcher, with its stream") {
  World world;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const StreamHandle stream = device->create_stream(diagnostics);
    device::LaunchPlan plan = {};
    plan.blocks = 3;
    plan.threads = 128;
    CHECK(device->launch(plan, stream, diagnostics));
    CHECK(world.launched == std::vector<void*>{stream});
    CHECK(text_of(diagnostics) == "");
    world.launch_error = 720;
    CHECK(!device->launch(plan, stream, diagnostics));
    CHECK(text_of(diagnostics) ==
          "cuda: cannot launch the interpreter on cuda:0 (Fake GPU) (3 blocks of 128 threads): "
          "launch error 720\n");
    device->destroy_stream(stream);
  }
  world.check_clean();
}

TEST_CASE("cuda: which kernel runs a short program") {
  World world;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const StreamHandle stream = device->create_stream(diagnostics);
    const auto in_short = [&](uint32_t operands, bool early) {
      device::ShortProgram program{};
      program.operands = operands;
      bool seen = false;
      world.on_launch = [&](const device::LaunchPlan& plan) { seen = plan.in_short == &program; };
      device::LaunchPlan call = launch_of(3, 128);
      call.early = early;
      call.in_short = &program;
      CHECK(device->launch(call, stream, diagnostics));
      CHECK(device->synchronize(stream, diagnostics));
      return seen;
    };
    CHECK(in_short(2, true));
    CHECK(in_short(2, false));
    CHECK(!in_short(4, true));  // the call before hides what the large kernel takes longer for
    CHECK(in_short(4, false));
    CHECK(text_of(diagnostics) == "");
    // There must be room for either kernel.
    std::vector<bool> asked;
    world.on_ask = [&](const device::LaunchPlan& plan) {
      asked.push_back(plan.in_short != nullptr);
    };
    for (const uint32_t operands : {2u, 4u}) {
      device::ShortProgram program{};
      program.operands = operands;
      device::LaunchPlan call = launch_of(3, 128);
      call.in_short = &program;
      CHECK(device->fits(call, diagnostics).has_value());
    }
    CHECK(asked == std::vector<bool>{true, true, false});
    world.on_launch = nullptr;
    world.on_ask = nullptr;
    device->destroy_stream(stream);
  }
  world.check_clean();
}

TEST_CASE("cuda: all blocks must be resident") {
  World world;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    CHECK(device->fits(launch_of(264, 512), diagnostics) == 264u);
    CHECK(text_of(diagnostics) == "");
    CHECK(!device->fits(launch_of(265, 512), diagnostics).has_value());
    CHECK(text_of(diagnostics) ==
          "too-many-blocks: the plan has 265 thread blocks of 512 threads for cuda:0 (Fake GPU), "
          "which holds 264 at once; thread blocks wait for one another, so all must be there\n"
          "  compile the plan with fewer blocks, instances or threads\n"
          "  for all of the library: 'mscclc library --max-thread-blocks 264'\n");
    Diagnostics threads;
    CHECK(!device->fits(launch_of(1, 1024), threads).has_value());
    CHECK(has_code(threads, "too-many-blocks"));
  }
  world.check_clean();
}

TEST_CASE("cuda: calls begin early") {
  Diagnostics diagnostics;
  const auto early = [&](FakeOptions fake, const Environment::Values& values) {
    World world(fake);
    CudaOptions options;
    REQUIRE(options_from_environment(Environment(values), options, diagnostics));
    world.early = options.early;
    return world.open(0, 0)->launches_early();
  };
  CHECK(early({}, {}));
  CHECK(!early({}, {{"MSCCLC_EARLY_LAUNCH", "0"}}));
  CHECK(early({}, {{"MSCCLC_EARLY_LAUNCH", "2"}}));
  CHECK(!early({.capability = 8}, {}));
  CHECK(text_of(diagnostics) == "");
}

TEST_CASE("cuda: after which kernels calls begin early") {
  Diagnostics diagnostics;
  const auto after_any = [&](const Environment::Values& values) {
    CudaOptions options;
    REQUIRE(options_from_environment(Environment(values), options, diagnostics));
    return options.early_after_any;
  };
  CHECK(!after_any({}));
  CHECK(!after_any({{"MSCCLC_EARLY_LAUNCH", "1"}}));
  CHECK(after_any({{"MSCCLC_EARLY_LAUNCH", "2"}}));
}

TEST_CASE("cuda: calls begin early only where the loaded code does") {
  World world;
  world.loaded = {false, false};
  CHECK(!world.open(0, 0)->launches_early());
  world.loaded = {true, false};
  CHECK(world.open(0, 0)->launches_early());
}

TEST_CASE("cuda: all kernels are loaded when a GPU is opened") {
  World world;
  {
    const auto device = world.open(0, 0);
    CHECK(world.loads == 1);
    world.load_error = 209;
    Diagnostics diagnostics;
    CHECK(world.open(0, 1, diagnostics) == nullptr);
    CHECK(text_of(diagnostics) ==
          "cuda: cannot load the interpreter on cuda:1 (Fake GPU): launch error 209\n");
  }
  world.check_clean();
}

TEST_CASE("cuda: ranks that share a GPU share its room") {
  World world;
  {
    const auto device = world.open(0, 0), again = world.open(0, 0), other = world.open(0, 1);
    CHECK(device->room() == again->room());
    CHECK(device->room() != other->room());
    CHECK(device->room() != world.open(1, 0)->room());
    FakeDriver::enter(0);
    Diagnostics diagnostics;
    CHECK(device->fits(launch_of(88, 512, 0, 3), diagnostics) == 264u);
    CHECK(!device->fits(launch_of(89, 512, 0, 3), diagnostics));
    CHECK(text_of(diagnostics) ==
          "too-many-blocks: the plan has 89 thread blocks of 512 threads for cuda:0 (Fake GPU), "
          "which holds 264 at once for 3 ranks; thread blocks wait for one another, so all must be "
          "there\n"
          "  compile the plan with fewer blocks, instances or threads\n"
          "  for all of the library: 'mscclc library --max-thread-blocks 88'\n");
  }
  world.check_clean();
}

TEST_CASE("cuda: lanes, and the device's own stream, are urgent") {
  World world;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const StreamHandle stream = device->create_stream(diagnostics);
    CHECK(world.fake.priority(stream) == 0);
    CHECK(world.fake.urgent_streams() == 1);
    const auto lane = device->open_lane({}, diagnostics);
    CHECK(world.fake.urgent_streams() == 2);
    device->destroy_stream(stream);
  }
  world.check_clean();
}

TEST_CASE("cuda: MSCCLC_MULTICAST asks for multicast") {
  const auto asked = [](const Environment::Values& values, Diagnostics& diagnostics) {
    CudaOptions options;
    options.multicast = true;
    return options_from_environment(Environment(values), options, diagnostics) && options.multicast;
  };
  Diagnostics diagnostics;
  CHECK(!asked({}, diagnostics));
  CHECK(!asked({{"MSCCLC_MULTICAST", ""}}, diagnostics));
  CHECK(!asked({{"MSCCLC_MULTICAST", "0"}}, diagnostics));
  CHECK(asked({{"MSCCLC_MULTICAST", "1"}}, diagnostics));
  CHECK(text_of(diagnostics) == "");
  CHECK(!asked({{"MSCCLC_MULTICAST", "yes"}}, diagnostics));
  CHECK(has_code(diagnostics, "bad-variable"));
}

}  // namespace
}  // namespace mscclc::cuda
