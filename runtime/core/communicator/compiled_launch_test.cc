// What a plan's compiled kernel is given when it is launched: the lines of the call, as parameters
// or, where they are too many, in memory of the device that nothing else of the call changes.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

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
  bool was_packed = false;  ///< the last call of a kernel; else an earlier one's lines were moved
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
    bool launch(Kernel, const device::LaunchPlan& plan, const void* second, StreamHandle,
                Diagnostics&) override {
      device.arguments = second;
      device.was_packed = plan.programs != nullptr;
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

/// What a block copies.
struct Copy {
  device::StepOperand to, from;
  uint64_t bytes;
};

Copy copy_of_block(const CompiledShape& shape, const CompiledLine* lines, uint32_t block) {
  const CompiledStep& step = shape.codes()[0].steps[0];
  const CompiledLine* own = lines + shape.shared_lines() + block * shape.own_lines();
  device::CompiledExtent extent;
  Copy copy;
  std::memcpy(&extent, own + step.extent, sizeof extent);
  std::memcpy(&copy.to, own + step.places[0] / device::kPlaceLine, sizeof copy.to);
  std::memcpy(&copy.from, own + step.places[1] / device::kPlaceLine, sizeof copy.from);
  copy.bytes = extent.end - extent.begin;
  return copy;
}

/// Checks that the lines say what each block copies: from where, to where, how much.
void check_copies(const CompiledShape& shape, const CompiledLine* lines, const uint8_t* in,
                  const uint8_t* out, uint64_t chunk) {
  for (uint32_t b = 0; b < shape.blocks(); ++b) {
    const Copy copy = copy_of_block(shape, lines, b);
    CAPTURE(b);
    CHECK(copy.bytes == chunk);
    CHECK(copy.to.address == out + b * chunk);
    CHECK(copy.from.address == in + b * chunk);
  }
}

/// Does what such lines say.
void run_copies(const CompiledShape& shape, const CompiledLine* lines) {
  for (uint32_t b = 0; b < shape.blocks(); ++b) {
    const Copy copy = copy_of_block(shape, lines, b);
    std::memmove(copy.to.address, copy.from.address, copy.bytes);
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

/// A plan's file beside which kernels lie.
struct PlanFile {
  explicit PlanFile(const std::string& name) {
    const char* base = std::getenv("TEST_TMPDIR");
    path = std::filesystem::path(base == nullptr ? "/tmp" : base) / (name + ".json");
    kernels = path.substr(0, path.size() - 5) + ".sm_90.cubin";
    std::ofstream(kernels) << "any";
  }
  ~PlanFile() { std::filesystem::remove(kernels); }
  std::string path, kernels;
};

TEST_CASE("compiled kernels: lines are parameters, or lie in memory") {
  const PlanFile file("own_launch");
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
        {.max_bytes = most, .zero_copy = true, .plan_file = file.path, .proof = ProofPolicy::skip},
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
}

/// Calls of a plan whose blocks copy, one after the other, on a device that keeps their lines.
struct CopyCalls {
  explicit CopyCalls(uint32_t blocks)
      : file("moved_calls"),
        device(std::make_shared<KeepingDevice>(make_host_device(diagnostics))),
        communicator(alone_on(device)),
        most(uint64_t{blocks} * 64) {
    TestProgram t = copies(blocks);
    shape = CompiledShape::of(t.program, 0, diagnostics);
    REQUIRE(shape);
    stream = device->create_stream(diagnostics);
    memory = device->allocate(2 * most + 8192, "buffers", diagnostics);
    for (uint64_t i = 0; i < memory->bytes(); ++i) {
      memory->data()[i] = static_cast<uint8_t>(i * 0x9e3779b9 >> 16);
    }
    executable = communicator->load(
        std::make_shared<const Program>(std::move(t.program)),
        {.max_bytes = most, .plan_file = file.path, .proof = ProofPolicy::skip}, diagnostics);
    REQUIRE(executable != nullptr);
  }
  ~CopyCalls() { device->destroy_stream(stream); }

  /// A call of `bytes` whose buffers begin so far in the memory. All stay alive.
  bool is_packed(uint64_t in, uint64_t out, uint64_t bytes, bool previous_allows_early = false) {
    uint8_t* const input = memory->data() + in;
    uint8_t* const output = memory->data() + out;
    const std::vector<uint8_t> wanted(input, input + bytes);
    bound.push_back(executable->bind({.bytes = bytes,
                                      .input = input,
                                      .output = output,
                                      .previous_allows_early = previous_allows_early},
                                     diagnostics));
    REQUIRE(bound.back());
    REQUIRE(bound.back().has_compiled_kernel());
    REQUIRE(executable->launch(bound.back(), stream, diagnostics));
    const void* lines = device->arguments;
    if (shape->in_memory()) std::memcpy(&lines, device->arguments, sizeof lines);
    check_copies(*shape, static_cast<const CompiledLine*>(lines), input, output,
                 bytes / shape->blocks());
    run_copies(*shape, static_cast<const CompiledLine*>(lines));
    CHECK(std::equal(wanted.begin(), wanted.end(), output));
    return device->was_packed;
  }

  Diagnostics diagnostics;
  const PlanFile file;
  const std::shared_ptr<KeepingDevice> device;
  const std::unique_ptr<Communicator> communicator;
  const uint64_t most;
  std::optional<CompiledShape> shape;
  StreamHandle stream = nullptr;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Executable> executable;
  std::vector<BoundCall> bound;
};

TEST_CASE("compiled kernels: a call at other places gets the lines of an earlier one, moved") {
  for (const uint32_t blocks : {8u, 900u}) {
    CAPTURE(blocks);
    CopyCalls calls(blocks);
    const uint64_t most = calls.most, half = most + 4096;
    CHECK(calls.is_packed(0, half, most));
    CHECK_FALSE(calls.is_packed(128, half, most));
    CHECK_FALSE(calls.is_packed(256, half + 384, most));
    CHECK_FALSE(calls.is_packed(half, 128, most));
    CHECK(calls.is_packed(0, half, most));  // as it was bound
    // Buffers that begin elsewhere in a line.
    CHECK(calls.is_packed(16, half, most));
    CHECK_FALSE(calls.is_packed(16 + 128, half + 128, most));
    // In place.
    CHECK(calls.is_packed(512, 512, most));
    CHECK_FALSE(calls.is_packed(1024, 1024, most));
    // Of another size, and after a kernel that lets it begin early.
    CHECK(calls.is_packed(0, half, most / 4));
    CHECK_FALSE(calls.is_packed(640, half, most / 4));
    CHECK(calls.is_packed(640, half, most / 4, true));
    CHECK_FALSE(calls.is_packed(768, half, most / 4, true));
  }
}

TEST_CASE("compiled kernels: what is kept of a call outlives it") {
  CopyCalls calls(900);
  const uint64_t half = calls.most + 4096;
  CHECK(calls.is_packed(0, half, calls.most));
  for (uint64_t i = 1; i < 60; ++i) {
    calls.bound.clear();
    CHECK_FALSE(calls.is_packed(128 * (i % 31), half + 128 * (i / 31), calls.most));
  }
}

}  // namespace
}  // namespace mscclc
