// Programs with row functions on the host device: ranks as threads and as processes, output and
// externals against what evaluate() makes of exact sums, bit for bit; calls that are refused.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "ir/support/sanitized.h"
#include "runtime/api/kernel_maker.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/rows/random_row.h"
#include "tests/rows/row_plans.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::RowDefines;
using testing::run_processes;
using testing::run_threads;

constexpr uint64_t kMaxRows = 23;  ///< of a part
constexpr uint64_t kCalls = testing::if_sanitized(4, 9);

/// Sizes that go up and down, in turn with types, reductions and placements.
struct RowCalls {
  std::shared_ptr<const Program> plan;
  bool zero_copy = false;
  uint64_t calls = kCalls;

  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    const uint64_t ranks = plan->contract.ranks;
    RankRunner runner(communicator, plan,
                      {.load = {.max_bytes = kMaxRows * plan->granule(Dtype::f32) * ranks,
                                .zero_copy = zero_copy,
                                .proof = ProofPolicy::skip}});
    if (!runner.load(diagnostics)) return testing::text(diagnostics);
    const Dtype dtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};
    for (uint64_t i = 0; i < calls; ++i) {
      const Dtype dtype = dtypes[i % 3];
      const uint64_t rows = i == 0 ? kMaxRows : i * 7 % kMaxRows;
      const RunSpec spec{.bytes = rows * plan->granule(dtype) * ranks,
                         .dtype = dtype,
                         .op = i % 2 == 0 ? ReduceOp::sum : ReduceOp::avg,
                         .in_place = i % 4 == 1 && plan->contract.in_place != InPlace::no,
                         .iterations = 3};
      const RankResult result = runner.run(spec, diagnostics);
      if (result.run.status != RunStatus::right) {
        return fmt::format("{} rows of {}: {}", rows, info(dtype).name, testing::text(diagnostics));
      }
    }
    return "";
  }
};

TEST_CASE("row functions on the host device give what evaluate() says") {
  for (const std::string& name : testing::row_programs()) {
    for (const RowDefines& defines :
         {RowDefines{{"R", "2"}, {"N", "64"}}, RowDefines{{"R", "3"}, {"N", "40"}},
          RowDefines{{"R", "5"}, {"N", "2880"}}}) {
      if (testing::kSanitized && defines[1].second == "2880") continue;
      INFO(name << " of " << defines[0].second << " ranks");
      RowCalls calls{std::make_shared<const Program>(testing::row_plan(name, defines))};
      const uint32_t ranks = calls.plan->contract.ranks;
      CHECK(run_threads(ranks, calls) == "");
      if (ranks != 3) continue;
      CHECK(run_processes(ranks, calls) == "");
      calls.zero_copy = true;
      CHECK(run_threads(ranks, calls) == "");
    }
  }
}

TEST_CASE("programs of random row functions give on the host device what evaluate() says") {
  Dice dice(15);
  for (uint32_t n = 0; n < testing::amount(20u, 120u, 400u); ++n) {
    const std::string text = rows::random_row_program(dice, "random_" + std::to_string(n));
    const uint32_t ranks = 2 + n % 2;
    INFO(text << ranks << " ranks");
    // 272 columns: a group of 512, and what is left of smaller ones.
    RowCalls calls{std::make_shared<const Program>(testing::row_plan_of(
        text, {{"R", std::to_string(ranks)}, {"N", n % 3 == 0 ? "272" : "64"}}))};
    calls.calls = 3;
    CHECK(run_threads(ranks, calls) == "");
  }
}

TEST_CASE("the host device runs steps that have nothing to do") {
  for (const std::string& name : testing::uneven_row_programs()) {
    INFO(name);
    RowCalls calls{std::make_shared<const Program>(testing::row_plan(name, {{"R", "4"}}))};
    CHECK(run_threads(4, calls) == "");
  }
}

TEST_CASE("instances and groups of blocks share rows on the host device") {
  RowCalls calls{std::make_shared<const Program>(testing::row_plan(
      "allreduce_owner", {{"R", "2"}, {"B", "3"}}, "launch instances: 2, policy: blocked\n"))};
  CHECK(run_threads(2, calls) == "");
}

