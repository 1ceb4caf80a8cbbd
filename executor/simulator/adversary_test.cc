// The adversarial mode: right plans stay right under strands and late accesses, whatever the seed;
// a plan that lacks an order goes wrong by a hold that says which.
#include <catch2/catch.hpp>

#include "executor/simulator/run.h"
#include "executor/testing/op_plans.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;

std::string described(const RunSpec& spec, const Diagnostics& diagnostics) {
  return std::string(info(spec.dtype).name) + ", " + std::to_string(spec.bytes) + " bytes, seed " +
         std::to_string(spec.schedule_seed) + "\n" + render_text(diagnostics, Sources{}, 100);
}

RunStatus run(Simulator& runner, const RunSpec& spec) {
  Diagnostics diagnostics;
  const RunStatus status = runner.run(spec, diagnostics).status;
  UNSCOPED_INFO(described(spec, diagnostics));
  return status;
}

/// A hold by rank, op and call, of all strands.
Hold hold(Hold::What what, uint32_t rank, uint32_t op, uint64_t call = 0) {
  return {.what = what, .rank = rank, .op = op, .call = call, .note = {}};
}

RunStatus run_held(const Program& program, std::vector<Hold> holds, uint32_t strands = 2) {
  Simulator runner(program);
  return run(runner, {.bytes = 256,
                      .iterations = 3,
                      .adversary = Adversary{.strands = strands, .holds = std::move(holds)}});
}

/// Rank 0's chunk goes to rank 1: put, sync, signal; wait, sync, copy; and back that it is free.
TestProgram hand_over() {
  TestProgram t(2, 1);
  t.program.contract.kind = CollectiveKind::broadcast;
  t.program.contract.in_place = InPlace::no;
  t.program.ranks[1].buffers[kInput].chunks = 0;
  connect_all(t, ChannelKind::memory);
  const uint32_t inbox = t.buffer(1, "inbox", 1);
  t.buffer(0, "inbox", 1);
  add_op(t, 0, 0, OpKind::put, {far(0, inbox, 0)}, {local(kInput, 0)});
  add_op(t, 0, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  add_op(t, 0, 0, OpKind::sync, {});
  add_op(t, 0, 0, OpKind::signal, {end_of(0)});
  add_op(t, 0, 0, OpKind::wait, {end_of(0)});
  add_op(t, 1, 0, OpKind::wait, {end_of(0)});
  add_op(t, 1, 0, OpKind::sync, {});
  add_op(t, 1, 0, OpKind::copy, {local(kOutput, 0)}, {local(inbox, 0)});
  add_op(t, 1, 0, OpKind::sync, {});
  add_op(t, 1, 0, OpKind::signal, {end_of(0)});
  return t;
}

TEST_CASE("right plans stay right, op by op") {
  for (const OpPlan& plan : op_plans()) {
    for (const PacketFormat format : formats_of(plan)) {
      const TestProgram t = plan.build(format);
      Simulator runner(t.program);
      for (uint64_t seed = 0; seed < 40; ++seed) {
        const RunSpec spec{
            .bytes = 4 * (seed * 29 % 100),
            .iterations = 4,
            .schedule_seed = seed,
            .adversary = Adversary{.strands = 2 + static_cast<uint32_t>(seed % 3), .holds = {}}};
        Diagnostics diagnostics;
        const RunStatus status = runner.run(spec, diagnostics).status;
        INFO(plan.name << ' ' << name(format) << ", " << described(spec, diagnostics));
        CHECK(status == RunStatus::right);
      }
    }
  }
}

TEST_CASE("a right plan is right whatever is held") {
  const TestProgram t = hand_over();
  for (const Hold::What what : {Hold::What::op, Hold::What::access, Hold::What::call}) {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      for (uint32_t op = 0; op < 5; ++op) {
        for (uint64_t call = 0; call < 3; ++call) {
          INFO(name(what) << ' ' << rank << ' ' << op << ' ' << call);
          CHECK(run_held(t.program, {hold(what, rank, op, call)}) == RunStatus::right);
        }
      }
    }
  }
}

TEST_CASE("a relaxed signal that carries data shows by a late access") {
  TestProgram t = hand_over();
  t.program.ranks[0].ops[3].relaxed = true;
  CHECK(run_held(t.program, {}) == RunStatus::right);
  CHECK(run_held(t.program, {hold(Hold::What::access, 0, 0)}) == RunStatus::wrong);
}

TEST_CASE("a relaxed wait for data shows by a late access") {
  TestProgram t = hand_over();
  t.program.ranks[1].ops[0].relaxed = true;
  CHECK(run_held(t.program, {}) == RunStatus::right);
  CHECK(run_held(t.program, {hold(Hold::What::access, 0, 0)}) == RunStatus::wrong);
}

TEST_CASE("a missing sync before a signal shows by a strand that lingers") {
  TestProgram t = hand_over();
  t.program.ranks[0].ops[2].kind = OpKind::signal;  // the signal comes at once, and once only
  t.program.set_operands(t.program.ranks[0].ops[2], std::vector<Operand>{end_of(0)}, {});
  t.program.ranks[0].ops[3].kind = OpKind::sync;
  t.program.set_operands(t.program.ranks[0].ops[3], {}, {});
  Hold first = hold(Hold::What::op, 0, 0);
  first.strand = 0;
  CHECK(run_held(t.program, {first}) == RunStatus::wrong);
  CHECK(run_held(t.program, {first}, 1) == RunStatus::right);
}

