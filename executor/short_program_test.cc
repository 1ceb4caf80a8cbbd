// A short program says of each block what the block's own program says.
#include "executor/short_program.h"

#include <catch2/catch.hpp>

#include "executor/testing/fitted_rank.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;
using device::ShortOperand;
using device::ShortProgram;
using device::ShortStep;
using device::Step;
using device::StepHeader;
using device::StepKind;
using device::StepOperand;
using device::Steps;

/// What all blocks of a rank do in calls of some size.
class Packed {
 public:
  Packed(TestProgram plan, uint32_t rank, uint64_t bytes)
      : plan_(std::move(plan)), fitted_(plan_, rank, bytes) {
    REQUIRE(fitted_.pack(programs_));
    launch.programs = programs_.data();
    launch.program_bytes = programs_.stride();
    launch.uses = programs_.uses();
    launch.blocks = static_cast<uint32_t>(fitted_.rank->block_begin.size() - 1);
  }
  Steps block(uint32_t b) const {
    return Steps(
        reinterpret_cast<const StepHeader*>(launch.programs + uint64_t{b} * launch.program_bytes));
  }
  device::LaunchPlan launch;

 private:
  TestProgram plan_;
  FittedRank fitted_;
  BlockPrograms programs_;
};

/// By the words of short_steps.h.
uint8_t* place(const ShortProgram& program, const ShortOperand& operand, uint32_t b) {
  const uint64_t late = b > program.turn ? b - program.turn : 0;
  return reinterpret_cast<uint8_t*>(reinterpret_cast<uint64_t>(operand.address) +
                                    b * operand.apart - late * operand.shrink);
}

void check_operand(const ShortProgram& program, const ShortOperand& made, bool packets,
                   const StepOperand& own, uint32_t b) {
  CHECK(packets == ((own.flags & device::kPackets) != 0));
  CHECK(place(program, made, b) == own.address);
  CHECK(made.stride == (own.copies == 2 ? own.stride : 0));
}

void check_step(const ShortProgram& program, const ShortStep& made, const Steps& block,
                const Step& own, uint32_t b) {
  const device::ShortHead& head = made.head;
  const device::ShortRange& range = b < program.turn ? made.range : made.late;
  CHECK(head.source + b * head.source_apart == own.source);
  CHECK(range.begin == own.begin - own.run_begin);
  CHECK(range.end == own.end - own.run_begin);
  CHECK(range.length == own.length);
  CHECK((head.adds != 0) == (own.kind == StepKind::reduce_packets));
  CHECK((head.frees_next != 0) == ((own.flags & device::kFreesNext) != 0));
  REQUIRE(head.srcs == own.count * own.srcs);
  REQUIRE(head.dsts == own.count * own.dsts);
  for (uint32_t i = 0; i < own.count; ++i) {
    const StepOperand* move = block.operands + own.first + i * (own.dsts + own.srcs);
    for (uint32_t k = 0; k < own.dsts; ++k) {
      const uint32_t j = i * own.dsts + k;
      check_operand(program, made.operands[device::short_side(program.operands) + j],
                    (head.to_packets >> j & 1) != 0, move[k], b);
    }
    for (uint32_t k = 0; k < own.srcs; ++k) {
      const uint32_t j = i * own.srcs + k;
      check_operand(program, made.operands[j], (head.from_packets >> j & 1) != 0,
                    move[own.dsts + k], b);
    }
  }
}

/// The block that signals and waits.
void check_targets(const ShortProgram& made, const Steps& block) {
  uint32_t t = 0;
  for (uint32_t s = 0; t < made.targets; ++s) {
    const Step& step = block.steps[s];
    for (uint32_t i = 0; i < step.count; ++i) {
      const device::StepTarget& own = device::target_of(block, step, i);
      const device::ShortTarget& target = made.target[t++];
      CHECK(target.address == own.address);
      CHECK(target.index == own.index);
      CHECK(target.source == step.source);
      CHECK((target.waits != 0) == (step.kind == StepKind::wait));
      CHECK((target.relaxed != 0) == ((step.flags & device::kRelaxed) != 0));
      if (target.waits != 0) CHECK(target.slot == own.slot);
    }
  }
}

void check_short(const Packed& packed) {
  ShortProgram made{};
  REQUIRE(make_short(packed.launch, made));
  for (uint32_t b = 0; b < made.blocks; ++b) {
    INFO("block " << b << ", turn " << made.turn);
    for (uint32_t s = 0; s < made.steps; ++s) {
      check_step(made, made.step[s], packed.block(b), packed.block(b).steps[s], b);
    }
  }
  if (made.blocks < packed.launch.blocks) check_targets(made, packed.block(made.blocks));
  CHECK((made.blocks < packed.launch.blocks) == (made.targets != 0));
}

/// Every rank gives all others its part and unpacks theirs, its own beside them.
TestProgram gather(uint32_t ranks, uint32_t blocks, PacketFormat format) {
  TestProgram t(ranks, blocks);
  t.program.contract.kind = CollectiveKind::allgather;
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < ranks; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", (ranks - 1) * blocks, format, 2);
    for (uint32_t b = 0; b < blocks; ++b) {
      std::vector<Operand> to, mine, outputs, theirs;
      for (const uint32_t p : others(r, ranks)) {
        to.push_back(far(mesh(r, p), inbox, mesh(p, r) * blocks + b));
        mine.push_back(local(kInput, b));
        outputs.push_back(local(kOutput, p * blocks + b));
        theirs.push_back(local(inbox, mesh(r, p) * blocks + b));
      }
      add_op(t, r, b, OpKind::put_packets, to, mine);
      add_op(t, r, b, OpKind::copy, {local(kOutput, r * blocks + b)}, {local(kInput, b)});
      add_op(t, r, b, OpKind::unpack_packets, outputs, theirs);
    }
  }
  return t;
}

