// The recorded run of differing_calls_test.cc: ten thousand jobs in which a rank's call differs.
// Prints those of which something comes that should not, with the seed that makes it again, and
// counts.
//
//   bazel run -c opt //tests/collectives:differing_calls_full -- --jobs 2
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tests/collectives/differing_calls.h"
#include "tests/long_run/long_run.h"

namespace {

using namespace mscclc;

enum Count : size_t { kReported, kWrong, kBytesBeyond };
const std::vector<std::string> kNames = {"reported", "wrong", "bytes_beyond"};

void try_piece(uint64_t seed, Counts counts) {
  const testing::DifferingTrial trial = testing::draw_differing(seed);
  const testing::DifferingOutcome outcome = testing::try_differing(trial);
  counts[kBytesBeyond] += outcome.beyond;
  ++counts[outcome.wrong.empty() ? kReported : kWrong];
  if (outcome.wrong.empty()) return;
  fmt::print("seed {}, {}\n{}\n", seed, text(trial), outcome.wrong);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Jobs in which a rank's call differs from the others'");
  LongRun options;
  uint64_t trials = 10'000;
  add_long_run_options(app, options);
  app.add_option("--trials", trials);
  CLI11_PARSE(app, argc, argv);
  if (!enter_repository()) return 2;
  const LongRunResult result = run_pieces(options, trials, kNames, [] { return Work(try_piece); });
  fmt::print("{}", summary(result, trials, kNames));
  const bool fine = result.counts[kWrong] + result.counts[kBytesBeyond] == 0;
  return fine && result.whole() ? 0 : 1;
}