TEST_CASE("a missing sync after a wait shows by a sender that lingers") {
  TestProgram t = hand_over();
  t.program.ranks[1].ops.erase(t.program.ranks[1].ops.begin() + 1);
  CHECK(run_held(t.program, {hold(Hold::What::op, 0, 0)}) == RunStatus::wrong);
}

TEST_CASE("by chance a relaxed signal comes before one of another thread that publishes") {
  const auto goes_wrong = [](bool met) {
    TestProgram t = hand_over();
    std::vector<Op>& ops = t.program.ranks[0].ops;
    const Op sync = ops[2], signal = ops[3];
    ops.insert(ops.begin() + 4, signal)->relaxed = true;
    if (met) ops.insert(ops.begin() + 4, sync);
    const Op wait = t.program.ranks[1].ops[0];
    t.program.ranks[1].ops.push_back(wait);
    t.program.ranks[1].ops.back().relaxed = true;
    Simulator runner(t.program);
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      const RunSpec spec{
          .bytes = 256, .iterations = 3, .schedule_seed = seed, .adversary = Adversary{}};
      Diagnostics diagnostics;
      if (runner.run(spec, diagnostics).status != RunStatus::right) return true;
    }
    return false;
  };
  CHECK_FALSE(goes_wrong(true));
  CHECK(goes_wrong(false));
}

TEST_CASE("a rank that is a call ahead overwrites what a peer still reads") {
  TestProgram t = hand_over();
  t.program.ranks[0].ops.pop_back();  // does not wait until its inbox is free
  CHECK(run_held(t.program, {hold(Hold::What::op, 1, 2)}) == RunStatus::wrong);
}

TEST_CASE("a put into a rank that has not entered the call is overwritten by its caller") {
  TestProgram t = hand_over();
  for (Operand* o = t.program.operands.at(0);; ++o) {
    if (o->buffer != kFirstScratch) continue;
    o->buffer = kOutput;  // straight into the output
    break;
  }
  CHECK(run_held(t.program, {hold(Hold::What::call, 1, 0)}) == RunStatus::wrong);
}

TEST_CASE("a port reads its source late") {
  TestProgram t(2, 1);
  t.program.contract.kind = CollectiveKind::sendrecv;
  t.program.contract.shift = 1;
  connect_all(t, ChannelKind::port);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t from = t.buffer(r, "from", 1), inbox = t.buffer(r, "inbox", 1);
    add_op(t, r, 0, OpKind::copy, {local(from, 0)}, {local(kInput, 0)});
    add_op(t, r, 0, OpKind::sync, {});
    add_op(t, r, 0, OpKind::put, {far(0, inbox, 0)}, {local(from, 0)});
    add_op(t, r, 0, OpKind::flush, {end_of(0)});
    add_op(t, r, 0, OpKind::sync, {});
    add_op(t, r, 0, OpKind::copy, {local(from, 0)}, {local(kOutput, 0)});  // poison
    add_op(t, r, 0, OpKind::signal, {end_of(0)});
    add_op(t, r, 0, OpKind::wait, {end_of(0)});
    add_op(t, r, 0, OpKind::sync, {});
    add_op(t, r, 0, OpKind::copy, {local(kOutput, 0)}, {local(inbox, 0)});
  }
  CHECK(run_held(t.program, {hold(Hold::What::proxy, 0, 2)}) == RunStatus::right);
  // Without the flush:
  t.program.ranks[0].ops[3].kind = OpKind::sync;
  t.program.set_operands(t.program.ranks[0].ops[3], {}, {});
  CHECK(run_held(t.program, {hold(Hold::What::proxy, 0, 2)}) == RunStatus::wrong);
}

TEST_CASE("what an op stores plain may land after its packets") {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", 1, PacketFormat::LL16, 2);
    const uint32_t kept = t.buffer(r, "kept", 1, PacketFormat::LL16, 2);
    const uint32_t sum = t.buffer(r, "sum", 1);
    add_op(t, r, 0, OpKind::put_packets, {far(0, inbox, 0)}, {local(kInput, 0)});
    add_op(t, r, 0, OpKind::reduce_copy_packets, {local(sum, 0), local(kept, 0)},
           {local(kInput, 0), local(inbox, 0)})
        .complete = true;
    // The other block has the packets, and takes that to mean that the sum is there.
    add_op(t, r, 1, OpKind::unpack_packets, {local(kOutput, 0)}, {local(kept, 0)});
    add_op(t, r, 1, OpKind::sync, {});
    add_op(t, r, 1, OpKind::copy, {local(kOutput, 0)}, {local(sum, 0)});
  }
  CHECK(run_held(t.program, {}) == RunStatus::right);
  CHECK(run_held(t.program, {hold(Hold::What::access, 0, 1)}) == RunStatus::wrong);
}

}  // namespace
}  // namespace mscclc
