// What a plan's compiled kernel is given when it is launched: the lines of the call, as parameters
// or, where they are too many, in memory of the device that nothing else of the call changes.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "executor/compiled/shape.h"
#include "executor/testing/test_plans.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/host_device.h"
#include "runtime/api/job.h"
#include "tests/helpers/runtime/forwarding_device.h"

namespace mscclc {
namespace {

using namespace testing;

constexpr std::chrono::milliseconds kPatience{300'000};

/// A device that has a kernel of every name, and keeps what it is launched with.
class KeepingDevice : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::string architecture() const override { return "sm_90"; }
  Result<std::unique_ptr<CompiledKernels>> load_kernels(std::span<const uint8_t>) override {
    return std::make_unique<Kernels>(*this);
  }
  bool launch(const device::LaunchPlan& plan, StreamHandle, Diagnostics&) override {
    launched.push_back({plan.previous_allows_early, plan.any_order});
    return true;
  }
  const void* arguments = nullptr;
  uint32_t launches = 0;
  struct Said {
    bool previous_allows_early, any_order;
    bool operator==(const Said&) const = default;
  };
  std::vector<Said> launched;  ///< by the interpreter

 private:
  struct Kernels : CompiledKernels {
    explicit Kernels(KeepingDevice& of) : device(of) {}
    Kernel find(const std::string&) const override { return &device; }
    std::optional<uint32_t> fits(Kernel, const device::LaunchPlan&, Diagnostics&) override {
      return 1000;
    }
    bool launch(Kernel, const device::LaunchPlan&, const void* second, StreamHandle,
                Diagnostics&) override {
      device.arguments = second;
      ++device.launches;
      return true;
    }
    KeepingDevice& device;
  };
};

/// One rank: each block copies a chunk of its own.
TestProgram copies(uint32_t blocks) {
  TestProgram t(1, blocks);
  t.program.launch.align = 16;
  for (uint32_t b = 0; b < blocks; ++b) {
    add_op(t, 0, b, OpKind::copy, {local(kOutput, b)}, {local(kInput, b)});
  }
  return t;
}

/// Checks that the lines say what each block copies: from where, to where, how much.
void check_copies(const CompiledShape& shape, const CompiledLine* lines, const uint8_t* in,
                  const uint8_t* out, uint64_t chunk) {
  const CompiledStep& step = shape.codes()[0].steps[0];
  for (uint32_t b = 0; b < shape.blocks(); ++b) {
    const CompiledLine* own = lines + shape.shared_lines() + b * shape.own_lines();
    device::CompiledExtent extent;
    device::StepOperand to, from;
    std::memcpy(&extent, own + step.extent, sizeof extent);
    std::memcpy(&to, own + step.places[0] / device::kPlaceLine, sizeof to);
    std::memcpy(&from, own + step.places[1] / device::kPlaceLine, sizeof from);
    CAPTURE(b);
    CHECK(extent.end - extent.begin == chunk);
    CHECK(to.address == out + b * chunk);
    CHECK(from.address == in + b * chunk);
  }
}

/// The only rank of a job, on a device.
std::unique_ptr<Communicator> alone_on(const std::shared_ptr<Device>& device) {
  Diagnostics diagnostics;
  auto job = host_job({.size = 1, .one_machine = true, .timeout = kPatience}, diagnostics);
  REQUIRE(job);
  auto bootstrap = join_job(job->id, 0, 1, kPatience, std::move(job->hub), diagnostics);
  REQUIRE(bootstrap != nullptr);
  auto communicator = Communicator::create(std::move(bootstrap), device, {}, diagnostics);
  REQUIRE(communicator != nullptr);
  return communicator;
}

TEST_CASE("a call that is bound again keeps what is said of launches around it") {
  Diagnostics diagnostics;
  const auto device = std::make_shared<KeepingDevice>(make_host_device(diagnostics));
  const auto communicator = alone_on(device);
  const StreamHandle stream = device->create_stream(diagnostics);
  const auto plan = std::make_shared<const Program>(copies(4).program);
  const auto input = device->allocate(256, "input", diagnostics);
  const auto output = device->allocate(256, "output", diagnostics);
  auto executable = communicator->load(
      plan, {.max_bytes = 256, .zero_copy = true, .proof = ProofPolicy::skip}, diagnostics);
  REQUIRE(executable != nullptr);
  const std::vector<KeepingDevice::Said> said = {
      {false, false}, {true, false}, {false, true}, {true, false}, {false, false}};
  for (const auto& [previous_allows_early, any_order] : said) {
    const BoundCall call = executable->bind({.bytes = 256,
                                             .input = input->data(),
                                             .output = output->data(),
                                             .previous_allows_early = previous_allows_early,
                                             .any_order = any_order},
                                            diagnostics);
    REQUIRE(call);
    REQUIRE(executable->launch(call, stream, diagnostics));
  }
  CHECK(device->launched == said);
  device->destroy_stream(stream);
}

TEST_CASE("compiled kernels: lines are parameters, or lie in memory") {
  const char* base = std::getenv("TEST_TMPDIR");
  const std::string plan_file =
      std::filesystem::path(base == nullptr ? "/tmp" : base) / "own_launch.json";
  const std::string kernels = plan_file.substr(0, plan_file.size() - 5) + ".sm_90.cubin";
  std::ofstream(kernels) << "any";
  Diagnostics diagnostics;
  const auto device = std::make_shared<KeepingDevice>(make_host_device(diagnostics));
  const auto communicator = alone_on(device);
  const StreamHandle stream = device->create_stream(diagnostics);
  for (const uint32_t blocks : {8u, 900u}) {
    CAPTURE(blocks);
    TestProgram t = copies(blocks);
    const auto shape = CompiledShape::of(t.program, 0, diagnostics);
    REQUIRE(shape);
    REQUIRE(shape->in_memory() == (blocks == 900));
    const auto plan = std::make_shared<const Program>(std::move(t.program));
    const uint64_t most = uint64_t{blocks} * 64;
    const auto input = device->allocate(most, "input", diagnostics);
    const auto output = device->allocate(most, "output", diagnostics);
    auto executable = communicator->load(
        plan,
        {.max_bytes = most, .zero_copy = true, .plan_file = plan_file, .proof = ProofPolicy::skip},
        diagnostics);
    REQUIRE(executable != nullptr);
    // Two calls that are both alive: the lines of one are not those of the other.
    std::map<uint64_t, BoundCall> calls;
    for (const uint64_t chunk : {16, 64}) {
      calls[chunk] = executable->bind(
          {.bytes = blocks * chunk, .input = input->data(), .output = output->data()}, diagnostics);
      REQUIRE(calls[chunk]);
      CHECK(calls[chunk].has_compiled_kernel());
    }
    for (const auto& [chunk, call] : calls) {
      const uint32_t before = device->launches;
      REQUIRE(executable->launch(call, stream, diagnostics));
      REQUIRE(device->launches == before + 1);
      const void* lines = device->arguments;
      if (shape->in_memory()) std::memcpy(&lines, device->arguments, sizeof lines);
      check_copies(*shape, static_cast<const CompiledLine*>(lines), input->data(), output->data(),
                   chunk);
    }
  }
  for (const Diagnostic& d : diagnostics.all()) WARN(d.message);
  device->destroy_stream(stream);
  std::filesystem::remove(kernels);
}

}  // namespace
}  // namespace mscclc
