// Kernels of programs with row functions take calls of every size: nothing else runs them. Their
// steps are those of the code, of which some have nothing to do where ranks or blocks have no rows.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "executor/compiled/fused_rows.h"
#include "executor/compiled/shape.h"
#include "executor/lower.h"
#include "executor/rows/externals.h"
#include "tests/rows/row_plans.h"

namespace mscclc {
namespace {

/// An address for each of so many things, all far apart.
uint8_t* place(size_t i) { return reinterpret_cast<uint8_t*>((i + 1) << 40); }

/// A rank's programs for a call of so many rows, where memory is laid out for `most` rows of f32.
bool pack(const Program& program, uint32_t rank, uint64_t rows, uint64_t most, Dtype dtype,
          BlockPrograms& programs) {
  Diagnostics diagnostics;
  RankProgram lowered;
  if (!lower_rank(program, rank, lowered, diagnostics, compiled_row_steps(program))) return false;
  const uint32_t granule = program.granule(dtype), widest = program.granule(Dtype::f32);
  lowered.align = granule;
  const Chunking chunking(program.contract, rows * granule, granule);
  const Chunking capacity(program.contract, most * widest, widest);
  if (!fit_rank_to_size(lowered, program, rank, chunking, capacity, diagnostics)) return false;
  std::vector<device::ChannelEnd> ends;
  for (const Channel& c : program.ranks[rank].channels) {
    ends.push_back({nullptr, nullptr, 0, c.kind == ChannelKind::port ? 1u : 0u});
  }
  std::vector<device::BaseAddress> bases;
  for (const device::Base& base : lowered.bases) {
    bases.push_back({place(bases.size()), base.copy_stride, base.copies});
  }
  std::vector<BlockPrograms::Places::External> externals;
  for (const rows::ExternalLayout& layout :
       rows::lay_out_externals(program, rank, chunking, dtype)) {
    externals.push_back({.address = place(bases.size() + externals.size()),
                         .first_row = layout.first_row,
                         .row_bytes = layout.shared ? 0 : layout.row_bytes});
  }
  return programs.pack(lowered, {.bases = bases, .ends = ends, .externals = externals},
                       WaitSlots(lowered));
}

void check_calls(const Program& program) {
  const auto ranks = static_cast<uint32_t>(program.ranks.size());
  for (uint32_t r = 0; r < ranks; ++r) {
    Diagnostics diagnostics;
    const auto shape = CompiledShape::of(program, r, diagnostics);
    REQUIRE(shape);
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
      for (uint64_t rows = 1; rows <= 2 * ranks + 1; ++rows) {
        for (const uint64_t most : {rows, uint64_t{4} * ranks}) {
          CAPTURE(program.name, ranks, r, info(dtype).name, rows, most);
          BlockPrograms programs;
          std::vector<CompiledLine> lines;
          REQUIRE(pack(program, r, rows, most, dtype, programs));
          CHECK(shape->takes(programs, dtype, info(dtype).accumulate, ReduceOp::sum));
          CHECK(shape->fill(programs, lines));
        }
      }
    }
  }
}

TEST_CASE("kernels take calls in which some steps of rows have nothing to do") {
  for (const char* const ranks : {"2", "3", "4"}) {
    for (const std::string& name : testing::uneven_row_programs()) {
      check_calls(testing::row_plan(name, {{"R", ranks}}));
    }
  }
}

TEST_CASE("kernels of the library's programs of rows take calls of all sizes") {
  for (const uint32_t ranks : {2, 5}) {
    for (const std::string& name : testing::library_row_programs(ranks)) {
      check_calls(testing::library_row_plan(
          name, {{"R", std::to_string(ranks)}, {"N", "512"}, {"T", "128"}, {"B", "2"}}));
    }
  }
}

}  // namespace
}  // namespace mscclc
