// Rewrites by which MSCCL++'s compiler breaks right programs, each with a program that it breaks:
// here it keeps its meaning. Checked is what the passes make of rank 0, and on the simulator
// that the program gives what it promises, in place and not, under several schedules.
#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "executor/simulator/run.h"
#include "ir/print/print.h"
#include "ir/print/print_parts.h"

namespace mscclc {
namespace {

constexpr uint64_t kSchedules = 12;

Program compiled(const std::string& text, std::vector<std::string> only = {}) {
  Sources sources;
  Diagnostics diagnostics;
  PassOptions passes;
  passes.only = std::move(only);
  passes.verify_each = true;
  auto program =
      compile(sources, sources.add("t.mscl", "program t\n" + text), {}, passes, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(program);
  return *std::move(program);
}

/// The ops of rank 0, a line each: "0: sync", in a pipeline "0~ sync".
std::string rank_0(const Program& program) {
  std::string text = "\n";
  OpPrinter printer(program);  // counts chunks, as IR text does
  printer.begin_rank(0, false);
  for (const Op& op : program.ranks[0].ops) {
    TextWriter out(64);
    printer.print(out, op);
    text += std::to_string(op.block) + (op.loop == kNone ? ": " : "~ ") + out.take() + "\n";
  }
  return text;
}

/// What goes wrong in runs of the whole pipeline of passes; "" if nothing does.
std::string faults(const std::string& text) {
  const Program program = compiled(text);
  Simulator runner(program);
  const bool both = program.contract.in_place == InPlace::either && program.contract.can_alias();
  for (uint64_t seed = 0; seed < kSchedules; ++seed) {
    for (const uint64_t bytes : {48, 4000}) {
      for (const bool in_place : {false, true}) {
        if (in_place && !both) continue;
        RunSpec spec{.bytes = bytes, .iterations = 3, .schedule_seed = seed};
        if (both) spec.in_place = in_place;
        Diagnostics diagnostics;
        const RunResult result = runner.run(spec, diagnostics);
        if (result.status != RunStatus::right) return render_text(diagnostics, Sources());
      }
    }
  }
  return "";
}

}  // namespace

TEST_CASE("MSCCL++: two sums into one chunk become one, whatever the first source") {
  // d = a + b; d = a + c becomes d = a + b + c there.
  const std::string text = R"(
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure     output[0] at q = reduce(input[0] at p for p in 0..2) for q in 0..2
rank r in 0..2 {
  buffer theirs[1]
  channel ch = memory(1 - r)
  tb 0 {
    put ch.theirs[0] <- input[0]
    signal ch
    wait ch
    reduce output[0] <- input[0], input[0]
    reduce output[0] <- input[0], theirs[0]
    signal ch
    wait ch
  }
})";
  CHECK(rank_0(compiled(text, {"fuse"})) == R"(
0: put ch.theirs[0] <- input[0]
0: signal ch
0: wait ch
0: reduce output[0] <- input[0], input[0]
0: reduce output[0] <- input[0], theirs[0]
0: signal ch
0: wait ch
)");
  CHECK(faults(text) == "");
}

TEST_CASE("MSCCL++: a sum over a switch is stored where it was read, and not kept") {
  const std::string text = R"(
collective allreduce(ranks: 2, chunks: 2, inplace: false)
rank r in 0..2 {
  buffer stage[2]
  buffer total[2]
  channel sw = switch(0..2)
  channel ch = memory(1 - r)
  tb 0 {
    copy stage[0..2] <- input[0..2]
    signal ch
    wait ch
    switch_reduce output[r] <- sw.stage[r]
    switch_broadcast sw.total[1 - r] <- output[r]
    signal ch
    wait ch
    copy output[1 - r] <- total[r]
  }
})";
  // The store goes elsewhere than the load, and the local chunk is wanted.
  CHECK(rank_0(compiled(text, {"fuse"})).find("0: switch_broadcast sw.total[1] <- output[0]") !=
        std::string::npos);
  CHECK(faults(text) == "");
}

TEST_CASE("MSCCL++: dependencies do not see what switch ops touch") {
  const std::string text = R"(
collective allreduce(ranks: 2, chunks: 2)
rank r in 0..2 {
  buffer stage[2]
  channel sw = switch(0..2)
  channel ch = memory(1 - r)
  tb 0 {
    copy stage[0..2] <- input[0..2]
    signal ch
    wait ch
    switch_reduce_broadcast sw.stage[r] <- sw.stage[r]
    signal ch
    wait ch
    copy output[0..2] <- stage[0..2]
    signal ch
    wait ch
  }
})";
  CHECK(rank_0(compiled(text, {"sync"})).find("sync\n0: switch_reduce_broadcast") !=
        std::string::npos);
  CHECK(faults(text) == "");
  // Nothing but the chunks at the switch orders these.
  CHECK(rank_0(compiled(R"(
collective allreduce(ranks: 2, chunks: 2)
rank r in 0..2 {
  buffer stage[2]
  channel sw = switch(0..2)
  tb 0 {
    copy stage[0] <- input[0]
    switch_reduce output[0] <- sw.stage[0]
    switch_broadcast sw.stage[1] <- output[0]
    copy output[1] <- stage[1]
  }
})",
                        {"sync"})) == R"(
0: copy stage[0] <- input[0]
0: sync
0: switch_reduce output[0] <- sw.stage[0]
0: sync
0: switch_broadcast sw.stage[1] <- output[0]
0: sync
0: copy output[1] <- stage[1]
)");
}

