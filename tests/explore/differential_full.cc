// The recorded run: random small plans, right and wrong, judged by the prover, and what it says
// tried on the simulator and compared with the explorer. What it accepts must survive
// adversarial schedules of four calls in both placements, what it refuses must have a witness.
// Prints what disagrees, and counts. Needs no files.
//
//   bazel run //tests/explore:differential_full -- --jobs 16 --seconds 3600
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string_view>

#include "executor/cpu/dice.h"
#include "ir/print/print.h"
#include "passes/prove/prove.h"
#include "tests/explore/explore.h"
#include "tests/explore/mutants.h"
#include "tests/explore/simulator_trial.h"
#include "tests/long_run/long_run.h"

namespace {

using namespace mscclc;

enum Count : size_t {
  kPlans,
  kAccepted,
  kRefused,
  kSameBits,
  kUndecided,
  kExplored,
  kSchedules,
  kAcceptedWrong,
  kWithoutWitness,
  kExplorerDisagrees,
  kReducedDisagrees,
  kSymmetryDisagrees
};
const std::vector<std::string> kNames = {
    "plans",           "accepted",           "refused",           "same_bits",
    "undecided",       "explored",           "schedules",         "accepted_wrong",
    "without_witness", "explorer_disagrees", "reduced_disagrees", "symmetry_disagrees"};

/// Judges plans; plan i is the same in every run with the same seed.
class Trial {
 public:
  Trial(uint64_t seed, uint32_t schedules) : seed_(seed), schedules_(schedules) {}

  void operator()(uint64_t piece, Counts counts) {
    piece_ = piece;
    counts_ = counts;
    Dice dice((seed_ << 40) + piece);
    try_one(mutant(dice).program);
  }

 private:
  static bool may_be_in_place(const Program& program) {
    return program.contract.can_alias() && program.contract.in_place != InPlace::no;
  }

  void disagree(Count count, std::string_view what, const Program& program) {
    ++counts_[count];
    fmt::print("plan {}: {}\n{}\n", piece_, what, print_ir(program));
  }

  void try_one(const Program& program) {
    ++counts_[kPlans];
    Diagnostics diagnostics;
    const bool proved = prove(program, diagnostics).proved;
    if (!proved && diagnostics.all()[0].code == "undecided") {
      ++counts_[kUndecided];
      return;
    }
    Diagnostics ignored;
    if (prove(program, ignored, {.symmetry_from = 0}).proved != proved) {
      disagree(kSymmetryDisagrees, "judged otherwise by ranks that stand for all", program);
    }
    ++counts_[proved ? kAccepted : kRefused];
    const Verdict explored = compare_with_explorer(program, proved);
    proved ? try_to_break(program) : look_for_witness(program, explored);
  }

  /// The first placement that is not right.
  static Exploration explore_all(const Program& program, ExploreOptions options) {
    const Exploration found = explore(program, options);
    if (found.verdict != Verdict::right || !may_be_in_place(program)) return found;
    options.in_place = true;
    Exploration in_place = explore(program, options);
    in_place.same_bits |= found.same_bits;
    return in_place;
  }

  /// A plan that is refused may be right in all interleavings: look_for_witness has the reason.
  Verdict compare_with_explorer(const Program& program, bool proved) {
    const Exploration found = explore_all(program, {.calls = 3});
    if (found.verdict == Verdict::too_large || found.verdict == Verdict::unsupported) {
      return found.verdict;
    }
    ++counts_[kExplored];
    const Exploration reduced = explore_all(program, {.calls = 3, .reduced = true});
    if ((reduced.verdict == Verdict::right) != (found.verdict == Verdict::right)) {
      disagree(kReducedDisagrees, "explored otherwise with fewer schedules", program);
    }
    if (proved && found.verdict != Verdict::right) {
      disagree(kExplorerDisagrees, "accepted, and the explorer refuses", program);
    }
    return found.verdict;
  }

  /// Small messages, copies dealt to threads in other ways, ranks in place and not.
  void explore_sizes(const Program& program) {
    Dice dice(piece_ ^ 0x5157);
    for (int i = 0; i < 2; ++i) {
      ExploreOptions options{
          .bytes = dice.below(100), .dealing = dice.next(), .same_bits = true, .reduced = true};
      for (size_t r = 0; r < program.ranks.size() && may_be_in_place(program); ++r) {
        options.placed.push_back(dice.below(2) == 0);
      }
      const Exploration found = explore(program, options);
      if (found.verdict == Verdict::right || found.verdict == Verdict::too_large) continue;
      disagree(kExplorerDisagrees,
               fmt::format("accepted, and the explorer refuses {} bytes: {}: {}", *options.bytes,
                           name(found.verdict), found.reason),
               program);
    }
  }

  void try_to_break(const Program& program) {
    explore_sizes(program);
    for (const bool in_place : {false, true}) {
      if (in_place && !may_be_in_place(program)) continue;
      counts_[kSchedules] += schedules_;
      if (!goes_wrong(program, in_place, schedules_, 1 + piece_ * schedules_)) continue;
      disagree(kAcceptedWrong, "accepted, and goes wrong", program);
    }
  }

  /// There is a schedule that goes wrong, or the stores of every race store what is there already:
  /// then nothing can go wrong, whatever the schedule.
  void look_for_witness(const Program& program, Verdict explored) {
    const WitnessSearch search{.seeds = 50, .suspects = 100};
    if (goes_wrong(program, false, 24) || find_witness(program, all_suspects(program), search)) {
      if (explored != Verdict::right) return;
      return disagree(kExplorerDisagrees, "goes wrong, and the explorer accepts", program);
    }
    const Exploration found =
        explore_all(program, {.calls = 3, .same_bits = true, .reduced = true});
    if (found.verdict != Verdict::right || !found.same_bits) {
      return disagree(kWithoutWitness, "refused, and no witness found", program);
    }
    ++counts_[kSameBits];
  }

  uint64_t seed_, piece_ = 0;
  uint32_t schedules_;
  Counts counts_{nullptr};
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("random small plans, judged by the prover, the explorer and the simulator");
  LongRun options{.seconds = 60};
  uint64_t seed = 1, plans = uint64_t{1} << 40;
  uint32_t schedules = 200;
  add_long_run_options(app, options);
  app.add_option("--plans", plans, "plans to judge (default: as time allows)")->type_name("N");
  app.add_option("--seed", seed, "which plans (default 1)")->type_name("N");
  app.add_option("--schedules", schedules, "for each plan and placement (default 200)")
      ->type_name("N");
  CLI11_PARSE(app, argc, argv);
  const LongRunResult result =
      run_pieces(options, plans, kNames, [&]() -> Work { return Trial(seed, schedules); });
  fmt::print("{}", summary(result, plans, kNames));
  const auto none = [&](Count count) { return result.counts[count] == 0; };
  return none(kAcceptedWrong) && none(kWithoutWitness) && none(kExplorerDisagrees) &&
                 none(kReducedDisagrees) && none(kSymmetryDisagrees) && result.whole()
             ? 0
             : 1;
}
