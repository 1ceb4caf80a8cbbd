// How long bind() takes for every plan of the library at 4 and 8 ranks, as a GPU needs it: the plan
// is fitted to the message size, and its blocks' programs are packed. Processor time of rank 0.
//
//   bazel run //tests/bench:bind_time [NAME]      plans whose name contains NAME
//
// "other": each call has another size and other buffers than the one before. "same": the size
// stays, the buffers change. "again": a call that was bound not long ago. "launch": what launch()
// itself takes, checks and flight recorder; the device does nothing. After the library: programs
// with row functions, by compiled kernels; "same" with other weights, too.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ir/program/program.h"
#include "runtime/api/in_process.h"
#include "tests/bench/program_taker.h"
#include "tests/library/library.h"
#include "tests/rows/row_plans.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint64_t kMax = 1 << 20;

/// The longest message of at most so many bytes.
uint64_t message(const Program& plan, uint64_t bytes, Dtype dtype) {
  return Chunking::part_for_message(plan.contract, bytes, info(dtype).bytes) *
         Chunking::parts_of_message(plan.contract);
}

struct Times {
  double other = 0, same = 0, again = 0, launch = 0;
};

/// The same that takes kernels of plans: it has one of every name.
class KernelTaker final : public testing::ProgramTaker {
 public:
  using ProgramTaker::ProgramTaker;
  std::string architecture() const override { return "sm_90"; }
  bool runs_rows() const override { return false; }
  Result<std::unique_ptr<CompiledKernels>> load_kernels(std::span<const uint8_t>) override {
    return std::make_unique<Kernels>();
  }

 private:
  struct Kernels final : CompiledKernels {
    Kernel find(const std::string&) const override { return this; }
    std::optional<uint32_t> fits(Kernel, const device::LaunchPlan& plan, Diagnostics&) override {
      return plan.blocks;
    }
    bool launch(Kernel, const device::LaunchPlan&, const void*, StreamHandle,
                Diagnostics&) override {
      return true;
    }
  };
};

/// A plan's file beside which kernels lie.
struct PlanFile {
  PlanFile() { std::ofstream(kernels) << "any"; }
  ~PlanFile() { std::filesystem::remove(kernels); }
  const std::string stem = fmt::format("/tmp/bind_time_{}", getpid());
  const std::string kernels = stem + ".sm_90.cubin";
};

/// Binds at rank 0 while the others wait.
std::string measure_rows(Communicator& communicator, const std::shared_ptr<const Program>& plan,
                         const std::string& file, Times& times) {
  Diagnostics diagnostics;
  const uint64_t row = 2 * uint64_t{plan->contract.columns}, most = 1024 * row;
  const auto executable = communicator.load(
      plan,
      {.max_bytes = most, .dtype = Dtype::bf16, .plan_file = file, .proof = ProofPolicy::skip},
      diagnostics);
  const auto memory = communicator.device().allocate(4 * most, "buffers", diagnostics);
  if (executable == nullptr || memory == nullptr) return testing::text(diagnostics);
  bool right = true;
  const auto call = [&](uint64_t rows, uint64_t shift, auto use) {
    uint8_t* const at = memory->data() + 512 * shift;
    const std::vector<CallExternal> externals = {
        {.name = "residual", .data = at + 2 * most, .rows = rows, .columns = row / 2},
        {.name = "weight", .data = at + 3 * most, .columns = row / 2},
        {.name = "eps", .type = rows::Type::f32, .value = 1e-5f}};
    use(CollectiveCall{.bytes = rows * row,
                       .dtype = Dtype::bf16,
                       .input = at,
                       .output = at + most,
                       .externals = externals});
  };
  const auto bind = [&](uint64_t rows, uint64_t shift) {
    call(rows, shift, [&](const CollectiveCall& asked) {
      const BoundCall bound = executable->bind(asked, diagnostics);
      right &= bound && bound.has_compiled_kernel();
    });
  };
  if (communicator.rank() == 0) {
    uint64_t shift = 0;
    times.other = testing::least_microseconds([&](int i) { bind(128 + i % 2, ++shift % 1024); });
    times.same = testing::least_microseconds([&](int) { bind(128, ++shift % 1024); });
    times.again = testing::least_microseconds([&](int i) { bind(128 + i % 2, 0); });
    call(128, 0, [&](const CollectiveCall& asked) {
      const BoundCall bound = executable->bind(asked, diagnostics);
      times.launch = testing::least_microseconds(
          [&](int) { right &= executable->launch(bound, &times, diagnostics); });
    });
  }
  right &= communicator.bootstrap().barrier("measured", diagnostics);
  return right ? "" : "it failed: " + testing::text(diagnostics);
}

