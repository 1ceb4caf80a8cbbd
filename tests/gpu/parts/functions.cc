// Plans with row functions (plans/rows, and random functions) by compiled kernels, against the
// host's definition of the functions (executor/rows): numbers of rows that no number of blocks
// divides, slices, and more blocks than a GPU has multiprocessors.
#include <fmt/format.h>

#include <cstdio>

#include "tests/gpu/cases.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/stage/graphs.h"
#include "tests/rows/random_row.h"
#include "tests/rows/row_plans.h"

namespace mscclc::testing {
namespace {

constexpr uint32_t kColumns = 1024;
constexpr uint64_t kRows[] = {1, 7, 133, 601};  ///< of an output
constexpr uint32_t kCalls = 3;
constexpr uint32_t kRandom = 24;

struct RowsPlan {
  std::string name;
  RowDefines defines;
  std::string text = {};  ///< of what is not in plans/rows
};

/// Each program once, and one with slices and with many blocks, as the library may come to have it;
/// and random ones.
std::vector<RowsPlan> row_plans(const StageOptions& options) {
  const std::string ranks = std::to_string(options.ranks), columns = std::to_string(kColumns);
  std::vector<RowsPlan> plans;
  const auto add = [&](const std::string& name, const RowDefines& more,
                       const std::string& text = "") {
    RowsPlan plan{name, {{"R", ranks}, {"N", columns}}, text};
    plan.defines.insert(plan.defines.end(), more.begin(), more.end());
    if (name.find(options.filter) != std::string::npos) plans.push_back(std::move(plan));
  };
  for (const std::string& name : library_row_programs(options.ranks)) {
    add(name, {{"B", "16"}, {"T", "128"}});
  }
  const std::string sliced = "allreduce_norm_1shot";
  for (const char* const slices : {"2", "4"}) {
    add(sliced, {{"B", "6"}, {"T", "128"}, {"S", slices}});
    add(sliced, {{"B", "256"}, {"T", "128"}, {"S", slices}, {"F", "sentinel"}});
  }
  add(sliced, {{"B", "512"}, {"T", "64"}, {"F", "sentinel"}});
  Dice dice(17);
  for (uint32_t n = 0; n < kRandom; ++n) {
    const std::string name = fmt::format("random_{}", n);
    const std::string text = rows::random_row_program(dice, name);
    add(name, {{"B", "16"}, {"T", "128"}}, text);
  }
  return plans;
}

std::string title(const RowsPlan& plan) {
  return fmt::format("{} {}", plan.name, mscclc::text(plan.defines));
}

/// One rank's part of a plan with rows of a type.
class RowsRun {
 public:
  RowsRun(Communicator& communicator, std::shared_ptr<const Program> plan, Dtype dtype)
      : communicator_(communicator), plan_(std::move(plan)), dtype_(dtype) {}

  bool run(StreamHandle stream, Diagnostics& diagnostics) {
    const bool scatters = plan_->contract.kind == CollectiveKind::reducescatter;
    const uint64_t row = kColumns * info(dtype_).bytes * (scatters ? plan_->ranks.size() : 1);
    const uint64_t most = row * kRows[std::size(kRows) - 1];
    const auto executable = communicator_.load(
        plan_, {.max_bytes = most, .dtype = dtype_, .proof = ProofPolicy::skip}, diagnostics);
    if (executable == nullptr) return false;
    const auto memory = CallerMemory::make(communicator_, *plan_, {.max_bytes = most}, diagnostics);
    if (memory == nullptr) return false;
    for (const uint64_t rows : kRows) {
      const RunSpec spec{.bytes = row * rows, .dtype = dtype_};
      CheckedCall call(communicator_, *executable, *memory, spec);
      if (!call.bind(diagnostics) || !repeat(call, stream, diagnostics)) {
        diagnostics.error("rows", {}, mscclc::text(spec));
        return false;
      }
    }
    return true;
  }

 private:
  bool repeat(CheckedCall& call, StreamHandle stream, Diagnostics& diagnostics) {
    for (uint32_t i = 0; i < kCalls; ++i) {
      if (!call.fill(i, diagnostics) || !call.launch(stream, diagnostics) ||
          !communicator_.synchronize(stream, diagnostics) || !call.compare(i, diagnostics)) {
        return false;
      }
    }
    call.report(diagnostics);
    return call.wrong() == 0;
  }

  Communicator& communicator_;
  const std::shared_ptr<const Program> plan_;
  const Dtype dtype_;
};

std::string run_plan(Communicator& communicator, const RowsPlan& of) {
  Diagnostics diagnostics;
  const Stream stream(communicator.device(), diagnostics);
  if (stream.get() == nullptr) return text(diagnostics);
  const auto plan = std::make_shared<const Program>(
      of.text.empty() ? library_row_plan(of.name, of.defines) : row_plan_of(of.text, of.defines));
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f32}) {
    if (!RowsRun(communicator, plan, dtype).run(stream.get(), diagnostics)) {
      return text(diagnostics);
    }
  }
  if (communicator.rank() == 0) {
    fmt::print("{}: {} numbers of rows of three types, right\n", title(of), std::size(kRows));
    std::fflush(stdout);
  }
  return "";
}

}  // namespace

bool check_row_functions(const StageOptions& options) {
  const std::vector<RowsPlan> plans = row_plans(options);
  const Tally tally = run_series(
      options, plans.size(),
      [&](Communicator& communicator, size_t i) { return run_plan(communicator, plans[i]); },
      [&](size_t i, const std::string& fault) {
        fmt::print("{}: FAILED\n{}\n{}", title(plans[i]), fault, plans[i].text);
        std::fflush(stdout);
      });
  fmt::print("row functions at {}: {} right, {} wrong{}\n", text(options), tally.right, tally.wrong,
             left_out(tally.late));
  return tally.wrong == 0 && tally.right > 0;
}

}  // namespace mscclc::testing
