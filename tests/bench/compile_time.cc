// How long a program takes from its text to compact plan JSON, in process, beside the figures
// recorded for the peer's Python DSL on the same algorithms (docs/records/performance_host.md cites
// them).
//
//   bazel run -c opt //tests/bench:compile_time                    ports and library, all ranks
//   bazel run -c opt //tests/bench:compile_time -- --quick         the smallest of each
//   bazel run -c opt //tests/bench:compile_time -- 'one block' 16  titles with these words; ranks
//
// Figures are the best CPU time of several runs, as the peer's were taken.
#include <malloc.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/support/read_file.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"

namespace {

using namespace mscclc;

struct Baseline {
  int ranks;
  double seconds;  ///< CPU, in process, compact JSON
};

struct Case {
  std::string_view title, path, parameter;
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<int> ranks;
  std::vector<Baseline> peer;
};

// The peer's column: upstream Python DSL at commit 1f5f065d, CPython 3.11.7, best CPU seconds.
const std::vector<Case> kPorts = {
    {"allreduce, 2-phase all-pairs",
     "tests/bench/mscclpp_allreduce.mscl",
     "R",
     {},
     {8, 16, 32, 64, 128, 256, 1024},
     {{8, 0.0472}, {16, 0.170}, {32, 0.722}, {64, 3.403}, {128, 15.1}}},
    {"allreduce, 2-phase packets",
     "tests/bench/mscclpp_allreduce_pkt.mscl",
     "R",
     {},
     {8, 16, 32, 64, 128},
     {{8, 0.0214}, {16, 0.137}, {32, 1.399}, {64, 11.1}, {128, 110.0}}},
    {"allreduce, packets, one block",
     "tests/bench/mscclpp_allreduce_naive.mscl",
     "R",
     {},
     {8, 16, 32, 64, 128, 256, 1024},
     {{8, 0.0086}, {16, 0.0237}, {32, 0.0891}, {64, 0.426}, {128, 2.550}}},
    {"allgather, all peers",
     "tests/bench/mscclpp_allgather_ring.mscl",
     "R",
     {},
     {8, 16, 32, 64, 128, 256, 1024},
     {{8, 0.0079}, {16, 0.0202}, {32, 0.0682}, {64, 0.278}, {128, 1.365}}},
    {"alltoall through scratch, 2 instances",
     "tests/bench/mscclpp_alltoall.mscl",
     "R",
     {},
     {8, 16, 32, 64, 128, 256},
     {{8, 0.0259}, {16, 0.112}, {32, 0.610}, {64, 2.932}, {128, 15.7}}},
};

const std::vector<Case> kLibrary = {
    {"allreduce_1shot", "plans/allreduce_1shot.mscl", "R", {}, {8}, {}},
    {"allreduce_1shot_ordered", "plans/allreduce_1shot_ordered.mscl", "R", {}, {8}, {}},
    {"allreduce_2shot_packets", "plans/allreduce_2shot_packets.mscl", "R", {}, {8}, {}},
    {"allreduce_2shot", "plans/allreduce_2shot.mscl", "R", {}, {8}, {}},
    {"allreduce_allpairs", "plans/allreduce_allpairs.mscl", "R", {}, {8}, {}},
    {"allreduce_ring", "plans/allreduce_ring.mscl", "R", {}, {8}, {}},
    {"allreduce_halving_doubling", "plans/allreduce_halving_doubling.mscl", "R", {}, {8}, {}},
    {"allreduce_switch", "plans/allreduce_switch.mscl", "R", {}, {8}, {}},
    {"allgather_direct", "plans/allgather_direct.mscl", "R", {}, {8}, {}},
    {"allgather_ring", "plans/allgather_ring.mscl", "R", {}, {8}, {}},
    {"reducescatter_direct", "plans/reducescatter_direct.mscl", "R", {}, {8}, {}},
    {"alltoall_direct", "plans/alltoall_direct.mscl", "R", {}, {8}, {}},
    {"alltoall_pipeline", "plans/alltoall_pipeline.mscl", "R", {}, {8}, {}},
    {"broadcast_direct", "plans/broadcast_direct.mscl", "R", {}, {8}, {}},
    {"broadcast_tree", "plans/broadcast_tree.mscl", "R", {}, {8}, {}},
    {"sendrecv", "plans/sendrecv.mscl", "R", {}, {8}, {}},
    {"allreduce_hier, 8 a node", "plans/allreduce_hier.mscl", "world", {}, {16, 32, 64, 128}, {}},
    {"allreduce_hier_packets, 8 a node",
     "plans/allreduce_hier_packets.mscl",
     "world",
     {},
     {16, 32, 64, 128},
     {}},
    {"allreduce_ring, one instance",
     "tests/bench/ring_one_instance.mscl",
     "R",
     {},
     {8, 64, 128, 1024},
     {}},
};

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Made {
  size_t ops = 0, bytes = 0;
};

/// Compiles once, to JSON in memory (a plan for over 256 ranks: block by block, each dropped when
/// it is complete, as `mscclc compile -o` does). Nothing after printing what is wrong.
std::optional<Made> compile_once(const std::string& text, const Case& c, int ranks) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add(std::string(c.path), text);
  FrontEndOptions options;
  options.defines = c.defines;
  options.defines.emplace_back(c.parameter, std::to_string(ranks));
  const auto program = compile(sources, file, options, {}, diagnostics);
  Made made;
  const Target& target = builtin_targets().front();
  if (program && ranks <= 256) {
    if (const auto plan = write_plan(*program, target, diagnostics)) made.bytes = plan->size();
  } else if (program) {
    const auto count = [&made](std::string_view block) {
      made.bytes += block.size();
      return true;
    };
    if (!write_plan(*program, target, count, diagnostics)) made.bytes = 0;
  }
  if (made.bytes == 0) {
    std::fputs(render_text(diagnostics, sources).c_str(), stderr);
    return std::nullopt;
  }
  for (const Rank& rank : program->ranks) made.ops += rank.ops.size();
  return made;
}

