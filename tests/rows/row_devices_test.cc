// Programs with row functions on the host device: ranks as threads and as processes, output and
// externals against what evaluate() makes of exact sums, bit for bit; calls that are refused.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "ir/base/sanitized.h"
#include "tests/rows/row_plans.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::RowDefines;
using testing::run_processes;
using testing::run_threads;

constexpr uint64_t kMaxRows = 23;  ///< of a part

/// Sizes that go up and down, in turn with types, reductions and placements.
struct RowCalls {
  std::shared_ptr<const Program> plan;
  bool zero_copy = false;

  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    const uint64_t ranks = plan->contract.ranks;
    RankRunner runner(communicator, plan,
                      {.load = {.max_bytes = kMaxRows * plan->granule(Dtype::f32) * ranks,
                                .zero_copy = zero_copy,
                                .proof = ProofPolicy::skip}});
    if (!runner.load(diagnostics)) return testing::text(diagnostics);
    const Dtype dtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};
    for (uint64_t i = 0; i < testing::if_sanitized<uint64_t>(4, 9); ++i) {
      const Dtype dtype = dtypes[i % 3];
      const uint64_t rows = i == 0 ? kMaxRows : i * 7 % kMaxRows;
      const RunSpec spec{.bytes = rows * plan->granule(dtype) * ranks,
                         .dtype = dtype,
                         .op = i % 2 == 0 ? ReduceOp::sum : ReduceOp::avg,
                         .in_place = i % 4 == 1,
                         .iterations = 3};
      const RankResult result = runner.run(spec, diagnostics);
      if (result.run.status != RunStatus::right) {
        return fmt::format("{} rows of {}: {}", rows, info(dtype).name,
                           testing::text(diagnostics));
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

TEST_CASE("instances and groups of blocks share rows on the host device") {
  RowCalls calls{std::make_shared<const Program>(testing::row_plan(
      "allreduce_owner", {{"R", "2"}, {"B", "3"}}, "launch instances: 2, policy: blocked\n"))};
  CHECK(run_threads(2, calls) == "");
}

/// What a rank's call of rows of its own is refused with.
std::string refused(const CollectiveCall& call) {
  std::string said;
  const auto plan =
      std::make_shared<const Program>(testing::row_plan("allreduce_norm", {{"R", "2"}}));
  const std::string ran = run_threads(2, [&](Communicator& communicator) {
    Diagnostics diagnostics;
    const auto executable = communicator.load(
        plan, {.max_bytes = 1 << 16, .proof = ProofPolicy::skip}, diagnostics);
    if (executable == nullptr) return testing::text(diagnostics);
    if (executable->bind(call, diagnostics)) return std::string("it is not refused");
    if (communicator.rank() != 0) return std::string();
    said = diagnostics.all().back().code + ": " + diagnostics.all().back().message;
    return std::string();
  });
  CHECK(ran == "");
  return said;
}

TEST_CASE("calls of the host device that do not go with rows are refused") {
  alignas(16) static float memory[4][256] = {};
  std::vector<CallExternal> externals = {
      {.name = "residual", .type = rows::Type::T, .data = memory[0], .rows = 4, .columns = 64},
      {.name = "weight", .type = rows::Type::f32, .data = memory[1], .columns = 64},
      {.name = "eps", .type = rows::Type::f32, .value = 1e-5f}};
  CollectiveCall call{
      .bytes = 1024, .input = memory[2], .output = memory[3], .externals = externals};
  call.dtype = Dtype::i32;
  CHECK(refused(call) ==
        "row-call: row functions are computed of f32, f16 and bf16, not of 'i32'");
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
  call.externals = externals;
  externals[1].type = rows::Type::e8m0;
  CHECK(refused(call) ==
        "bad-external: rank 0: the external 'weight' is of e8m0: the call needs 1 x 64 f32");
}

}  // namespace
}  // namespace mscclc
