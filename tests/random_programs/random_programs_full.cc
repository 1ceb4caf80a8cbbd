// The recorded runs of random programs: pipelines, packets, plain messages, sums and barriers,
// right or wrong by one, and sets of plans, judged by the prover. What it proves is tried on the
// simulator at many sizes and numbers of rounds, under adversarial schedules of several calls, and
// by the explorer. Prints each program that is proved and wrong, with the command that does it
// again, and counts by family. Needs no files.
//
//   bazel run //tests/random_programs:random_programs_full -- --jobs 2 --programs 100000
//   random_programs_full --processes 16 --seconds 86400 --seed 40
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tests/long_run/long_run.h"
#ifdef MSCCLC_PROVER_MUTANTS
#include "passes/prove/model/premise.h"
#else
#include "tests/random_programs/engine_runs.h"
#endif
#include "tests/random_programs/sets.h"
#include "tests/random_programs/trial.h"

namespace {

using namespace mscclc;
using namespace mscclc::random_programs;

/// What is counted: totals, then outcomes family by family, those of sets last.
enum Count : size_t { kExplored = kOutcomes, kPipelines, kTotals };

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  for (const SetFamily& family : set_families()) names.emplace_back(family.name);
  return names;
}

std::vector<std::string> count_names() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kOutcomes; ++i) names.emplace_back(name(static_cast<Outcome>(i)));
  names.insert(names.end(), {"explored", "pipelines"});
  for (const std::string& family : family_names()) {
    for (size_t i = 0; i < kOutcomes; ++i)
      names.push_back(fmt::format("{}_{}", family, name(static_cast<Outcome>(i))));
  }
  return names;
}

struct Options {
  uint64_t seed = 1;
  std::string family;  ///< no others
  uint32_t explore_one_in = 4;
  uint32_t engine_runs = 6;
  bool show = false;  ///< every program, and what comes of it
  bool text = false;  ///< programs alone: nothing is tried
  TrialOptions trial;
};

/// How to do one piece again.
std::string command(const Options& options, uint64_t piece) {
  const std::string family = options.family.empty() ? "" : " --family " + options.family;
  return fmt::format("random_programs_full{} --seed {} --first {} --programs {} --runs {}", family,
                     options.seed, piece, piece + 1, options.trial.runs);
}

void count(const Tried& tried, size_t family, Counts counts) {
  ++counts[static_cast<size_t>(tried.outcome)];
  ++counts[kTotals + family * kOutcomes + static_cast<size_t>(tried.outcome)];
}

void print(const Options& options, uint64_t piece, const Tried& tried, const std::string& kind,
           const std::string& text) {
  if (!options.show && !options.text && tried.outcome != Outcome::hole) return;
  const std::string_view what = options.text ? "not tried" : name(tried.outcome);
  fmt::print("# {}: {} ({}), {}\n{}\n", what, command(options, piece), kind, tried.why, text);
}

void try_set_piece(const Options& options, uint64_t piece, const SetFamily& family, Counts counts) {
  const RandomSet set = family.make(options.seed, piece);
  const Tried tried = options.text ? Tried{} : try_set(set, piece, options.trial);
  const auto index = static_cast<size_t>(&family - set_families().data());
  if (!options.text) count(tried, families().size() + index, counts);
  print(options, piece, tried, std::string(family.name), set.text());
}

void try_program_piece(const Options& options, uint64_t piece, const Family* family,
                       Counts counts) {
  const RandomProgram random = random_program(options.seed, piece, family);
  std::string text = random.text();
  for (const std::string& edge : random.sketch.edges) text = "# edge: " + edge + '\n' + text;
  const std::string kind = random.sketch.family + (random.by_json ? ", by JSON" : "");
  if (options.text) return print(options, piece, {}, kind, text);
  Tried tried;
  const auto program = load(random);
  if (!program) {
    tried.why = program.error().text();
  } else {
    TrialOptions trial = options.trial;
    trial.whole_granules = random.sketch.repeats;
#ifndef MSCCLC_PROVER_MUTANTS
    if (options.engine_runs > 0 && (random.sketch.compiled || piece % 8 == 0)) {
      trial.also = [&](const Program& proved, uint64_t number) {
        return fault_on_engines(proved, number, options.engine_runs);
      };
    }
#endif
    if (options.explore_one_in == 0 || piece % options.explore_one_in != 0) trial.explorations = 0;
    tried = try_program(*program, piece, trial);
    counts[kExplored] += tried.explored;
    counts[kPipelines] += !program->loops.empty();
  }
  const Family* const made = find_family(random.sketch.family);
  count(tried, static_cast<size_t>(made - families().data()), counts);
  print(options, piece, tried, kind, text);
}

