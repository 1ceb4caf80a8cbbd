// How long the prover takes, beside compiling from text to plan JSON: every library program with 8
// ranks, and large ones. docs/records/performance_host.md cites the figures.
//
//   bazel run -c opt //tests/bench:proof_time                          all
//   bazel run -c opt //tests/bench:proof_time -- ring_one_instance     names with these words
//
// CPU time is that of all threads (both placements of the caller's buffers are proved side by
// side), wall time what a user waits; each is the least of several runs.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "ir/support/read_file.h"
#include "passes/prove/prove.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "tests/library/library.h"

namespace {

using namespace mscclc;

struct Case {
  std::string path;
  Defines defines;  ///< the first is the number of ranks
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const LibraryProgram& program : library()) {
    const auto eight = std::ranges::find_if(
        program.worlds, [](const Defines& defines) { return defines[0].second == "8"; });
    if (eight != program.worlds.end()) {
      all.push_back({fmt::format("plans/{}.mscl", program.name), *eight});
    }
  }
  all.push_back({"plans/allreduce_allpairs.mscl", {{"R", "64"}}});
  all.push_back({"plans/allreduce_2shot_packets.mscl", {{"R", "32"}}});
  all.push_back({"plans/allreduce_hier_packets.mscl", {{"world", "32"}}});
  all.push_back({"plans/allreduce_hier_packets.mscl", {{"world", "128"}}});
  all.push_back({"plans/allreduce_hier.mscl", {{"world", "1024"}, {"I", "1"}}});
  all.push_back({"tests/bench/ring_one_instance.mscl", {{"R", "1024"}}});
  return all;
}

double now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Times {
  double cpu = 1e9, wall = 1e9;  ///< seconds
  /// Runs `work`; keeps the least of all runs.
  template <class Work>
  void measure(Work&& work) {
    const double cpu_before = now(CLOCK_PROCESS_CPUTIME_ID), before = now(CLOCK_MONOTONIC);
    work();
    wall = std::min(wall, now(CLOCK_MONOTONIC) - before);
    cpu = std::min(cpu, now(CLOCK_PROCESS_CPUTIME_ID) - cpu_before);
  }
};

/// Text to IR to JSON, which is dropped block by block.
std::optional<Program> compile_to_json(const Case& c, const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.defines = c.defines;
  auto program = compile(sources, sources.add(c.path, text), options, {}, diagnostics);
  const auto drop = [](std::string_view) { return true; };
  if (program && write_plan(*program, builtin_targets().front(), drop, diagnostics)) return program;
  std::fputs(render_text(diagnostics, sources).c_str(), stderr);
  return std::nullopt;
}

/// A written plan, as the prover sees it: false if it is not proved.
bool prove_once(const Program& program) {
  Diagnostics diagnostics;
  return prove(program, diagnostics).proved;
}

bool measure(const Case& c) {
  constexpr double kEnough = 0.5;  // seconds of each
  const std::string text = read_file(c.path).value();
  std::optional<Program> program;
  Times compiling, proving;
  const auto repeat = [](Times& times, auto&& work) {
    const double begin = now(CLOCK_MONOTONIC);
    for (int run = 0; run < 50 && (run < 3 || now(CLOCK_MONOTONIC) - begin < kEnough); ++run) {
      times.measure(work);
    }
  };
  repeat(compiling, [&] {
    program.reset();
    program = compile_to_json(c, text);
  });
  if (!program) return false;
  bool proved = true;
  repeat(proving, [&] { proved &= prove_once(*program); });
  size_t ops = 0;
  for (const Rank& rank : program->ranks) ops += rank.ops.size();
  fmt::print("{:44} {:>5} {:>9} {:>12.2f} {:>12.2f} {:>12.2f}{}\n", c.path, c.defines[0].second,
             ops, compiling.cpu * 1e3, proving.cpu * 1e3, proving.wall * 1e3,
             proved ? "" : "  not proved");
  std::fflush(stdout);
  return proved;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view words = argc > 1 ? argv[1] : "";
  mallopt(M_TRIM_THRESHOLD, 64 << 20);  // what is measured is not the first touch of memory
  fmt::print("{:44} {:>5} {:>9} {:>12} {:>12} {:>12}\n", "program", "ranks", "ops", "compile CPU",
             "proof CPU", "proof wall");
  bool fine = true;
  for (const Case& c : cases()) {
    if (c.path.find(words) != std::string::npos) fine &= measure(c);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("milliseconds; peak memory {} MiB\n", usage.ru_maxrss / 1024);
  return fine ? 0 : 1;
}
