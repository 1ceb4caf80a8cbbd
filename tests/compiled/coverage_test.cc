// The library's programs as compiled kernels: which there are, and that calls of common sizes
// are calls of theirs. What is left to the interpreter is written down here.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "executor/compiled/shape.h"
#include "executor/lower.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

/// A rank's programs for a call of `bytes`, where input and output lie far apart.
bool pack(const Program& program, uint32_t rank, uint64_t bytes, BlockPrograms& programs) {
  Diagnostics diagnostics;
  RankProgram lowered;
  if (!lower_rank(program, rank, lowered, diagnostics)) return false;
  const uint64_t part = Chunking::part_for_message(program.contract, bytes, 4);
  const Chunking chunking(program.contract, part, program.launch.align);
  if (!fit_rank_to_size(lowered, program, rank, chunking, chunking, diagnostics)) return false;
  std::vector<device::BaseAddress> bases;
  for (size_t i = 0; i < lowered.bases.size(); ++i) {
    bases.push_back({reinterpret_cast<uint8_t*>((i + 1) << 32), lowered.bases[i].copy_stride,
                     lowered.bases[i].copies});
  }
  std::vector<device::ChannelEnd> ends;
  for (const Channel& c : program.ranks[rank].channels) {
    ends.push_back({nullptr, nullptr, 0, c.kind == ChannelKind::port ? 1u : 0u});
  }
  return programs.pack(lowered, {bases, ends}, WaitSlots(lowered));
}

TEST_CASE("compiled kernels: calls of the library's programs are calls of their kernels") {
  std::set<std::string> done, refused, other_steps;
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : entry.worlds) {
      const CompiledWorld world(entry.name, defines);
      if (!world.errors().empty()) continue;
      const Program& program = world.program();
      if (program.ranks.size() != 2 && program.ranks.size() != 4) continue;
      for (uint32_t r = 0; r < program.ranks.size(); ++r) {
        CAPTURE(entry.name, text(defines), r);
        Diagnostics diagnostics;
        const auto shape = CompiledShape::of(program, r, diagnostics);
        if (!shape) {
          REQUIRE(diagnostics.all().back().code == "no-compiled-kernel");
          refused.insert(std::string(entry.name));
          continue;
        }
        done.insert(std::string(entry.name));
        for (uint64_t bytes = 1 << 14; bytes <= 1 << 24; bytes *= 4) {
          BlockPrograms programs;
          REQUIRE(pack(program, r, bytes, programs));
          if (!shape->takes(programs, Dtype::f32, Dtype::f32, ReduceOp::sum)) continue;
          std::vector<CompiledLine> lines;
          if (!shape->fill(programs, lines)) other_steps.insert(std::string(entry.name));
        }
      }
    }
  }
  for (const char* name :
       {"allgather_packets", "allreduce_1shot", "allreduce_1shot_ordered",
        "allreduce_2shot_packets", "alltoall_packets", "broadcast_packets", "gather_packets",
        "reduce_packets", "reducescatter_packets", "scatter_packets", "sendrecv_packets"}) {
    CAPTURE(name);
    CHECK(done.count(name) == 1);
  }
  CHECK(refused == std::set<std::string>{"allgather_switch", "allgather_switch_packets",
                                         "allreduce_switch", "allreduce_switch_direct"});
  // Their moves lie alike at some sizes only: the other calls are the interpreter's.
  CHECK(other_steps == std::set<std::string>{"broadcast_scatter", "broadcast_scatter_packets",
                                             "reduce_2shot_packets", "reduce_nodes"});
}

}  // namespace
}  // namespace mscclc
