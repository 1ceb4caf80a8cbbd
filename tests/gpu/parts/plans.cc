// Plans on GPUs against the collective's definition, which is exact: the data of test calls is made
// so that sums in any order have the same bits (executor/oracle/values.h).
#include <fmt/format.h>

#include <cstdio>

#include "tests/gpu/cases.h"
#include "tests/gpu/parts.h"
#include "tests/gpu/stage/graphs.h"

namespace mscclc::testing {
namespace {

constexpr uint32_t kIterations = 3;

struct Counts {
  uint64_t runs = 0, calls = 0;
};

/// One rank's part of a case.
struct CaseRun {
  const StageOptions& options;
  Communicator& communicator;
  Graphs& graphs;
  StreamHandle stream;
  Diagnostics diagnostics;
  Counts counts;

  bool load(const Case& c, bool zero_copy, uint32_t width);
  bool run(LoadedCase& loaded, const RunSpec& spec);
};

// Eager calls, or replays of a graph that holds one call; new data each time.
bool CaseRun::run(LoadedCase& loaded, const RunSpec& spec) {
  const auto call = loaded.call_beside(spec, diagnostics);
  if (call == nullptr) return false;
  std::unique_ptr<Graph> graph;
  if (options.graph) {
    graph = graphs.capture(
        stream, [&](Diagnostics& d) { return call->launch(stream, d); }, diagnostics);
    if (graph == nullptr) return false;
  }
  for (uint32_t i = 0; i < kIterations; ++i) {
    if (!call->fill(i, diagnostics) ||
        !(graph ? graph->launch(stream, diagnostics) : call->launch(stream, diagnostics)) ||
        !communicator.synchronize(stream, diagnostics) || !call->compare(i, diagnostics)) {
      return false;
    }
  }
  ++counts.runs;
  counts.calls += kIterations;
  call->report(diagnostics);
  return call->wrong() == 0;
}

bool CaseRun::load(const Case& c, bool zero_copy, uint32_t width) {
  const std::vector<Dtype> dtypes = c.dtypes_of(width);
  const auto loaded = LoadedCase::load(
      communicator, c, {.max_bytes = options.most, .dtype = dtypes.front(), .zero_copy = zero_copy},
      diagnostics);
  if (loaded == nullptr) return false;
  size_t op = 0;
  for (const Dtype dtype : dtypes) {
    for (const bool in_place : c.in_place) {
      for (const RunSize& size : run_sizes()) {
        RunSpec spec{.bytes = c.bytes(size, dtype), .dtype = dtype, .in_place = in_place};
        if (spec.bytes > options.most || !c.takes(spec.bytes, dtype)) continue;
        spec.op = c.ops[op++ % c.ops.size()];
        if (run(*loaded, spec)) continue;
        diagnostics.error("plan", {},
                          mscclc::text(spec) + (zero_copy ? ", zero copy" : ", staged"));
        return false;
      }
    }
  }
  return true;
}

std::string run_case(const StageOptions& options, Communicator& communicator, const Case& c) {
  Diagnostics diagnostics;
  const Stream stream(communicator.device(), diagnostics);
  const auto graphs = make_graphs(options, communicator, diagnostics);
  if (stream.get() == nullptr || graphs == nullptr) return text(diagnostics);
  CaseRun run{options, communicator, *graphs, stream.get(), {}, {}};
  for (const bool zero_copy : {false, true}) {
    for (const uint32_t width : c.widths()) {
      if (!run.load(c, zero_copy, width)) return text(run.diagnostics);
    }
  }
  if (communicator.rank() == 0) {
    fmt::print("{}: {} runs, {} calls, right\n", c.name, run.counts.runs, run.counts.calls);
    std::fflush(stdout);
  }
  return "";
}

}  // namespace

bool check_plans(const StageOptions& options) {
  std::vector<std::string> refused;
  const std::vector<Case> cases = all_cases(options, refused);
  for (const std::string& name : refused) {
    fmt::print("{}: left out, the prover refuses it\n", name);
  }
  std::fflush(stdout);  // before ranks are forked
  const Tally tally = run_cases(options, cases, [&](Communicator& communicator, const Case& c) {
    return run_case(options, communicator, c);
  });
  fmt::print("plans at {}, {}: {} right, {} wrong{}\n", text(options),
             options.graph ? "in graphs" : "eager", tally.right, tally.wrong, left_out(tally.late));
  return tally.wrong == 0 && tally.right > 0;
}

}  // namespace mscclc::testing
