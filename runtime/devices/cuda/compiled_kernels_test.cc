// Kernels of plans on the fake driver: found, launched in the order of all calls, refused.
#include "runtime/devices/cuda/compiled_kernels.h"

#include "tests/fakes/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

Result<std::unique_ptr<CompiledKernels>> load(CudaDevice& device, const std::string& image) {
  const std::string cubin = fake_cubin(image);
  return device.load_kernels({reinterpret_cast<const uint8_t*>(cubin.c_str()), cubin.size()});
}

device::LaunchPlan plan_of(uint32_t blocks, uint32_t threads) {
  device::LaunchPlan plan;
  plan.blocks = blocks;
  plan.threads = threads;
  plan.most_blocks = 264;
  plan.early = true;
  return plan;
}

abi::Address begun_of(const void* plan) {
  return address_of(static_cast<const device::LaunchPlan*>(plan)->begun);
}

TEST_CASE("cuda: a plan's kernels are found by name, and launched") {
  World world;
  world.fake.set_begun_of(begun_of);
  {
    const auto device = world.open(0, 0);
    CHECK(device->architecture() == "sm_90");
    Diagnostics diagnostics;
    {
      const auto loaded = load(*device, "sm_90\none\ntwo\n");
      REQUIRE(loaded);
      CompiledKernels* const kernels = loaded->get();
      const CompiledKernels::Kernel one = kernels->find("one"), two = kernels->find("two");
      CHECK(one != nullptr);
      CHECK(two != nullptr);
      CHECK(one != two);
      CHECK(kernels->find("three") == nullptr);
      CHECK(kernels->fits(two, plan_of(8, 512), diagnostics) == 4 * 132);
      const StreamHandle stream = device->create_stream(diagnostics);
      const uint64_t lines[2] = {};
      CHECK(kernels->launch(two, plan_of(8, 512), lines, stream, diagnostics));
      CHECK(device->launch(plan_of(4, 512), stream, diagnostics));
      CHECK(device->synchronize(stream, diagnostics));
      CHECK(world.fake.run_launches(stream) == 2);
      const auto launches = world.fake.kernel_launches();
      REQUIRE(launches.size() == 1);
      CHECK(launches[0].function == static_cast<const CompiledKernel*>(two)->function);
      CHECK(launches[0].blocks == 8);
      CHECK(launches[0].threads == 512);
      CHECK(launches[0].early);
      CHECK(world.launched.size() == 1);  // the interpreter's
      device->destroy_stream(stream);
    }
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE(
    "cuda: a kernel whose blocks are clusters is launched with as many CUDA blocks as they have") {
  World world;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto loaded = load(*device, "sm_90\none*3\n");
    REQUIRE(loaded);
    CompiledKernels* const kernels = loaded->get();
    const CompiledKernels::Kernel one = kernels->find("one");
    CHECK(kernels->fits(one, plan_of(8, 768), diagnostics) == 8 * 132 / 3);
    const StreamHandle stream = device->create_stream(diagnostics);
    CHECK(kernels->launch(one, plan_of(8, 768), nullptr, stream, diagnostics));
    const auto launches = world.fake.kernel_launches();
    REQUIRE(launches.size() == 1);
    CHECK(launches[0].blocks == 24);
    CHECK(launches[0].threads == 256);
    CHECK(world.fake.run_launches(stream) == 1);
    device->destroy_stream(stream);
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("cuda: a plan's kernel in a capture is a node after those of other streams") {
  World world;
  world.fake.set_begun_of(begun_of);
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto loaded = load(*device, "sm_90\none\n");
    REQUIRE(loaded);
    CompiledKernels* const kernels = loaded->get();
    const StreamHandle stream = device->create_stream(diagnostics);
    world.fake.begin_capture(abi::kCaptureModeGlobal, stream);
    CHECK(kernels->launch(kernels->find("one"), plan_of(8, 512), nullptr, stream, diagnostics));
    world.fake.end_capture();
    CHECK(world.fake.run_launches(stream) == 0);
    device->destroy_stream(stream);
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("cuda: images that this GPU does not take") {
  World world;
  {
    const auto device = world.open(0, 0);
    const auto refusal = [](const Result<std::unique_ptr<CompiledKernels>>& loaded) {
      return loaded ? "it is loaded" : loaded.error().text();
    };
    CHECK(refusal(load(*device, "sm_100\none\n")) ==
          "it went wrong (CUDA_ERROR_NO_BINARY_FOR_GPU)");
    CHECK(refusal(load(*device, "")) == "it went wrong (CUDA_ERROR_INVALID_IMAGE)");
    // What would have the driver read beyond its end never gets there.
    CHECK(refusal(device->load_kernels({})) == "it is not a cubin");
    CHECK(world.fake.calls("ModuleLoadData") == 2);
  }
  world.check_clean();
}

TEST_CASE("cuda: a plan's kernel that does not fit, or cannot be launched") {
  World world;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto loaded = load(*device, "sm_90\none\n");
    REQUIRE(loaded);
    CompiledKernels* const kernels = loaded->get();
    const CompiledKernels::Kernel one = kernels->find("one");
    CHECK_FALSE(kernels->fits(one, plan_of(600, 512), diagnostics));
    CHECK(has_code(diagnostics, "too-many-blocks"));
    const StreamHandle stream = device->create_stream(diagnostics);
    Diagnostics other;
    bool failed = false;  // of all calls of the driver, this one
    for (uint64_t n = 1; n < 32 && !failed; ++n) {
      other = {};
      const uint64_t before = world.fake.calls("LaunchKernelEx");
      world.fake.fail_call(n);
      const bool launched = kernels->launch(one, plan_of(8, 512), nullptr, stream, other);
      failed = !launched && world.fake.calls("LaunchKernelEx") == before + 1;
    }
    REQUIRE(failed);
    CHECK(
        text_of(other).rfind("cuda: cannot launch the plan's kernel on cuda:0 (Fake GPU) (8 blocks "
                             "of 512 threads): ",
                             0) == 0);
    device->destroy_stream(stream);
  }
  world.check_clean();
}

}  // namespace
}  // namespace mscclc::cuda
