// Kernels that a device's maker gives, at once or after some calls: when they are taken over, and
// what of a call stays.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>

#include "executor/testing/test_plans.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/host_device.h"
#include "runtime/api/job.h"
#include "runtime/api/kernel_maker.h"
#include "tests/helpers/runtime/forwarding_device.h"

namespace mscclc {
namespace {

using namespace testing;

class LateKernels final : public OrderedKernels {
 public:
  const Result<KernelImage>* result() const override { return made ? &*made : nullptr; }
  std::optional<Result<KernelImage>> made;
};

/// Gives what a test says, now or later.
class LateMaker final : public KernelMaker {
 public:
  std::shared_ptr<const OrderedKernels> order(const KernelOrder& order) override {
    orders.push_back(order);
    return given;
  }
  std::string about() override { return "by a test"; }
  std::shared_ptr<LateKernels> given = std::make_shared<LateKernels>();
  std::vector<KernelOrder> orders;
};

/// Runs nothing, and notes which calls would have been run by what.
class LateDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::string architecture() const override { return "sm_90"; }
  KernelMaker* kernel_maker() override { return &maker; }
  bool is_capturing(StreamHandle) override { return capturing; }
  bool carries_programs() const override { return true; }  // so that only pauses take marks
  Result<std::unique_ptr<CompiledKernels>> load_kernels(std::span<const uint8_t> image) override {
    ++loads;
    if (image.empty()) return Error{"it is no image"};
    return std::make_unique<Kernels>(*this);
  }
  bool launch(const device::LaunchPlan&, StreamHandle, Diagnostics&) override {
    ran += 'i';
    return true;
  }
  bool mark(StreamHandle, std::unique_ptr<StreamMark>& mark, Diagnostics&) override {
    ++marks;
    if (mark == nullptr) mark = std::make_unique<Mark>(*this);
    return true;
  }
  LateMaker maker;
  bool capturing = false, at_rest = false;
  int loads = 0, marks = 0;
  std::string ran;  ///< 'i': by the interpreter, 'k': by a kernel