/// A call of four rows of 64 f32 that 'allreduce_norm' takes, on memory that lives as long.
struct GoodCall {
  alignas(16) float memory[4][256] = {};
  std::vector<CallExternal> externals = {
      {.name = "residual", .type = rows::Type::T, .data = memory[0], .rows = 4, .columns = 64},
      {.name = "weight", .type = rows::Type::f32, .data = memory[1], .columns = 64},
      {.name = "eps", .type = rows::Type::f32, .value = 1e-5f}};
  CollectiveCall call{
      .bytes = 1024, .input = memory[2], .output = memory[3], .externals = externals};
};

std::shared_ptr<const Program> norm_plan() {
  return std::make_shared<const Program>(testing::row_plan("allreduce_norm", {{"R", "2"}}));
}

std::string last_of(const Diagnostics& diagnostics) {
  return diagnostics.all().back().code + ": " + diagnostics.all().back().message;
}

/// What rank 0 is refused with when it binds a call.
std::string refused(const CollectiveCall& call) {
  std::string said;
  const auto plan = norm_plan();
  const std::string ran = run_threads(2, [&](Communicator& communicator) {
    Diagnostics diagnostics;
    const auto executable =
        communicator.load(plan, {.max_bytes = 1 << 16, .proof = ProofPolicy::skip}, diagnostics);
    if (executable == nullptr) return testing::text(diagnostics);
    if (executable->bind(call, diagnostics)) return std::string("it is not refused");
    if (communicator.rank() == 0) said = last_of(diagnostics);
    return std::string();
  });
  CHECK(ran == "");
  return said;
}

TEST_CASE("a call is bound anew for a scalar of other bits, and only then") {
  const auto with = [](float value) { return CallExternal{.name = "eps", .value = value}; };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  CHECK(with(0.5f) == with(0.5f));
  CHECK(with(kNan) == with(kNan));
  CHECK(with(0.0f) != with(-0.0f));
}

TEST_CASE("calls of the host device that do not go with rows are refused") {
  GoodCall good;
  CollectiveCall& call = good.call;
  call.dtype = Dtype::i32;
  CHECK(refused(call) == "row-call: row functions are computed of f32, f16 and bf16, not of 'i32'");
  call.dtype = Dtype::bf16;
  CHECK(refused(call) ==
        "bad-external: rank 0: the external 'residual' has 4 rows: the call needs 8 x 64 bf16");
  call.dtype = Dtype::f32;
  call.bytes = 1028;
  CHECK(refused(call) ==
        "row-call: 1028 bytes of a rank are not whole rows of 64 f32, which have 256 bytes");
  call.bytes = 1024;
  call.externals = {};
  CHECK(refused(call) ==
        "bad-external: rank 0: the external 'residual' is missing: the call needs 4 x 64 f32");
  call.externals = good.externals;
  good.externals[1].type = rows::Type::e8m0;
  CHECK(refused(call) ==
        "bad-external: rank 0: the external 'weight' is of e8m0: the call needs 1 x 64 f32");
}

TEST_CASE("a call is kept with its externals, and another one is not taken for it") {
  GoodCall good;
  const auto plan = norm_plan();
  const std::string ran = run_threads(2, [&](Communicator& communicator) {
    Diagnostics diagnostics;
    const auto executable =
        communicator.load(plan, {.max_bytes = 1 << 16, .proof = ProofPolicy::skip}, diagnostics);
    if (executable == nullptr) return testing::text(diagnostics);
    CollectiveCall call = good.call;
    const BoundCall first = executable->bind(call, diagnostics);
    std::vector<CallExternal> same = good.externals;
    const std::string name = "eps";  // names are compared, not where they lie
    same[2].name = name;
    call.externals = same;
    const BoundCall again = executable->bind(call, diagnostics);
    if (!first || !again || &first.state() != &again.state()) return std::string("it is not kept");
    same[2].value = 2e-5f;
    const BoundCall other = executable->bind(call, diagnostics);
    return other && &other.state() != &first.state() ? std::string() : "it is taken for another";
  });
  CHECK(ran == "");
}