/// One piece in six of a run of all families is a set.
void try_piece(const Options& options, uint64_t piece, Counts counts) {
  const SetFamily* set = find_set_family(options.family);
  if (options.family.empty() && piece % 6 == 5)
    set = &set_families()[piece / 6 % set_families().size()];
  if (set != nullptr) return try_set_piece(options, piece, *set, counts);
  try_program_piece(options, piece, find_family(options.family), counts);
}

/// What came of each family.
std::string table(const LongRunResult& result) {
  std::string text = fmt::format("{:<12}", "");
  for (size_t i = 0; i < kOutcomes; ++i)
    text += fmt::format(" {:>14}", name(static_cast<Outcome>(i)));
  text += '\n';
  const std::vector<std::string> names = family_names();
  for (size_t f = 0; f < names.size(); ++f) {
    text += fmt::format("{:<12}", names[f]);
    for (size_t i = 0; i < kOutcomes; ++i)
      text += fmt::format(" {:>14}", result.counts[kTotals + f * kOutcomes + i]);
    text += '\n';
  }
  return text;
}

#ifdef MSCCLC_PROVER_MUTANTS
/// As premises.def lists them.
std::vector<std::string> premise_names() {
  return {
#define PREMISE(name, lemma, says) #name,
#include "passes/prove/model/premises.def"
#undef PREMISE
  };
}

proof::Premise premise(const std::string& name) {
  const std::vector<std::string> names = premise_names();
  return static_cast<proof::Premise>(std::ranges::find(names, name) - names.begin());
}
#endif

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("random programs at the edges of the prover's rules, tried where they are proved");
  LongRun long_run;
  Options options;
  uint64_t programs = 0;
  add_long_run_options(app, long_run);
  app.add_option("--programs", programs,
                 "programs to judge (default: 100000, or as many as --seconds has time for)")
      ->type_name("N");
  app.add_option("--seed", options.seed, "which programs (default 1)")->type_name("N");
  app.add_option("--family", options.family,
                 fmt::format("no other than {}", fmt::join(family_names(), ", ")))
      ->type_name("NAME")
      ->check(CLI::IsMember(family_names()));
  app.add_option("--runs", options.trial.runs, "on the simulator, of a program that is proved")
      ->type_name("N");
  app.add_option("--explore", options.explore_one_in, "explore one in N (default 4; 0: none)")
      ->type_name("N");
  app.add_option("--engines", options.engine_runs,
                 "runs on the engines of GPUs, of what is merged and one in eight of others")
      ->type_name("N");
  app.add_option("--states", options.trial.most_states, "that the explorer looks at")
      ->type_name("N");
#ifdef MSCCLC_PROVER_MUTANTS
  std::vector<std::string> without;
  app.add_option("--without", without, "premises that the prover takes as met")
      ->type_name("NAME")
      ->expected(1, 9)
      ->check(CLI::IsMember(premise_names()));
#endif
  app.add_flag("--show", options.show, "print every program, and what comes of it");
  app.add_flag("--text", options.text, "print every program, and try none");
  CLI11_PARSE(app, argc, argv);
#ifdef MSCCLC_PROVER_MUTANTS
  for (const std::string& name : without) proof::removed_premises.push_back(premise(name));
#endif
  if (programs == 0) programs = long_run.seconds == 0 ? 100000 : uint64_t{1} << 39;
  const std::vector<std::string> names = count_names();
  const LongRunResult result = run_pieces(long_run, programs, names, [&]() -> Work {
    return [&](uint64_t piece, Counts counts) { try_piece(options, piece, counts); };
  });
  fmt::print("{}{}", table(result), summary(result, programs, names));
  const bool sound = result.counts[static_cast<size_t>(Outcome::hole)] == 0;
  return sound && result.whole() ? 0 : 1;
}
