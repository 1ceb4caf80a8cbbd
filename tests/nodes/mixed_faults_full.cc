// The recorded run of mixed_faults_test.cc: a thousand jobs at which something goes wrong. Prints
// those of which something comes that should not, with the seed that makes it again, and counts.
//
//   bazel run //tests/nodes:mixed_faults_full -- --jobs 2
//   bazel run //tests/nodes:mixed_faults_full -- --jobs 2 --verbs LIBRARY
//   bazel run //tests/nodes:mixed_faults_full -- --jobs 8 --trials 200 --pauses
//
// --pauses: nothing fails, but ranks are stopped for up to eight seconds, with limits of 60; each
// job must end right. LIBRARY: the fake libibverbs,
// .../bazel-bin/tests/fakes/verbs/libfake_verbs.so.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "tests/long_run/long_run.h"
#include "tests/nodes/mixed_faults.h"

namespace {

using namespace mscclc;

enum Count : size_t { kRight, kEnded, kHung, kLeaked, kWrong, kLeftOut, kOther, kPaused, kPauses };
const std::vector<std::string> kNames = {"right", "ended_with_errors", "hung",          "leaked",
                                         "wrong", "left_out",          "named_another", "paused",
                                         "pauses"};

void try_piece(uint64_t seed, bool verbs, bool pauses, Counts counts) {
  const testing::FaultTrial trial =
      pauses ? testing::draw_pauses(seed, verbs) : testing::draw_faults(seed, verbs);
  const testing::FaultOutcome outcome = testing::try_faults(trial);
  if (!outcome.left_out.empty()) {
    ++counts[kLeftOut];
    return;
  }
  ++counts[outcome.right ? kRight : kEnded];
  counts[kHung] += outcome.hung ? 1 : 0;
  counts[kLeaked] += outcome.leaked;
  counts[kPaused] += outcome.pauses > 0 ? 1 : 0;
  counts[kPauses] += outcome.pauses;
  counts[kOther] += outcome.not_the_victim;
  if (outcome.wrong.empty()) return;
  ++counts[kWrong];
  fmt::print("seed {}, {}\n{}\n", seed, text(trial), outcome.wrong);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Jobs of nodes with mixed faults: kills, cuts, lost packets");
  LongRun options;
  uint64_t trials = 1000;
  add_long_run_options(app, options);
  app.add_option("--trials", trials);
  bool pauses = false;
  app.add_flag("--pauses", pauses);
  std::string library;
  app.add_option("--verbs", library);
  CLI11_PARSE(app, argc, argv);
  if (!enter_repository()) return 2;
  if (!library.empty()) ::setenv("MSCCLC_IBV_SO", library.c_str(), 1);
  const auto work = [verbs = !library.empty(), pauses] {
    return Work([=](uint64_t seed, Counts counts) { try_piece(seed, verbs, pauses, counts); });
  };
  const LongRunResult result = run_pieces(options, trials, kNames, work);
  fmt::print("{}", summary(result, trials, kNames));
  const bool fine = result.counts[kHung] + result.counts[kLeaked] + result.counts[kWrong] == 0;
  return fine && result.whole() ? 0 : 1;
}
