// The recorded run: mutants of every library program at 2 to 4 ranks, judged. Prints every mutant
// that is accepted, and a table of what became of each kind of change.
//
//   bazel run //tests/mutate:mutate_full -- --jobs 16 --seconds 3600 --mutants 20000
//
// A piece of the work is some mutants of one world. Reads plans/*.mscl.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tests/long_run/long_run.h"
#include "tests/mutate/judge.h"
#include "tests/mutate/mutate.h"
#include "tests/mutate/worlds.h"

namespace {

using namespace mscclc;

constexpr uint64_t kMutantsOfPiece = 16;

size_t place(size_t mutation, size_t judgement) { return mutation * kJudgements + judgement; }

/// Judges pieces: the p-th has mutants of world p % worlds, those of a world in the order of its
/// mutator, so that no two of a run are alike.
class Judge {
 public:
  Judge(const std::vector<MutateWorld>& worlds, uint64_t seed, const Trial& trial)
      : worlds_(worlds), trial_(trial) {
    for (size_t w = 0; w < worlds.size(); ++w) {
      mutators_.push_back(std::make_unique<Mutator>(worlds[w].program, seed * 1000 + w));
    }
    made_.assign(worlds.size(), 0);
  }

  void operator()(uint64_t piece, Counts counts) {
    const size_t w = piece % worlds_.size();
    const uint64_t begin = piece / worlds_.size() * kMutantsOfPiece;
    for (; made_[w] < begin; ++made_[w]) mutators_[w]->next();
    for (; made_[w] < begin + kMutantsOfPiece; ++made_[w]) {
      const auto mutant = mutators_[w]->next();
      if (!mutant) return;
      const Judged judged = judge(mutant->program, trial_);
      ++counts[place(static_cast<size_t>(mutant->mutation), static_cast<size_t>(judged.judgement))];
      if (judged.judgement <= Judgement::refused) continue;
      fmt::print("{}: {}: {}: {}\n", name(judged.judgement), worlds_[w].name, mutant->what,
                 judged.reason.empty() ? "-" : judged.reason);
    }
  }

 private:
  const std::vector<MutateWorld>& worlds_;
  Trial trial_;
  std::vector<std::unique_ptr<Mutator>> mutators_;
  std::vector<uint64_t> made_;
};

void print_row(std::string_view name, const uint64_t* row) {
  uint64_t all = 0;
  for (size_t j = 0; j < kJudgements; ++j) all += row[j];
  fmt::print("| {:13} | {:7} |", name, all);
  for (size_t j = 0; j < kJudgements; ++j) fmt::print(" {:9} |", row[j]);
  fmt::print("\n");
}

std::vector<uint64_t> print_table(const std::vector<uint64_t>& counts) {
  fmt::print("| {:13} | {:>7} |", "", "mutants");
  for (size_t j = 0; j < kJudgements; ++j) {
    fmt::print(" {:>9} |", name(static_cast<Judgement>(j)));
  }
  fmt::print("\n|---|{}\n", [] {
    std::string columns;
    for (size_t j = 0; j <= kJudgements; ++j) columns += "--:|";
    return columns;
  }());
  std::vector<uint64_t> total(kJudgements, 0);
  for (size_t m = 0; m < kMutations; ++m) {
    print_row(name(static_cast<Mutation>(m)), &counts[place(m, 0)]);
    for (size_t j = 0; j < kJudgements; ++j) total[j] += counts[place(m, j)];
  }
  print_row("all", total.data());
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("mutants of the library, judged by the prover, the explorer and the simulator");
  LongRun options;
  Trial trial;
  uint64_t mutants = 10000, seed = 1;
  add_long_run_options(app, options);
  app.add_option("--mutants", mutants, "about how many (default 10000)")->type_name("N");
  app.add_option("--seed", seed, "which mutants (default 1)")->type_name("N");
  app.add_option("--schedules", trial.seeds, "for each placement and size of an accepted mutant")
      ->type_name("N");
  app.add_option("--states", trial.most_states, "that the explorer looks at")->type_name("N");
  CLI11_PARSE(app, argc, argv);
  if (!enter_repository()) return 2;
  const std::vector<MutateWorld> worlds = mutate_worlds();
  const uint64_t of_round = worlds.size() * kMutantsOfPiece;
  const uint64_t pieces = (mutants + of_round - 1) / of_round * worlds.size();
  std::vector<std::string> names;
  for (size_t m = 0; m < kMutations; ++m) {
    for (size_t j = 0; j < kJudgements; ++j) {
      names.push_back(
          fmt::format("{}.{}", name(static_cast<Mutation>(m)), name(static_cast<Judgement>(j))));
    }
  }
  const LongRunResult result = run_pieces(options, pieces, names, [&]() -> Work {
    return [judge = std::make_shared<Judge>(worlds, seed, trial)](uint64_t piece, Counts counts) {
      (*judge)(piece, counts);
    };
  });
  fmt::print("{}", summary(result, pieces, names));
  const std::vector<uint64_t> total = print_table(result.counts);
  return total[static_cast<size_t>(Judgement::wrong)] == 0 && result.whole() ? 0 : 1;
}