bool measure(const Case& c, int ranks) {
  const std::string text = read_file(std::string(c.path)).value();
  double best = 1e9, total = 0;
  Made made;
  for (int run = 0; run < 400 && (run < 3 || total < 0.5); ++run) {
    const double begin = cpu_seconds();
    const auto once = compile_once(text, c, ranks);
    const double seconds = cpu_seconds() - begin;
    if (!once) return false;
    made = *once;
    best = std::min(best, seconds);
    total += seconds;
    if (total > 20) break;
  }
  const auto peer = std::find_if(c.peer.begin(), c.peer.end(),
                                 [&](const Baseline& p) { return p.ranks == ranks; });
  std::printf("%-38.*s %5d %9zu %12zu %12.1f", static_cast<int>(c.title.size()), c.title.data(),
              ranks, made.ops, made.bytes, best * 1e6);
  if (peer == c.peer.end()) {
    std::printf(" %12s %7s\n", "-", "-");
  } else {
    std::printf(" %12.0f %6.0fx\n", peer->seconds * 1e6, peer->seconds / best);
  }
  std::fflush(stdout);
  return true;
}

/// What the command line asks for.
struct Selection {
  bool quick = false;
  std::string_view words;  ///< in the title
  int ranks = 0;           ///< 0: all

  bool has(const Case& c, int case_ranks) const {
    if (quick && case_ranks != c.ranks.front()) return false;
    if (ranks != 0 && case_ranks != ranks) return false;
    return c.title.find(words) != std::string_view::npos;
  }
};

Selection parse(int argc, char** argv) {
  Selection selection;
  selection.quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  if (argc > 1 && !selection.quick) selection.words = argv[1];
  if (argc > 2) selection.ranks = std::atoi(argv[2]);
  return selection;
}

bool measure_all(const std::vector<Case>& cases, const Selection& selection) {
  bool ok = true;
  for (const Case& c : cases) {
    for (const int ranks : c.ranks) {
      if (selection.has(c, ranks)) ok &= measure(c, ranks);
    }
  }
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  const Selection selection = parse(argc, argv);
  // Runs find the memory of the one before: what is measured is compiling, not the first touch.
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  std::printf("%-38s %5s %9s %12s %12s %12s %7s\n", "program", "ranks", "ops", "JSON bytes",
              "CPU us", "peer us", "ratio");
  bool ok = measure_all(kPorts, selection);
  ok &= measure_all(kLibrary, selection);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("peak memory %.0f MiB\n", static_cast<double>(usage.ru_maxrss) / 1024);
  return ok ? 0 : 1;
}
