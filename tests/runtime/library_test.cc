// Programs of the library on the runtime: ranks as threads and as processes, checked against the
// collective's definition.
#include "tests/library/library.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::run_processes;
using testing::run_threads;

// Sanitizers look at code: more ranks and larger messages go through the same, and the prover has
// tests of its own.
#ifdef MSCCLC_SANITIZED
constexpr bool kSanitized = true;
constexpr uint32_t kMostRanks = 4;
constexpr uint64_t kMostBytes = 64 << 10;
#else
constexpr bool kSanitized = false;
constexpr uint32_t kMostRanks = 8;
constexpr uint64_t kMostBytes = 1 << 20;
#endif

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
    RankRunner runner(
        communicator, plan,
        {.load = {.max_bytes = kMostBytes, .dtype = dtype, .zero_copy = zero_copy, .proof = proof},
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
std::vector<RunSpec> specs_for(const CompiledWorld& world, Dtype& width) {
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
    if (spec.bytes > kMostBytes) continue;
    if (!ops.empty()) spec.op = ops[i % ops.size()];
    spec.in_place = in_place[i % in_place.size()];
    spec.iterations = 3;
    specs.push_back(spec);
  }
  return specs;
}

void run_library(bool processes, bool zero_copy) {
  for (const LibraryProgram& program : library()) {
    for (const Defines& defines : program.worlds) {
      const CompiledWorld world(program.name, defines);
      INFO(program.name << " " << text(defines));
      REQUIRE(world.errors() == "");
      const auto ranks = static_cast<uint32_t>(world.program().ranks.size());
      if ((ranks != 2 && ranks != 4 && ranks != 8) || ranks > kMostRanks) continue;
      LibraryCalls calls{std::make_shared<const Program>(world.program()), {}, zero_copy};
      calls.specs = specs_for(world, calls.dtype);
      const bool proves = !processes && !zero_copy && !kSanitized;  // once is enough
      if (!proves) calls.proof = ProofPolicy::skip;
      CHECK((processes ? run_processes(ranks, calls) : run_threads(ranks, calls)) == "");
    }
  }
}

TEST_CASE("the library as threads") { run_library(false, false); }
TEST_CASE("the library as threads without copies") { run_library(false, true); }
TEST_CASE("the library as processes") { run_library(true, false); }
TEST_CASE("the library as processes without copies") { run_library(true, true); }

}  // namespace
}  // namespace mscclc
