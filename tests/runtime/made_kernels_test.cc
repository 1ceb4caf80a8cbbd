// From a plan to a launch of its kernel, with a fake driver and a fake libnvrtc: compiled in the
// background, taken over between two calls, kept for the next process.
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "executor/testing/test_plans.h"
#include "runtime/api/communicator.h"
#include "runtime/api/in_process.h"
#include "runtime/devices/kernels/kernel_maker.h"
#include "tests/fakes/cuda/test_world.h"
#include "tests/helpers/files/made_up_folder.h"
#include "tests/helpers/runtime/go_ahead.h"

namespace mscclc {
namespace {

using namespace testing;
using cuda::World;

constexpr const char* kFakeNvrtc = "runtime/devices/kernels/libnvrtc_fake.so";
constexpr std::chrono::seconds kLong{300};

/// Compiles nothing before a test says so.
class HeldCompiler final : public CubinCompiler {
 public:
  HeldCompiler(std::unique_ptr<CubinCompiler> compiler, const GoAhead& may_begin)
      : compiler_(std::move(compiler)), may_begin_(may_begin) {}
  Result<std::string> compile(const std::string& source,
                              const std::string& architecture) const override {
    may_begin_.wait();
    return compiler_->compile(source, architecture);
  }
  const std::string& version() const override { return compiler_->version(); }
  const std::string& file() const override { return compiler_->file(); }

 private:
  const std::unique_ptr<CubinCompiler> compiler_;
  const GoAhead& may_begin_;
};

/// What one process has: a maker, and a rank on a GPU.
class MadeJob {
 public:
  MadeJob(World& world, const std::string& cache, const std::string& nvrtc = kFakeNvrtc)
      : world_(world),
        maker_(
            [this, nvrtc]() -> Result<std::unique_ptr<CubinCompiler>> {
              auto found = open_nvrtc(nvrtc);
              if (!found) return found;
              return std::make_unique<HeldCompiler>(*std::move(found), bound_);
            },
            KernelCache({cache})) {
    const GivenAtEnd at_least(&bound_);
    world.kernels = &maker_;
    device_ = world.open(0, 0);
    auto bootstraps = make_in_process_bootstraps(1, kLong);
    communicator_ = Communicator::create(std::move(bootstraps[0]), device_, {}, diagnostics_);
    REQUIRE(communicator_ != nullptr);
    stream_ = device_->create_stream(diagnostics_);
    input_ = device_->allocate(4096, "input", diagnostics_);
    output_ = device_->allocate(4096, "output", diagnostics_);
    TestProgram t(1, 4);
    t.program.launch.align = 16;
    t.program.launch.threads = 256;
    for (uint32_t b = 0; b < 4; ++b) {
      add_op(t, 0, b, OpKind::copy, {local(kOutput, b)}, {local(kInput, b)});
    }
    executable_ = communicator_->load(
        std::make_shared<const Program>(std::move(t.program)),
        {.max_bytes = 4096, .zero_copy = true, .in_turn = true, .proof = ProofPolicy::skip},
        diagnostics_);
    INFO(cuda::text_of(diagnostics_));
    REQUIRE(executable_ != nullptr);
    call_ = executable_->bind({.bytes = 1024, .input = input_->data(), .output = output_->data()},
                              diagnostics_);
    bound_.give();  // else kernels might be there before the first call
    REQUIRE(call_);
  }
  ~MadeJob() {
    call_ = {};
    executable_.reset();
    communicator_.reset();
    device_->destroy_stream(stream_);
  }

  bool has_kernel() const { return call_.has_compiled_kernel(); }
  /// Lets a call run, to its end.
  void run() {
    REQUIRE(executable_->launch(call_, stream_, diagnostics_));
    (void)world_.fake.run_launches(stream_);
  }

 private:
  World& world_;
  Diagnostics diagnostics_;
  GoAhead bound_;
  CachingKernelMaker maker_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Communicator> communicator_;
  StreamHandle stream_ = nullptr;
  std::unique_ptr<Memory> input_, output_;
  std::unique_ptr<Executable> executable_;
  BoundCall call_;
};

/// The calls of the interpreter before the kernel's first.
void run_until_kernel(MadeJob& job) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (!job.has_kernel() && std::chrono::steady_clock::now() < end) {
    job.run();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(job.has_kernel());
}

World& counting(World& world) {
  world.fake.set_begun_of([](const void* plan) {
    return cuda::address_of(static_cast<const device::LaunchPlan*>(plan)->begun);
  });
  return world;
}

TEST_CASE("a plan's kernels are compiled, taken over and kept") {
  const MadeUpFolder folder;
  const std::string cache = folder.file("kernels");
  World world;
  counting(world);
  {
    MadeJob job(world, cache);
    run_until_kernel(job);
    CHECK(!world.launched.empty());  // the interpreter began
    CHECK(world.fake.kernel_launches().size() == 1);
    const size_t before = world.launched.size();
    job.run();
    CHECK(world.launched.size() == before);
    CHECK(world.fake.kernel_launches().size() == 2);
  }
  {
    // The next process finds them, and compiles nothing.
    MadeJob job(world, cache);
    CHECK(job.has_kernel());
    const size_t before = world.launched.size();
    job.run();
    CHECK(world.launched.size() == before);
  }
  world.check_clean();
}

TEST_CASE("without libnvrtc, the interpreter goes on") {
  const MadeUpFolder folder;
  const std::string cache = folder.file("kernels");
  World world;
  counting(world);
  {
    MadeJob job(world, cache, "/nowhere/libnvrtc.so");
    for (int i = 0; i < 3; ++i) job.run();
    CHECK(!job.has_kernel());
    CHECK(world.launched.size() == 3);
  }
  CHECK(!std::filesystem::exists(cache));
  world.check_clean();
}

}  // namespace
}  // namespace mscclc
