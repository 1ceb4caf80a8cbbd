// Which chunks have one number.
#include "passes/prove/model/chunk_numbers.h"

#include <catch2/catch.hpp>
#include <set>

namespace mscclc::proof {
namespace {

constexpr uint32_t kScratch = kFirstScratch;

/// An AllGather of two ranks, with `chunks` of scratch in two copies.
Program gather(uint32_t chunks) {
  Program program;
  program.contract.kind = CollectiveKind::allgather;
  program.contract.ranks = 2;
  program.contract.chunks = {1};
  program.launch.reuse_scratch = true;
  program.split = true;
  program.ranks.resize(2);
  for (Rank& rank : program.ranks) {
    rank.buffers.resize(kScratch + 1);
    for (Buffer& buffer : rank.buffers) buffer.name = program.intern("b");
    rank.buffers[kInput].chunks = 1;
    rank.buffers[kOutput].chunks = 2;
    rank.buffers[kScratch].chunks = chunks;
    rank.buffers[kScratch].copies = 2;
  }
  return program;
}

TEST_CASE("every chunk of every copy has a number of its own, and calls take copies in turn") {
  const Program program = gather(3);
  const ChunkNumbers numbers(program, {only_part(program)}, 2, false);
  CHECK(numbers.count() == 2 * (1 + 2 + 2 * 3));
  CHECK(numbers.period() == 2);
  std::set<uint64_t> all;
  for (const uint32_t rank : {0, 1}) {
    all.insert(numbers.number(rank, kInput, 0, 0));
    for (const uint32_t chunk : {0, 1}) all.insert(numbers.number(rank, kOutput, chunk, 0));
    for (const uint32_t call : {0, 1}) {
      for (const uint32_t chunk : {0, 1, 2}) {
        all.insert(numbers.number(rank, kScratch, chunk, call));
      }
    }
  }
  CHECK(all.size() == numbers.count());
  CHECK(numbers.number(1, kScratch, 2, 0) == numbers.number(1, kScratch, 2, 2));
}

TEST_CASE("chunks that are not kept have no number, and the others have the first ones") {
  const Program program = gather(3);
  ChunkNumbers numbers(program, {only_part(program)}, 2, false);
  std::vector<bool> kept(numbers.count());
  kept[numbers.number(0, kScratch, 1, 1)] = kept[numbers.number(1, kOutput, 0, 0)] = true;
  numbers.keep(kept);
  CHECK(numbers.count() == 2);
  CHECK(numbers.number(0, kScratch, 1, 1) == 0);
  CHECK(numbers.number(1, kOutput, 0, 0) == 1);
  CHECK(numbers.number(0, kScratch, 1, 0) == kNoChunk);
  CHECK(numbers.number(1, kOutput, 1, 0) == kNoChunk);
}

TEST_CASE("in place a rank's input is its chunk of the output") {
  const Program program = gather(1);
  const ChunkNumbers numbers(program, {only_part(program)}, 2, true);
  for (const uint32_t rank : {0, 1}) {
    CHECK(numbers.number(rank, kInput, 0, 0) == numbers.number(rank, kOutput, rank, 0));
  }
}

TEST_CASE("scratch of plans that reuse it is the same chunks only if it is laid out alike") {
  const Program one = gather(3), like = gather(3), other = gather(4);
  for (const Program* second : {&like, &other}) {
    const std::vector<SharedPlan> plans = {{&one, "one", {0, 1}}, {second, "second", {0, 1}}};
    const Joint joint = join(plans);
    const ChunkNumbers numbers(joint.program, joint.parts, 2, false);
    const uint64_t of_first = numbers.number(0, joint.parts[0].first_scratch[0], 0, 0);
    const uint64_t of_second = numbers.number(0, joint.parts[1].first_scratch[0], 0, 0);
    CHECK((of_first == of_second) == (second == &like));
    CHECK(share_scratch(0, joint.parts[0], joint.parts[1]));
    CHECK(share_chunks(0, joint.parts[0], joint.parts[1]) == (second == &like));
  }
}

}  // namespace
}  // namespace mscclc::proof
