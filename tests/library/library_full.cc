// The whole product that library_test samples: programs x worlds x data types x in place or not x
// sizes x schedule seeds (the reduction goes round with the seed). Takes hours; run by hand:
//
//   bazel run //tests/library:library_full -- --jobs 16 --seconds 3600
//   bazel run //tests/library:library_full -- --jobs 16 --only 'allreduce_1shot R=16'
//
// A piece of the work is a world with its data type, placement and size. Reads plans/*.mscl.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "tests/library/library.h"
#include "tests/long_run/long_run.h"

namespace {

using namespace mscclc;

enum Count : size_t { kRuns, kWrong };
const std::vector<std::string> kNames = {"runs", "wrong"};

/// One piece of the work, and the program and world that it is of.
struct Piece {
  const LibraryProgram* entry;
  const Defines* defines;
  Dtype dtype;
  bool in_place;
  RunSize size;
};

/// Those of worlds that have `only` in their "name defines", one world after the other. Prints
/// worlds that do not compile.
std::optional<std::vector<Piece>> all_pieces(const std::string& only) {
  std::vector<Piece> pieces;
  bool compiled = true;
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : entry.worlds) {
      if (fmt::format("{} {}", entry.name, text(defines)).find(only) == std::string::npos) continue;
      const CompiledWorld world(entry.name, defines);
      if (!world.errors().empty()) {
        fmt::print("{} {}: {}", entry.name, text(defines), world.errors());
        compiled = false;
        continue;
      }
      for (const Dtype dtype : world.dtypes()) {
        for (const bool in_place : world.in_place()) {
          for (const RunSize& size : run_sizes()) {
            pieces.push_back({&entry, &defines, dtype, in_place, size});
          }
        }
      }
    }
  }
  return compiled ? std::optional(pieces) : std::nullopt;
}

/// Runs pieces; keeps the world of the last one compiled.
class Runner {
 public:
  void run(const Piece& piece, Counts counts) {
    if (defines_ != piece.defines) {
      world_ = std::make_unique<CompiledWorld>(piece.entry->name, *piece.defines);
      defines_ = piece.defines;
    }
    RunSpec spec{.bytes = world_->bytes(piece.size, piece.dtype),
                 .dtype = piece.dtype,
                 .in_place = piece.in_place,
                 .iterations = kCalls};
    const std::vector<ReduceOp> ops = world_->reductions();
    for (spec.schedule_seed = 0; spec.schedule_seed < kScheduleSeeds; ++spec.schedule_seed) {
      spec.op = ops[spec.schedule_seed % ops.size()];
      const std::string fault = world_->run(spec);
      ++counts[kRuns];
      if (fault.empty()) continue;
      ++counts[kWrong];
      fmt::print("{} {}: {}", piece.entry->name, text(*piece.defines), fault);
    }
  }

 private:
  const Defines* defines_ = nullptr;
  std::unique_ptr<CompiledWorld> world_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("the library on the simulator: all sizes, types, placements and schedules");
  LongRun options;
  add_long_run_options(app, options);
  std::string only;
  app.add_option("--only", only, "Worlds with this in their name: 'allreduce_1shot R=16'");
  CLI11_PARSE(app, argc, argv);
  if (!enter_repository()) return 2;
  const auto pieces = all_pieces(only);
  if (!pieces) return 1;
  const LongRunResult result = run_pieces(options, pieces->size(), kNames, [&]() -> Work {
    return [&, runner = std::make_shared<Runner>()](uint64_t i, Counts counts) {
      runner->run((*pieces)[i], counts);
    };
  });
  fmt::print("{}", summary(result, pieces->size(), kNames));
  return exit_status(result, kWrong);
}
