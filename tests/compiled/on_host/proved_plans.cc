// Tiny and random plans that the prover accepts, as plans with kernels.
#include <algorithm>
#include <set>

#include "ir/print/print.h"
#include "ir/support/sanitized.h"
#include "passes/prove/prove.h"
#include "tests/compiled/on_host/plans.h"
#include "tests/explore/mutants.h"
#include "tests/random_programs/trial.h"

namespace mscclc {
namespace {

constexpr size_t kTiny = testing::if_sanitized(30, 120), kRandom = testing::amount(220, 480, 880);
constexpr uint64_t kSeed = 5;

/// Types of sums that kernels have, in turn; sentinels are of floats alone.
constexpr Dtype kInTurn[] = {Dtype::f32, Dtype::bf16, Dtype::f32, Dtype::f16, Dtype::e4m3};

/// Collects plans that are proved, each once.
class Proved {
 public:
  /// `turn` chooses the type, and the place if there are two.
  void add(const std::string& name, Program program, uint64_t turn) {
    if (!texts_.insert(print_ir(program)).second) return;
    const auto launches = [](const Rank& rank) { return !rank.ops.empty(); };
    if (std::ranges::none_of(program.ranks, launches)) return;
    Diagnostics diagnostics;
    const Proof proof = prove(program, diagnostics);
    if (!proof.proved) return;
    const uint32_t columns = program.contract.columns;
    const uint64_t ranks = program.ranks.size();
    const size_t types = columns == 0 ? std::size(kInTurn) : 4;  // rows are of no fp8
    plans_.push_back(
        {.name = name,
         .program = std::make_shared<const Program>(std::move(program)),
         .dtypes = {kInTurn[turn % types]},
         .rows = columns == 0 ? std::vector<uint64_t>() : std::vector<uint64_t>{5 * ranks, ranks},
         .in_place = proof.in_place && (!proof.out_of_place || turn % 2 == 0)});
  }
  size_t size() const { return plans_.size(); }
  std::vector<KernelPlan> take() { return std::move(plans_); }

 private:
  std::set<std::string> texts_;
  std::vector<KernelPlan> plans_;
};

std::vector<KernelPlan> make_proved_plans() {
  Proved proved;
  Dice dice(kSeed);
  for (uint64_t i = 0; proved.size() < kTiny; ++i) {
    proved.add("tiny " + std::to_string(i), std::move(mutant(dice).program), i);
  }
  for (uint64_t i = 0; proved.size() < kTiny + kRandom; ++i) {
    auto program = random_programs::load(random_programs::random_program(kSeed, i));
    if (program) proved.add("random " + std::to_string(i), std::move(*program), i);
  }
  return proved.take();
}

}  // namespace

const std::vector<KernelPlan>& proved_plans() {
  static const std::vector<KernelPlan> all = make_proved_plans();
  return all;
}

}  // namespace mscclc
