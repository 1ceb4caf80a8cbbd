// Programs of the library on the runtime: ranks as threads and as processes, checked against the
// collective's definition.
#include "tests/library/library.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "ir/support/sanitized.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::run_processes;
using testing::run_threads;

// Sanitizers look at code: more ranks and larger messages go through the same, and the prover has
// tests of its own.
constexpr uint32_t kMaxRanks = testing::if_sanitized(4, 8);

/// The longest chunks are those of few ranks, which so have the largest messages.
uint64_t most_bytes(uint32_t ranks) {
  return testing::if_sanitized(64 << 10, ranks > 4 ? 128 << 10 : 1 << 20);
}

/// The ways in which ranks run a program. With sanitizers, and if they are many ranks, each world
/// goes one of them, in turn, as a program's code is that of many others.
enum Way : uint32_t { kThreads, kThreadsNoCopies, kProcesses, kProcessesNoCopies, kWays };

/// What every rank does: a few sizes, types, reductions and placements of one loaded plan.
struct LibraryCalls {
  std::shared_ptr<const Program> plan;
  std::vector<RunSpec> specs;
  bool zero_copy = false;
  Dtype dtype = Dtype::f32;
  std::optional<ProofPolicy> proof = {};

  std::string operator()(Communicator& communicator) const {
    Diagnostics diagnostics;
    const uint32_t rank = communicator.rank();
    RankRunner runner(communicator, plan,
                      {.load = {.max_bytes = most_bytes(communicator.size()),
                                .dtype = dtype,
                                .zero_copy = zero_copy,
                                .proof = proof},
                       .input_offset = 16 * rank,
                       .output_offset = 48 * (rank % 3)});
    if (!runner.load(diagnostics)) return testing::text(diagnostics);
    for (const RunSpec& spec : specs) {
      const RankResult result = runner.run(spec, diagnostics);
      if (result.run.status != RunStatus::right) {
        return fmt::format("{}: {}", text(spec), testing::text(diagnostics));
      }
    }
    return "";
  }
};

/// Sizes that go up and down, in turn with types and reductions.
std::vector<RunSpec> specs_for(const CompiledWorld& world, uint32_t ranks, Dtype& width) {
  const std::vector<Dtype> dtypes = world.dtypes();
  const std::vector<ReduceOp> ops = world.reductions();
  const std::vector<bool> in_place = world.in_place();
  const std::vector<RunSize>& sizes = run_sizes();
  width = std::find(dtypes.begin(), dtypes.end(), Dtype::f32) != dtypes.end() ? Dtype::f32
                                                                              : dtypes.front();
  std::vector<RunSpec> specs;
  for (size_t i = 0; i < 2 * sizes.size(); ++i) {
    RunSpec spec;
    spec.dtype = info(dtypes[i % dtypes.size()]).bytes == info(width).bytes
                     ? dtypes[i % dtypes.size()]
                     : width;
    spec.bytes = world.bytes(sizes[(i * 5) % sizes.size()], spec.dtype);
    if (spec.bytes > most_bytes(ranks)) continue;
    if (!ops.empty()) spec.op = ops[i % ops.size()];
    spec.in_place = in_place[i % in_place.size()];
    spec.iterations = 3;
    specs.push_back(spec);
  }
  return specs;
}

/// A world of the library, and what its ranks call.
struct LibraryWorld {
  std::string name;
  uint32_t ranks = 0;
  LibraryCalls calls;
};

/// How many ranks a world has: 0 if nothing says so.
uint32_t ranks_of(const Defines& defines) {
  for (const auto& [name, value] : defines) {
    if (name == "R" || name == "world") return static_cast<uint32_t>(std::stoul(value));
  }
  return 0;
}

/// The worlds that are run, compiled once for all ways.
const std::vector<LibraryWorld>& library_worlds() {
  static std::vector<LibraryWorld> all;
  if (!all.empty()) return all;
  std::vector<LibraryWorld> worlds;
  for (const LibraryProgram& program : library()) {
    for (const Defines& defines : program.worlds) {
      const uint32_t ranks = ranks_of(defines);
      if ((ranks != 2 && ranks != 4 && ranks != 8) || ranks > kMaxRanks) continue;
      const CompiledWorld world(program.name, defines);
      INFO(program.name << " " << text(defines));
      REQUIRE(world.errors() == "");
      REQUIRE(world.program().ranks.size() == ranks);
      LibraryCalls calls{std::make_shared<const Program>(world.program()), {}};
      calls.specs = specs_for(world, ranks, calls.dtype);
      worlds.push_back(
          {fmt::format("{} {}", program.name, text(defines)), ranks, std::move(calls)});
    }
  }
  all = std::move(worlds);
  return all;
}

void run_library(Way way) {
  const bool processes = way == kProcesses || way == kProcessesNoCopies;
  const std::vector<LibraryWorld>& worlds = library_worlds();
  for (size_t i = 0; i < worlds.size(); ++i) {
    const bool one_way = testing::kSanitized || (worlds[i].ranks > 4 && !testing::kThorough);
    if (one_way && i % kWays != way) continue;
    INFO(worlds[i].name);
    LibraryCalls calls = worlds[i].calls;
    calls.zero_copy = way == kThreadsNoCopies || way == kProcessesNoCopies;
    // Every size comes once; more types and reductions only as threads.
    if (way != kThreads) calls.specs.resize(std::min(calls.specs.size(), run_sizes().size()));
    const bool proves = way == kThreads && !testing::kSanitized;  // once is enough
    if (!proves) calls.proof = ProofPolicy::skip;
    const uint32_t ranks = worlds[i].ranks;
    CHECK((processes ? run_processes(ranks, calls) : run_threads(ranks, calls)) == "");
  }
}

TEST_CASE("the library as threads") { run_library(kThreads); }
TEST_CASE("the library as threads without copies") { run_library(kThreadsNoCopies); }
TEST_CASE("the library as processes") { run_library(kProcesses); }
TEST_CASE("the library as processes without copies") { run_library(kProcessesNoCopies); }

}  // namespace
}  // namespace mscclc