TEST_CASE("MSCCL++: dependencies do not see the plain source of a packet sum") {
  const std::string text = R"(
collective allreduce(ranks: 2)
rank r in 0..2 {
  buffer mine[1]
  buffer q[1] packets: LL16, copies: 2
  channel ch = memory(1 - r)
  tb 0 {
    put_packets ch.q[0] <- input[0]
    copy mine[0] <- input[0]
    reduce_packets output[0] <- mine[0], q[0]
    copy mine[0] <- input[0]
  }
})";
  // What is read and overwritten: the plain source, before and after. In place also the input.
  CHECK(rank_0(compiled(text, {"sync"})) == R"(
0: put_packets ch.q[0] <- input[0]
0: copy mine[0] <- input[0]
0: sync
0: reduce_packets output[0] <- mine[0], q[0]
0: sync
0: copy mine[0] <- input[0]
)");
  CHECK(faults(text) == "");
}

TEST_CASE("MSCCL++: after a dependency, the op's own accesses are forgotten") {
  // The last op writes what the second, which has a sync in front of it, reads.
  CHECK(rank_0(compiled(R"(
collective allreduce(ranks: 2, chunks: 2)
rank r in 0..2 {
  buffer s[3]
  tb 0 {
    copy s[0] <- input[0]
    reduce s[2] <- s[1], s[0]
    copy s[1] <- input[1]
  }
})",
                        {"sync"})) == R"(
0: copy s[0] <- input[0]
0: sync
0: reduce s[2] <- s[1], s[0]
0: sync
0: copy s[1] <- input[1]
)");
}

TEST_CASE("MSCCL++: instances tear references of different lengths apart") {
  // Whole rows are sent, single chunks added up: of every chunk each instance has the same part.
  const std::string text = R"(
collective allreduce(ranks: 2, chunks: [2, 2])
launch instances: 3
rank r in 0..2 {
  buffer theirs[2]
  channel ch = memory(1 - r)
  tb 0 {
    put ch.theirs[0..2] <- input[1 - r]
    signal ch
    wait ch
    for b in 0..2 { reduce output[r, b] <- input[r, b], theirs[b] }
    signal ch
    wait ch
    put ch.output[r] <- output[r]
    signal ch
    wait ch
  }
})";
  const Program program = compiled(text, {"replicate"});
  CHECK(rank_0(program).find("0: put ch[0].theirs[0] <- input[6]\n"
                             "0: put ch[0].theirs[3] <- input[9]\n") != std::string::npos);
  CHECK(rank_0(program).find("0: reduce output[0] <- input[0], theirs[0]\n"
                             "0: reduce output[3] <- input[3], theirs[3]\n") != std::string::npos);
  CHECK(faults(text) == "");
  std::string blocked = text;
  blocked.replace(blocked.find("instances: 3"), 12, "instances: 3, policy: blocked");
  CHECK(faults(blocked) == "");
}

TEST_CASE("MSCCL++: all instances write the packets of one") {
  const std::string text = R"(
collective allreduce(ranks: 2)
launch instances: 2
rank r in 0..2 {
  buffer theirs[1] packets: LL16, copies: 2
  buffer sum[1] packets: LL16
  buffer back[1] packets: LL16, copies: 2
  channel ch = memory(1 - r)
  tb 0 {
    put_packets ch.theirs[0] <- input[0]
    if r == 0 {
      reduce_copy_packets output[0], sum[0] <- input[0], theirs[0]
      read_put_packets ch.back[0] <- sum[0]
    } else {
      unpack_packets output[0] <- back[0]
    }
  }
})";
  const std::string ops = rank_0(compiled(text, {"replicate"}));
  for (const std::string j : {"0", "1"}) {
    CHECK(ops.find(j + ": reduce_copy_packets output[" + j + "], sum[" + j + "] <- input[" + j +
                   "], theirs[" + j + "]\n") != std::string::npos);
  }
  CHECK(faults(text) == "");
}

TEST_CASE("MSCCL++: a pipeline that ends in a sync deletes the one in front of it") {
  const std::string text = R"(
collective allreduce(ranks: 2, inplace: false)
rank r in 0..2 {
  buffer s[1]
  buffer t[1]
  channel ch = memory(1 - r)
  tb 0 {
    copy s[0] <- input[0]
    sync
    pipeline unit: 64 {
      put ch.t[0] <- s[0]
      sync
      signal ch
      wait ch
      sync
    }
    reduce output[0] <- s[0], t[0]
    signal ch
    wait ch
  }
})";
  CHECK(rank_0(compiled(text, {"fuse", "sync"})) == R"(
0: copy s[0] <- input[0]
0: sync
0~ put ch.t[0] <- s[0]
0~ sync
0~ signal ch
0~ wait ch
0~ sync
0: reduce output[0] <- s[0], t[0]
0: sync
0: signal ch
0: wait ch
)");
  CHECK(faults(text) == "");
}

TEST_CASE("MSCCL++: a body is not fused if a sync stands in front of it") {
  CHECK(rank_0(compiled(R"(
collective allreduce(ranks: 3, inplace: false)
rank r in 0..3 {
  let others = 0..3 except r
  buffer t[others]
  channel ch[p in others] = memory(p)
  tb 0 {
    signal ch[p] for p in others relaxed
    wait ch[p] for p in others relaxed
    sync
    pipeline unit: 64 { for p in others { put ch[p].t[r] <- input[0] } }
  }
})",
                        {"fuse", "sync"})) == R"(
0: signal ch[1], ch[2] relaxed
0: wait ch[1], ch[2] relaxed
0: sync
0~ put ch[1].t[0], ch[2].t[0] <- input[0], input[0]
)");
}

}  // namespace mscclc