 private:
  struct Mark : StreamMark {
    explicit Mark(const LateDevice& of) : device(of) {}
    bool reached() override { return device.at_rest; }
    const LateDevice& device;
  };
  struct Kernels : CompiledKernels {
    explicit Kernels(LateDevice& of) : device(of) {}
    Kernel find(const std::string&) const override { return &device; }
    std::optional<uint32_t> fits(Kernel, const device::LaunchPlan&, Diagnostics&) override {
      return 1000;
    }
    bool launch(Kernel, const device::LaunchPlan&, const void* lines, StreamHandle,
                Diagnostics&) override {
      device.ran += lines != nullptr ? 'k' : '?';
      return true;
    }
    LateDevice& device;
  };
};

constexpr uint64_t kMax = 65536;

/// One rank with an executable that copies.
struct LateJob {
  LateJob() {
    device = std::make_shared<LateDevice>(make_host_device(diagnostics));
    constexpr std::chrono::milliseconds kWait{300'000};
    auto job = host_job({.size = 1, .one_machine = true, .timeout = kWait}, diagnostics);
    REQUIRE(job);
    auto bootstrap = join_job(job->id, 0, 1, kWait, std::move(job->hub), diagnostics);
    REQUIRE(bootstrap != nullptr);
    communicator = Communicator::create(std::move(bootstrap), device, {}, diagnostics);
    REQUIRE(communicator != nullptr);
    stream = device->create_stream(diagnostics);
    memory = device->allocate(2 * kMax, "buffers", diagnostics);
  }
  ~LateJob() { device->destroy_stream(stream); }

  std::unique_ptr<Executable> load(Diagnostics& problems, bool in_turn = true,
                                   uint32_t blocks = 4) {
    TestProgram t(1, blocks);
    t.program.launch.align = 16;
    for (uint32_t b = 0; b < blocks; ++b) {
      add_op(t, 0, b, OpKind::copy, {local(kOutput, b)}, {local(kInput, b)});
    }
    return communicator->load(std::make_shared<const Program>(std::move(t.program)),
                              {.max_bytes = kMax, .in_turn = in_turn, .proof = ProofPolicy::skip},
                              problems);
  }
  std::unique_ptr<Executable> load(bool in_turn = true) {
    auto loaded = load(diagnostics, in_turn);
    REQUIRE(loaded != nullptr);
    return loaded;
  }
  BoundCall bind(Executable& executable, uint64_t bytes = 256) {
    const BoundCall call = executable.bind(
        {.bytes = bytes, .input = memory->data(), .output = memory->data() + kMax}, diagnostics);
    REQUIRE(call);
    return call;
  }
  /// What runs these launches.
  std::string run(Executable& executable, const BoundCall& call, int times = 1) {
    device->ran.clear();
    for (int i = 0; i < times; ++i) REQUIRE(executable.launch(call, stream, diagnostics));
    return device->ran;
  }
  void kernels_come() { device->maker.given->made = KernelImage{"image", "a test"}; }

  Diagnostics diagnostics;
  std::shared_ptr<LateDevice> device;
  std::unique_ptr<Communicator> communicator;
  StreamHandle stream = nullptr;
  std::unique_ptr<Memory> memory;
};

/// MSCCLC_KERNELS while it lives.
struct KernelsMode {
  explicit KernelsMode(const char* mode) { setenv("MSCCLC_KERNELS", mode, 1); }
  ~KernelsMode() { unsetenv("MSCCLC_KERNELS"); }
};

TEST_CASE("kernels that are there are taken when the plan is loaded") {
  LateJob job;
  job.kernels_come();
  const auto executable = job.load();
  REQUIRE(job.device->maker.orders.size() == 1);
  const KernelOrder& order = job.device->maker.orders[0];
  CHECK(order.architecture == "sm_90");
  CHECK(order.digest.size() == 64);
  CHECK(!order.wait);
  const BoundCall call = job.bind(*executable);
  CHECK(call.has_compiled_kernel());
  CHECK(job.run(*executable, call, 2) == "kk");
  CHECK(job.device->marks == 0);  // nothing waits for a pause
}

TEST_CASE("kernels that come later take over in a pause, and calls that are bound with them") {
  LateJob job;
  const auto executable = job.load();
  const BoundCall call = job.bind(*executable), other = job.bind(*executable, 512);
  CHECK(job.run(*executable, call, 3) == "iii");
  CHECK(job.device->marks == 0);  // they have not come
  job.kernels_come();
  CHECK(job.run(*executable, call, 3) == "iii");  // calls run
  CHECK(job.device->marks == 3);
  CHECK(!call.has_compiled_kernel());
  job.device->at_rest = true;
  CHECK(job.run(*executable, call, 2) == "kk");
  CHECK(call.has_compiled_kernel());
  CHECK(job.run(*executable, other) == "k");
  CHECK(job.bind(*executable).has_compiled_kernel());
  CHECK(job.bind(*executable, 1024).has_compiled_kernel());
  // What kernels do not do, the interpreter does.
  CHECK(job.run(*executable, job.bind(*executable, 260)) == "i");
  CHECK(job.device->loads == 1);
  CHECK(job.device->marks == 3);
}

TEST_CASE("a pause is not taken for one while calls follow that it has not looked at") {
  LateJob job;
  const auto executable = job.load();
  const BoundCall call = job.bind(*executable);
  job.kernels_come();
  CHECK(job.run(*executable, call, 100) == std::string(100, 'i'));
  CHECK(job.device->marks == 16);  // they cost something
  job.device->at_rest = true;      // of the sixteenth
  CHECK(job.run(*executable, call) == "i");
  CHECK(job.run(*executable, call, 300).ends_with("k"));
}

TEST_CASE("a call in a capture is no sign of a pause; in a pause, a capture gets kernels") {
  LateJob job;
  const auto executable = job.load();
  const BoundCall call = job.bind(*executable);
  job.kernels_come();
  job.device->capturing = job.device->at_rest = true;
  CHECK(job.run(*executable, call, 3) == "iii");
  CHECK(job.device->marks == 0);
  job.device->capturing = false;
  CHECK(job.run(*executable, call) == "i");
  job.device->capturing = true;
  CHECK(job.run(*executable, call) == "k");
}

TEST_CASE("calls in no known order take over when a plan is loaded") {
  LateJob job;
  const auto executable = job.load(false);
  const BoundCall call = job.bind(*executable);
  job.kernels_come();
  job.device->at_rest = true;
  CHECK(job.run(*executable, call, 3) == "iii");
  const auto other = job.load();
  CHECK(job.run(*executable, call) == "k");
}

TEST_CASE("lines that do not fit into parameters take a slot when kernels take over") {
  LateJob job;
  const auto executable = job.load(job.diagnostics, true, 900);
  REQUIRE(executable != nullptr);
  const BoundCall call = job.bind(*executable, 900 * 16);
  job.kernels_come();
  CHECK(job.run(*executable, call) == "i");
  job.device->at_rest = true;
  CHECK(job.run(*executable, call, 3) == "kkk");
}

TEST_CASE("kernels that never come, or that the device does not take, leave the interpreter") {
  LateJob job;
  job.device->at_rest = true;
  const auto executable = job.load();
  const BoundCall call = job.bind(*executable);
  SECTION("they cannot be compiled") { job.device->maker.given->made = Error{"no compiler"}; }
  SECTION("they are no image") { job.device->maker.given->made = KernelImage{"", "a test"}; }
  CHECK(job.run(*executable, call, 4) == "iiii");
  CHECK(!call.has_compiled_kernel());
  const int marks = job.device->marks;
  CHECK(job.run(*executable, call, 4) == "iiii");
  CHECK(job.device->marks == marks);  // it is over
}

TEST_CASE("MSCCLC_KERNELS: off orders nothing, now waits or is an error") {
  LateJob job;
  {
    const KernelsMode off("off");
    const auto executable = job.load();
    CHECK(job.device->maker.orders.empty());
    CHECK(job.run(*executable, job.bind(*executable)) == "i");
  }
  {
    const auto plan = std::make_shared<const Program>(job.load()->plan());
    job.device->maker.orders.clear();
    Diagnostics ignored;
    CHECK(job.communicator->load(
              plan, {.max_bytes = 256, .compiled_kernels = false, .proof = ProofPolicy::skip},
              ignored) != nullptr);
    CHECK(job.device->maker.orders.empty());
  }
  const KernelsMode now("now");
  job.device->maker.given->made = Error{"no compiler"};
  Diagnostics problems;
  CHECK(job.load(problems) == nullptr);
  REQUIRE(!problems.all().empty());
  const Diagnostic& last = problems.all().back();
  CHECK(last.code == "no-compiled-kernel");
  CHECK_THAT(last.message,
             Catch::Contains("MSCCLC_KERNELS is now") && Catch::Contains("no compiler"));
  REQUIRE(job.device->maker.orders.size() == 1);
  CHECK(job.device->maker.orders[0].wait);
  job.kernels_come();
  const auto executable = job.load();  // the communicator is still good
  CHECK(job.run(*executable, job.bind(*executable)) == "k");
}

}  // namespace
}  // namespace mscclc
