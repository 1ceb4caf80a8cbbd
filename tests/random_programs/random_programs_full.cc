// The recorded runs of random programs: pipelines, packets, plain messages, sums and barriers,
// right or wrong by one, judged by the prover. What it proves is tried on the simulator at many
// sizes and numbers of rounds, under adversarial schedules of several calls, and by the explorer.
// Prints each program that is proved and wrong, with what to do to see it, and counts. With
// `--family sets` it does the same with sets of plans. Needs no files.
//
//   bazel run //tests/random_programs:random_programs_full -- --jobs 2 --programs 100000
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tests/long_run/long_run.h"
#include "tests/random_programs/sets.h"
#include "tests/random_programs/trial.h"

namespace {

using namespace mscclc;
using namespace mscclc::random_programs;

enum Count : size_t { kExplored = kOutcomes, kPipelines };

std::vector<std::string> count_names() {
  std::vector<std::string> names;
  for (size_t i = 0; i < kOutcomes; ++i) names.emplace_back(name(static_cast<Outcome>(i)));
  names.insert(names.end(), {"explored", "pipelines"});
  return names;
}

struct Options {
  uint64_t seed = 1;
  std::string family;  ///< no others
  uint32_t explore_one_in = 4;
  bool show = false;  ///< every program, and what comes of it
  bool text = false;  ///< programs alone: nothing is tried
  TrialOptions trial;
};

void print(const char* what, const Options& options, uint64_t piece, const RandomProgram& random,
           const std::string& why) {
  std::string edges;
  for (const std::string& edge : random.sketch.edges) edges += "# edge: " + edge + '\n';
  fmt::print("# {}: --seed {} --first {} ({}{}), {}\n{}{}\n", what, options.seed, piece,
             random.sketch.family, random.by_json ? ", by JSON" : "", why, edges, random.text());
}

void try_set_piece(const Options& options, uint64_t piece, Counts counts) {
  const RandomSet set = random_set(options.seed, piece);
  const Tried tried = options.text ? Tried{.why = "not tried"} : try_set(set, piece, options.trial);
  if (!options.text) ++counts[static_cast<size_t>(tried.outcome)];
  if (!options.text && !options.show && tried.outcome != Outcome::hole) return;
  fmt::print("# {}: --family sets --seed {} --first {}, {}\n{}\n",
             options.text ? "set" : name(tried.outcome), options.seed, piece, tried.why,
             set.text());
}

void try_piece(const Options& options, uint64_t piece, Counts counts) {
  if (options.family == "sets") return try_set_piece(options, piece, counts);
  const RandomProgram random = random_program(options.seed, piece);
  if (!options.family.empty() && random.sketch.family != options.family) return;
  if (options.text) return print("program", options, piece, random, "not tried");
  std::string error;
  const auto program = load(random, error);
  if (!program) {
    ++counts[static_cast<size_t>(Outcome::malformed)];
    if (options.show) print("malformed", options, piece, random, error);
    return;
  }
  TrialOptions trial = options.trial;
  if (options.explore_one_in == 0 || piece % options.explore_one_in != 0) trial.explorations = 0;
  const Tried tried = try_program(*program, piece, trial);
  ++counts[static_cast<size_t>(tried.outcome)];
  counts[kExplored] += tried.explored;
  counts[kPipelines] += !program->loops.empty();
  if (tried.outcome == Outcome::hole) {
    print("hole", options, piece, random, tried.why);
  } else if (options.show) {
    print(std::string(name(tried.outcome)).c_str(), options, piece, random, tried.why);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("random programs at the edges of the prover's rules, tried where they are proved");
  LongRun long_run;
  Options options;
  uint64_t programs = 100000;
  add_long_run_options(app, long_run);
  app.add_option("--programs", programs, "programs to judge (default 100000)")->type_name("N");
  app.add_option("--seed", options.seed, "which programs (default 1)")->type_name("N");
  app.add_option(
      "--family", options.family,
      "flows, stale, packets, relays, exchanges, sums, locals, tokens, barriers, growing, "
      "symmetry or soups; or sets of plans, which are tried only if they are asked for");
  app.add_option("--runs", options.trial.runs, "on the simulator, of a program that is proved")
      ->type_name("N");
  app.add_option("--explore", options.explore_one_in, "explore one in N (default 4; 0: none)")
      ->type_name("N");
  app.add_option("--states", options.trial.most_states, "that the explorer looks at")
      ->type_name("N");
  app.add_flag("--show", options.show, "print every program, and what comes of it");
  app.add_flag("--text", options.text, "print every program, and try none");
  CLI11_PARSE(app, argc, argv);
  const std::vector<std::string> names = count_names();
  const LongRunResult result = run_pieces(long_run, programs, names, [&]() -> Work {
    return [&](uint64_t piece, Counts counts) { try_piece(options, piece, counts); };
  });
  fmt::print("{}", summary(result, programs, names));
  const bool sound = result.counts[static_cast<size_t>(Outcome::hole)] == 0;
  return sound && result.whole() ? 0 : 1;
}