TEST_CASE("a short program says what the blocks' own programs say") {
  for (const uint32_t ranks : {2, 4}) {
    for (const uint32_t blocks : {1, 2, 3, 7, 48}) {
      for (const uint64_t granules : {48, 49, 50, 54, 64, 95, 96, 97, 4096}) {
        INFO(ranks << " ranks, " << blocks << " blocks, " << granules << " times 16 bytes");
        for (uint32_t r = 0; r < ranks; ++r) {
          check_short({one_shot(ranks, blocks, PacketFormat::LL16), r, granules * 16});
          check_short({one_shot(ranks, blocks, PacketFormat::LL128), r, granules * 16});
          check_short({gather(ranks, blocks, PacketFormat::LL128), r, granules * 16});
        }
      }
    }
  }
}

TEST_CASE("what is short: how many operands, and whether the first step puts") {
  ShortProgram made{};
  Packed two(one_shot(2, 4, PacketFormat::LL16), 0, 4096);
  REQUIRE(make_short(two.launch, made));
  CHECK(made.format == PacketFormat::LL16);
  CHECK(made.operands == 2);
  CHECK(made.puts == 1);
  CHECK(made.turn == 4);
  CHECK(made.step[1].head.averages == 0);
  two.launch.reduce = ReduceOp::avg;
  REQUIRE(make_short(two.launch, made));
  CHECK(made.step[0].head.averages == 0);
  CHECK(made.step[1].head.averages == 1);
  REQUIRE(make_short(Packed(one_shot(4, 4, PacketFormat::LL16), 0, 4096 + 32).launch, made));
  CHECK(made.operands == 4);
  CHECK(made.turn == 2);
}

bool is_short(TestProgram plan, uint64_t bytes) {
  const Packed packed(std::move(plan), 1, bytes);
  ShortProgram made{};
  return make_short(packed.launch, made);
}

TEST_CASE("programs that have no short form") {
  CHECK(is_short(one_shot(4, 4, PacketFormat::LL16), 4096));
  CHECK_FALSE(is_short(one_shot(4, 4, PacketFormat::LL16), 4096 + 4));     // not cut in 16 bytes
  CHECK_FALSE(is_short(one_shot(5, 4, PacketFormat::LL16), 4096));         // too many sources
  CHECK_FALSE(is_short(one_shot(4, 4, PacketFormat::LL16, 3), 4096));      // three copies
  CHECK_FALSE(is_short(one_shot(4, 4, PacketFormat::LL16, 4), 4096));      // four
  CHECK_FALSE(is_short(two_shot(4), 4096));                                // no packets
  CHECK_FALSE(is_short(two_shot_by_ports(4, PacketFormat::LL128), 4096));  // ports, signals
}

TEST_CASE("a block that signals and waits, beside those that move packets") {
  ShortProgram made{};
  for (const uint32_t blocks : {1, 3, 48}) {
    for (const uint64_t granules : {48, 50, 4096}) {
      for (const PacketFormat format : {PacketFormat::LL16, PacketFormat::LL128}) {
        for (uint32_t r = 0; r < 3; ++r) {
          check_short({broadcast_of_packets(3, blocks, format), r, granules * 16});
        }
        for (const bool relaxed : {false, true}) {
          check_short({exchange_of_packets(blocks, format, relaxed), 1, granules * 16});
        }
      }
    }
  }
  REQUIRE(make_short(Packed(broadcast_of_packets(3, 4, PacketFormat::LL16), 0, 4096).launch, made));
  CHECK(made.blocks == 4);
  CHECK(made.targets == 2);
  CHECK(made.target[1].waits == 1);
  CHECK(made.steps == 1);  // the root's own copy goes beside what it sends
  CHECK(made.step[0].head.dsts == 3);
  CHECK(made.step[0].head.to_packets == 3);
  REQUIRE(
      make_short(Packed(exchange_of_packets(4, PacketFormat::LL16, true), 0, 4096).launch, made));
  CHECK(made.targets == 2);
  CHECK(made.target[0].waits == 0);
  CHECK(made.target[1].waits == 1);
}

TEST_CASE("a block that signals after it has waited makes a launch long") {
  TestProgram plan = exchange_of_packets(4, PacketFormat::LL16, true);
  for (Rank& rank : plan.program.ranks) std::swap(rank.ops.back(), rank.ops[rank.ops.size() - 2]);
  CHECK_FALSE(is_short(plan, 4096));
}

TEST_CASE("one block that does something else makes the others long") {
  TestProgram plan = one_shot(2, 4, PacketFormat::LL16);
  for (Op& op : plan.program.ranks[1].ops) {
    if (op.block != 2 || op.kind != OpKind::reduce_packets) continue;
    const std::vector<Operand> to = {local(kOutput, 3)};
    const std::vector<Operand> from = {local(kInput, 2), local(kFirstScratch, 2)};
    plan.program.set_operands(op, to, from);
  }
  CHECK_FALSE(is_short(plan, 4096));
}

TEST_CASE("counts besides the number of the call make a launch long") {
  Packed packed(one_shot(2, 4, PacketFormat::LL16), 0, 4096);
  packed.launch.call_counts = 2;
  ShortProgram made{};
  CHECK_FALSE(make_short(packed.launch, made));
}

}  // namespace
}  // namespace mscclc
