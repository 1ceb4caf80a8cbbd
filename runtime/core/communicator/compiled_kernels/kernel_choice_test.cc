// Kernels beside a plan's file: when they are taken, and what is said when they are not.
#include "runtime/core/communicator/compiled_kernels/kernel_choice.h"

#include <catch2/catch.hpp>
#include <set>

#include "executor/compiled/name.h"
#include "executor/lower.h"
#include "executor/testing/test_plans.h"
#include "runtime/api/host_device.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/observe/log.h"
#include "tests/helpers/files/made_up_folder.h"
#include "tests/helpers/runtime/forwarding_device.h"

namespace mscclc {
namespace {

using namespace testing;

/// A device whose images are lists of names.
class NamingDevice : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::string architecture() const override { return "sm_90"; }
  Result<std::unique_ptr<CompiledKernels>> load_kernels(std::span<const uint8_t> image) override {
    const std::string names(image.begin(), image.end());
    if (names.empty()) return Error{"it is not an image"};
    return std::make_unique<Names>(names);
  }

 private:
  struct Names : CompiledKernels {
    explicit Names(std::string text) : names(std::move(text)) {}
    Kernel find(const std::string& name) const override {
      const size_t at = names.find(name + "\n");
      return at == std::string::npos ? nullptr : names.data() + at;
    }
    std::optional<uint32_t> fits(Kernel, const device::LaunchPlan& launch,
                                 Diagnostics& diagnostics) override {
      if (launch.ranks_here == 1) return 5;
      diagnostics.error("too-many-blocks", {}, "no room for 2 ranks");
      return std::nullopt;
    }
    bool launch(Kernel, const device::LaunchPlan&, const void*, StreamHandle,
                Diagnostics&) override {
      return true;
    }
    const std::string names;
  };
};

constexpr const char* kKernels = "plan.sm_90.cubin";  // beside plan.json

TestProgram plan_of(OpKind kind = OpKind::reduce) {
  TestProgram t(1, 1);
  const uint32_t scratch = t.buffer(0, "scratch", 1);
  add_op(t, 0, 0, OpKind::copy, {local(scratch, 0)}, {local(kInput, 0)});
  if (kind == OpKind::reduce) {
    add_op(t, 0, 0, kind, {local(kOutput, 0)}, {local(kInput, 0), local(scratch, 0)});
  }
  return t;
}

struct Loading {
  explicit Loading(const TestProgram& t) : program(t.program) {}
  /// nullptr: `why` says why.
  std::unique_ptr<KernelChoice> run(const MadeUpFolder& folder, Device& device) {
    auto made = KernelChoice::of(program, 0, digest);
    REQUIRE(made);
    CHECK(!(*made)->is_loaded());
    const auto loaded = (*made)->load_file(folder.file("plan.json"), device);
    CHECK((*made)->is_loaded() == static_cast<bool>(loaded));
    if (loaded) return *std::move(made);
    why = loaded.error().text();
    return nullptr;
  }
  std::string names(const std::set<Dtype>& dtypes) const {
    Diagnostics diagnostics;
    const auto shape = CompiledShape::of(program, 0, diagnostics);
    std::string text;
    for (const Dtype dtype : dtypes) text += kernel_name(digest, shape.value(), dtype) + "\n";
    return text;
  }
  const Program& program;
  std::string digest = std::string(64, 'a');
  std::string why;
};

std::unique_ptr<Device> host() {
  Diagnostics diagnostics;
  auto device = make_host_device(diagnostics);
  REQUIRE(device != nullptr);
  return device;
}

TEST_CASE("compiled kernels: beside the plan, or why not") {
  const MadeUpFolder folder;
  const TestProgram t = plan_of();
  NamingDevice device(host());
  Loading loading(t);
  const std::string file = "'" + folder.file(kKernels) + "'";
  CHECK(loading.run(folder, device) == nullptr);
  CHECK(loading.why == "cannot read " + file + ": No such file or directory");
  folder.write(kKernels, "");
  CHECK(loading.run(folder, device) == nullptr);
  CHECK(loading.why == device.name() + " does not take " + file + ": it is not an image");
  folder.write(kKernels, "mscclc_of_another_plan\n");
  CHECK(loading.run(folder, device) == nullptr);
  CHECK(loading.why == file +
                           " holds no kernel of this plan: it was made of another, or by another "
                           "version of mscclc");
  folder.write(kKernels, loading.names({Dtype::f32, Dtype::bf16}));
  const auto kernels = loading.run(folder, device);
  REQUIRE(kernels != nullptr);
  CHECK(kernels->from() == file);
  // Another plan's hash.
  loading.digest[0] = 'b';
  CHECK(loading.run(folder, device) == nullptr);
}

TEST_CASE("compiled kernels: a call gets the kernel of its type, or the interpreter") {
  const MadeUpFolder folder;
  const TestProgram t = plan_of();
  NamingDevice device(host());
  Loading loading(t);
  folder.write(kKernels, loading.names({Dtype::f32, Dtype::bf16}));
  auto kernels = loading.run(folder, device);
  REQUIRE(kernels != nullptr);
  RankProgram lowered;
  Diagnostics diagnostics;
  REQUIRE(lower_rank(t.program, 0, lowered, diagnostics));
  uint32_t ranks_here = 1;
  const auto choose = [&](Dtype dtype, uint64_t part, ReduceOp reduce = ReduceOp::sum) {
    const Chunking chunking(t.program.contract, part, t.program.launch.align);
    REQUIRE(fit_rank_to_size(lowered, t.program, 0, chunking, chunking, diagnostics));
    std::vector<device::BaseAddress> bases;
    for (size_t i = 0; i < lowered.bases.size(); ++i) {
      bases.push_back({reinterpret_cast<uint8_t*>(0x10000 * (i + 1)), 0, 1});
    }
    BlockPrograms programs;
    REQUIRE(programs.pack(lowered, {bases, {}}, WaitSlots(lowered)));
    device::LaunchPlan launch;
    launch.blocks = 1;
    launch.threads = 7;
    launch.ranks_here = ranks_here;
    launch.dtype = dtype;
    launch.accumulate = info(dtype).accumulate;
    launch.reduce = reduce;
    CompiledCall call;
    kernels->choose(programs, launch, call);
    CHECK((launch.threads == 7) == (call.kernel == nullptr));
    CHECK((launch.most_blocks == 5) == (call.kernel != nullptr));
    CHECK((call.kernel == nullptr || !call.lines.empty()));
    return call.kernel;
  };
  CHECK(choose(Dtype::f32, 4096) != nullptr);
  CHECK(choose(Dtype::bf16, 4096) != nullptr);
  CHECK(choose(Dtype::f32, 4096) != choose(Dtype::bf16, 4096));
  CHECK(choose(Dtype::f32, 4096, ReduceOp::avg) != nullptr);
  CHECK(choose(Dtype::f16, 4096) == nullptr);  // the file has none
  CHECK(choose(Dtype::f32, 4100) == nullptr);  // not whole rows
  CHECK(choose(Dtype::f32, 4096, ReduceOp::max) == nullptr);
  // Where too few of its blocks fit, the interpreter may still have room.
  kernels = loading.run(folder, device);
  REQUIRE(kernels != nullptr);
  ranks_here = 2;
  REQUIRE(start_log(
      Environment(Environment::Values{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_DEBUG_SUBSYS", "LOAD"}}),
      diagnostics));
  std::vector<std::string> lines;
  REQUIRE(set_log_sink([&](const std::string& line) { lines.push_back(line); }, diagnostics));
  CHECK(choose(Dtype::f32, 4096) == nullptr);
  CHECK(choose(Dtype::f32, 8192) == nullptr);  // asked once
  CHECK(choose(Dtype::bf16, 4096) == nullptr);
  REQUIRE(set_log_sink({}, diagnostics));
  reset_log();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("the interpreter runs calls that a kernel of " + kernels->from() +
                      " could: no room for 2 ranks") != std::string::npos);
}

}  // namespace
}  // namespace mscclc
