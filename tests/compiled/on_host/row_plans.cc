// Which programs of plans/rows, and of random row functions, are compiled for the host, and as
// what.
#include "tests/rows/row_plans.h"

#include <array>

#include "ir/support/sanitized.h"
#include "tests/compiled/on_host/plans.h"
#include "tests/rows/random_row.h"

namespace mscclc {
namespace {

using testing::RowDefines;

constexpr std::array<Dtype, 3> kTypes = {Dtype::f32, Dtype::bf16, Dtype::f16};

/// Columns, with threads that they fill, or nearly, or not at all; or threads that have many.
struct RowShape {
  uint32_t columns, threads;
};
constexpr std::array<RowShape, 6> kShapes = {
    {{64, 32}, {2048, 384}, {2880, 96}, {5120, 640}, {6144, 256}, {16384, 512}}};

KernelPlan plan_of(const std::string& name, const RowShape& shape, uint32_t ranks, Dtype dtype,
                   const std::string& format = "", const RowDefines& more = {}) {
  RowDefines defines = {{"R", std::to_string(ranks)},
                        {"N", std::to_string(shape.columns)},
                        {"T", std::to_string(shape.threads)},
                        {"B", ranks < 5 ? "2" : "1"}};
  if (!format.empty()) defines.push_back({"F", format});
  defines.insert(defines.end(), more.begin(), more.end());
  auto program = std::make_shared<const Program>(testing::library_row_plan(name, defines));
  // Two shots send sums, and so store them. Functions of sums are no step of other types than T.
  const bool is_fused = !name.ends_with("_2shot") && !name.ends_with("_push_sums") &&
                        !(name.find("norm_quantize_") != name.npos && !name.ends_with("_1shot") &&
                          !testing::is_of_two_ranks(name)) &&
                        format != "LL128";
  // Blocks with unequal numbers of rows, and some with none; ranks, too, which have as many each
  // only in the last.
  const std::vector<uint64_t> rows = {ranks + 1, 1, 3 * ranks};
  return {name + " of " + std::to_string(ranks) + " ranks, " + std::to_string(shape.columns) +
              " columns" + (format.empty() ? "" : " in " + format),
          std::move(program),
          {dtype},
          rows,
          is_fused};
}

/// Sums of plain data in a kernel whose packets are lines: they lie in other steps.
constexpr const char* kLinesElsewhere = R"(program    lines_elsewhere
import     "norms.mscl"
external   residual: row T inout sharded, weight: columns T replicated, eps: scalar f32 replicated
collective allreduce(ranks: 3, chunks: 3, columns: 2880, then: add_rmsnorm, order: ranks)
launch     threads: 96

rank r in 0..3 {
  let others = 0..3 except r
  buffer partial[others]
  buffer rows[others] packets: LL128
  buffer sum[1]
  channel up[p in others] = memory(p)
  channel down[p in others] = memory(p)

  tb 0 {
    for p in others { put up[p].partial[r] <- input[p] }
    signal up[p] for p in others
    wait up[p] for p in others
    reduce sum[0] <- partial[p] for p in 0..r, input[r], partial[p] for p in r + 1 .. 3
    apply add_rmsnorm residual[r], output[r] <- sum[0], residual[r], weight, eps
    for p in others { put_packets down[p].rows[r] <- output[r] }
    for p in others { unpack_packets output[p] <- rows[p] }
  }
}
)";

}  // namespace

std::vector<KernelPlan> fused_row_plans() {
  std::vector<KernelPlan> plans;
  const std::vector<std::string> names = testing::library_row_programs(2);
  for (uint32_t p = 0; p < names.size(); ++p) {
    const uint32_t most = testing::is_of_two_ranks(names[p]) ? 2 : 8;
    for (uint32_t ranks = 2; ranks <= most; ++ranks) {
      plans.push_back(plan_of(names[p], kShapes[(p + ranks) % kShapes.size()], ranks,
                              kTypes[(p / 4 + ranks) % kTypes.size()]));
    }
  }
  const size_t of_library = plans.size();
  for (const char* const name : {"allreduce_norm_1shot", "allreduce_norm_owner"}) {
    plans.push_back(plan_of(name, {2880, 96}, 3, Dtype::bf16, "LL8"));
    plans.push_back(plan_of(name, {2880, 96}, 3, Dtype::bf16, "LL128"));
  }
  plans.push_back(plan_of("allreduce_norm_1shot", {2880, 96}, 6, Dtype::f16, "sentinel"));
  // Slices of which some have no rows.
  plans.push_back(
      plan_of("allreduce_norm_1shot", {2880, 96}, 2, Dtype::bf16, "sentinel", {{"S", "3"}}));
  // Clusters with a warp of which some threads have columns.
  plans.push_back(plan_of("allreduce_norm_1shot", {2880, 384}, 3, Dtype::bf16, "LL16"));
  plans.push_back({"lines elsewhere",
                   std::make_shared<const Program>(testing::row_plan_of(kLinesElsewhere, {})),
                   {Dtype::bf16},
                   {6, 3}});
  if (!testing::kSanitized) return plans;
  // Each program with one number of ranks, and so other columns than the next one's, and all of the
  // other formats: compiling the others takes minutes.
  std::vector<KernelPlan> some;
  for (size_t p = 0; p < plans.size(); ++p) {
    if (p % 6 == 1 || p >= of_library || testing::is_of_two_ranks(plans[p].program->name)) {
      some.push_back(std::move(plans[p]));
    }
  }
  return some;
}

std::vector<KernelPlan> random_row_plans() {
  // Threads that columns fill, or not, or that have several 16 bytes.
  constexpr RowShape kRandomShapes[] = {{64, 32}, {272, 64}, {1040, 32}, {2880, 384}};
  std::vector<KernelPlan> plans;
  Dice dice(16);
  for (uint32_t n = 0; n < testing::amount(12u, 48u, 48u); ++n) {
    const uint32_t ranks = 2 + n % 2;
    const RowShape& shape = kRandomShapes[n / 3 % std::size(kRandomShapes)];
    const std::string text = rows::random_row_program(dice, "random_" + std::to_string(n));
    plans.push_back({text + "of " + std::to_string(ranks) + " ranks",
                     std::make_shared<const Program>(
                         testing::row_plan_of(text, {{"R", std::to_string(ranks)},
                                                     {"N", std::to_string(shape.columns)},
                                                     {"T", std::to_string(shape.threads)}})),
                     {kTypes[n % kTypes.size()]},
                     {5, 1}});
  }
  return plans;
}

std::vector<KernelPlan> uneven_row_plans() {
  std::vector<KernelPlan> plans;
  for (const uint32_t ranks : {2, 3}) {
    std::vector<uint64_t> rows;
    for (uint64_t n = 1; n <= 2 * ranks + 1; ++n) rows.push_back(n);
    for (const std::string& name : testing::uneven_row_programs()) {
      auto program = testing::row_plan(name, {{"R", std::to_string(ranks)}});
      plans.push_back({.name = name + " of " + std::to_string(ranks) + " ranks",
                       .program = std::make_shared<const Program>(std::move(program)),
                       .dtypes = {Dtype::f32, Dtype::bf16},
                       .rows = rows});
    }
  }
  return plans;
}

}  // namespace mscclc