/// A device whose blocks run no row functions, as GPUs; its kernels come from a maker, or there are
/// none.
class KernelsOnly final : public testing::ForwardingDevice, KernelMaker, OrderedKernels {
 public:
  explicit KernelsOnly(std::unique_ptr<Device> device, bool makes)
      : ForwardingDevice(std::move(device)),
        made_(makes ? Result<KernelImage>(KernelImage{"image", "a test"})
                    : Result<KernelImage>(Error{"there is no libnvrtc"})) {}
  bool runs_rows() const override { return false; }
  std::string architecture() const override { return "sm_90"; }
  KernelMaker* kernel_maker() override { return this; }
  Result<std::unique_ptr<CompiledKernels>> load_kernels(std::span<const uint8_t>) override {
    return std::make_unique<Kernels>();
  }

 private:
  struct Kernels : CompiledKernels {
    Kernel find(const std::string& name) const override {
      return name.find("_bf16_") == std::string::npos ? this : nullptr;
    }
    std::optional<uint32_t> fits(Kernel, const device::LaunchPlan&, Diagnostics&) override {
      return 1000;
    }
    bool launch(Kernel, const device::LaunchPlan&, const void*, StreamHandle,
                Diagnostics&) override {
      return true;
    }
  };
  std::shared_ptr<const OrderedKernels> order(const KernelOrder& order) override {
    if (!order.wait) return nullptr;  // they are needed now
    return {std::shared_ptr<void>(), static_cast<const OrderedKernels*>(this)};
  }
  std::string about() override { return "by a test"; }
  const Result<KernelImage>* result() const override { return &made_; }

  const Result<KernelImage> made_;
};

TEST_CASE("a device of kernels alone needs those of a plan with row functions") {
  const auto open = [](bool makes) {
    return [makes](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
      return std::make_unique<KernelsOnly>(testing::open_host(rank, diagnostics), makes);
    };
  };
  const auto plan = norm_plan();
  GoodCall good;
  const std::string without = run_threads(
      2,
      [&](Communicator& communicator) {
        Diagnostics diagnostics;
        LoadOptions options{.max_bytes = 1 << 16, .proof = ProofPolicy::skip};
        if (communicator.load(plan, options, diagnostics) != nullptr) return std::string("loaded");
        const std::string said = testing::text(diagnostics);
        const bool right = std::ranges::any_of(diagnostics.all(), [](const Diagnostic& d) {
          return d.code == "no-row-functions" && !d.notes.empty() &&
                 d.message ==
                     "host has no kernels of 'allreduce_norm', and nothing else on it "
                     "runs row functions: there is no libnvrtc";
        });
        options.compiled_kernels = false;
        Diagnostics others;
        if (communicator.load(plan, options, others) != nullptr) return std::string("loaded");
        return right ? std::string() : said;
      },
      {}, open(false));
  CHECK(without == "");
  const std::string with = run_threads(
      2,
      [&](Communicator& communicator) {
        Diagnostics diagnostics;
        const auto executable = communicator.load(
            plan, {.max_bytes = 1 << 16, .proof = ProofPolicy::skip}, diagnostics);
        if (executable == nullptr) return testing::text(diagnostics);
        CollectiveCall call = good.call;
        const BoundCall bound = executable->bind(call, diagnostics);
        if (!bound || !bound.has_compiled_kernel()) return "no kernel" + testing::text(diagnostics);
        call.op = ReduceOp::max;
        if (executable->bind(call, diagnostics)) return std::string("a maximum is bound");
        if (last_of(diagnostics) !=
            "no-row-functions: no kernel of 'allreduce_norm' takes this call of 1024 f32, and "
            "nothing "
            "else runs its row functions: they take sums and averages, added up in f32") {
          return last_of(diagnostics);
        }
        call.op = ReduceOp::sum;
        call.dtype = Dtype::bf16;
        call.bytes = 512;
        std::vector<CallExternal> externals = good.externals;
        externals[1].type = rows::Type::bf16;
        call.externals = externals;
        if (executable->bind(call, diagnostics)) return std::string("bf16 is bound");
        return last_of(diagnostics).ends_with("a test has none of bf16") ? std::string()
                                                                         : last_of(diagnostics);
      },
      {}, open(true));
  CHECK(with == "");
}

}  // namespace
}  // namespace mscclc