void run_rows(const std::string& wanted) {
  const std::pair<const char*, testing::RowDefines> kPrograms[] = {
      {"allreduce_norm_1shot", {{"R", "2"}, {"B", "128"}, {"F", "sentinel"}}},
      {"allreduce_norm_2shot", {{"R", "4"}, {"B", "64"}}}};
  const PlanFile file;
  for (const auto& [name, defines] : kPrograms) {
    if (std::string(name).find(wanted) == std::string::npos) continue;
    const auto plan = std::make_shared<const Program>(testing::library_row_plan(name, defines));
    Times times;
    const auto open = [](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
      return std::make_unique<KernelTaker>(testing::open_host(rank, diagnostics));
    };
    const std::string said = testing::run_threads(
        static_cast<uint32_t>(plan->ranks.size()),
        [&](Communicator& c) { return measure_rows(c, plan, file.stem + ".json", times); }, {},
        open);
    fmt::print("{:<44} {:9.2f} {:9.2f} {:9.2f} {:9.3f}{}\n",
               fmt::format("{} {}", name, text(defines)), times.other, times.same, times.again,
               times.launch, said.empty() ? "" : " " + said);
  }
}

/// Binds at rank 0 while the others wait.
std::string measure(Communicator& communicator, const CompiledWorld& world, Times& times) {
  Diagnostics diagnostics;
  const Dtype dtype = world.dtypes().front();
  const auto plan = std::make_shared<const Program>(world.program());
  const auto executable = communicator.load(plan, {.max_bytes = kMax, .dtype = dtype}, diagnostics);
  const auto memory = communicator.device().allocate(4 * kMax, "buffers", diagnostics);
  if (executable == nullptr || memory == nullptr) return testing::text(diagnostics);
  const uint64_t sizes[2] = {message(*plan, 4096, dtype), message(*plan, 8192, dtype)};
  const bool in_place = world.in_place().back();
  bool right = true;
  const auto bind = [&](int size, uint64_t shift) {
    uint8_t* in = memory->data() + 16 * shift;
    CollectiveCall call{.bytes = sizes[size], .dtype = dtype, .input = in, .output = in + 2 * kMax};
    if (!world.reductions().empty()) call.op = world.reductions().front();
    if (in_place) call.output = in;
    right &= static_cast<bool>(executable->bind(call, diagnostics));
  };
  if (communicator.rank() == 0) {
    uint64_t shift = 0;
    times.other = testing::least_microseconds([&](int i) { bind(i % 2, ++shift % 8192); });
    times.same = testing::least_microseconds([&](int) { bind(0, ++shift % 8192); });
    times.again = testing::least_microseconds([&](int i) { bind(i % 2, 0); });
    const CollectiveCall options{
        .bytes = sizes[0],
        .dtype = dtype,
        .op = world.reductions().empty() ? ReduceOp::sum : world.reductions().front(),
        .input = memory->data(),
        .output = memory->data() + (in_place ? 0 : 2 * kMax)};
    const BoundCall call = executable->bind(options, diagnostics);
    if (!call) return testing::text(diagnostics);
    times.launch = testing::least_microseconds(
        [&](int) { right &= executable->launch(call, &times, diagnostics); });
  }
  right &= communicator.bootstrap().barrier("measured", diagnostics);
  return right ? "" : testing::text(diagnostics);
}

void run(const std::string& wanted) {
  fmt::print("{:<44} {:>9} {:>9} {:>9} {:>9}\n", "bind() in us", "other", "same", "again",
             "launch");
  for (const LibraryProgram& program : library()) {
    if (program.name.find(wanted) == std::string_view::npos) continue;
    for (const Defines& defines : program.worlds) {
      const CompiledWorld world(program.name, defines);
      if (!world.errors().empty()) continue;
      const size_t ranks = world.program().ranks.size();
      if (ranks != 4 && ranks != 8) continue;
      Times times;
      const auto open = [](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
        return std::make_unique<testing::ProgramTaker>(testing::open_host(rank, diagnostics));
      };
      const std::string said = testing::run_threads(
          static_cast<uint32_t>(ranks),
          [&](Communicator& communicator) { return measure(communicator, world, times); }, {},
          open);
      fmt::print("{:<44} {:9.2f} {:9.2f} {:9.2f} {:9.3f}{}\n",
                 fmt::format("{} {}", program.name, text(defines)), times.other, times.same,
                 times.again, times.launch, said.empty() ? "" : " " + said);
    }
  }
}

}  // namespace
}  // namespace mscclc

int main(int count, char** arguments) {
  // Plans are found in the repository's root.
  if (const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY")) {
    if (chdir(root) != 0) return 2;
  }
  mscclc::run(count > 1 ? arguments[1] : "");
  mscclc::run_rows(count > 1 ? arguments[1] : "");
}
