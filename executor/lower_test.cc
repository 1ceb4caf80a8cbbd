#include "executor/lower.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "executor/testing/tree_plans.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using namespace testing;
using device::StepKind;
using Kind = OpKind;

struct Lowered {
  DeviceProgram device;
  Diagnostics diagnostics;
  bool ok = false;

  explicit Lowered(TestProgram& t, uint64_t bytes) {
    t.program.split = true;
    ok = lower(t.program, device, diagnostics) &&
         fit_to_size(device, t.program, {.part_bytes = bytes}, diagnostics);
  }
  RankProgram& rank(uint32_t r = 0) { return device.ranks[r]; }
  std::string text() const { return render_text(diagnostics, Sources{}, 100); }
};

TEST_CASE("scratch lies as the largest message needs it") {
  TestProgram t(1, 4);
  const uint32_t s = t.buffer(0, "s", 4);
  t.op_in(0, 0, Kind::copy, {local(s, 0, 4)}, {local(kInput, 0, 4)});
  t.program.split = true;
  DeviceProgram device;
  Diagnostics diagnostics;
  REQUIRE(lower(t.program, device, diagnostics));
  const Chunking capacity(t.program.contract, 1024, t.program.launch.align);  // chunks of 256
  RankProgram& rank = device.ranks[0];
  for (const uint64_t bytes : {1024, 256, 100, 0, 1024}) {
    const Chunking call(t.program.contract, bytes, t.program.launch.align);
    REQUIRE(fit_rank_to_size(rank, t.program, 0, call, capacity, diagnostics));
    CHECK(rank.buffers[s].bytes == 1024);
    CHECK(rank.buffers[kInput].bytes == bytes);
    const device::Move& m = rank.moves[0];
    // Chunks that are not full leave room after them.
    REQUIRE(m.run_count == (bytes == 1024 ? 1 : 4));
    for (uint32_t k = 0; k < m.run_count; ++k) {
      CHECK(rank.offsets[rank.runs[m.runs + k].offsets] == 256 * k);
    }
  }
}

TEST_CASE("chunks in one piece become one run") {
  TestProgram t(1, 4);
  const uint32_t s = t.buffer(0, "s", 4);
  t.op_in(0, 0, Kind::copy, {local(kOutput, 0, 4)}, {local(kInput, 0, 4)});
  t.op_in(0, 0, Kind::copy, {local(s, 0, 4)}, {local(kInput, 0, 4)});
  SECTION("even") {
    Lowered l(t, 256);
    REQUIRE(l.ok);
    for (const device::Move& m : l.rank().moves) {
      REQUIRE(m.run_count == 1);
      CHECK(l.rank().runs[m.runs].length == 256);
      CHECK(m.end == 256);
    }
  }
  SECTION("the last one shorter") {
    Lowered l(t, 100);  // 32, 32, 32, 4
    REQUIRE(l.ok);
    for (const device::Move& m : l.rank().moves) {
      REQUIRE(m.run_count == 1);
      CHECK(l.rank().runs[m.runs].length == 100);
      CHECK(m.end == 128);
    }
  }
  SECTION("several shorter") {
    Lowered l(t, 80);  // 32, 16, 16, 16
    REQUIRE(l.ok);
    const device::Move& m = l.rank().moves[1];
    REQUIRE(m.run_count == 3);
    const device::Stretch* runs = &l.rank().runs[m.runs];
    CHECK(runs[0].length == 48);
    CHECK(runs[1].begin == 64);
    CHECK(runs[1].length == 16);
    CHECK(l.rank().offsets[runs[1].offsets] == 64);      // scratch: chunks of 32
    CHECK(l.rank().offsets[runs[1].offsets + 1] == 48);  // input: side by side
    CHECK(runs[2].begin == 96);
  }
  SECTION("empty message") {
    Lowered l(t, 0);
    REQUIRE(l.ok);
    CHECK(l.rank().moves[0].end == 0);
    CHECK(l.rank().buffers[s].bytes == 0);
  }
}

TEST_CASE("group ops are cut in granules of the virtual range") {
  TestProgram t(1, 2);
  for (uint32_t b = 0; b < 3; ++b) {
    Op& op = t.op_in(0, b, Kind::copy, {local(kOutput, 0, 2)}, {local(kInput, 0, 2)});
    op.part = static_cast<uint16_t>(b);
    op.parts = 3;
  }
  Lowered l(t, 160);  // 10 granules: 4, 3, 3
  REQUIRE(l.ok);
  CHECK(l.rank().moves[0].begin == 0);
  CHECK(l.rank().moves[0].end == 64);
  CHECK(l.rank().moves[1].end == 112);
  CHECK(l.rank().moves[2].end == 160);
}

TEST_CASE("packet ops count units of whole slots") {
  TestProgram t(1, 3);
  const uint32_t s = t.buffer(0, "s", 3, PacketFormat::LL128, 2);
  t.op_in(0, 0, Kind::copy_packets, {local(s, 1, 2)}, {local(kInput, 1, 2)});
  Lowered l(t, 1000);  // 63 granules: 336, 336, 328 bytes; 3 lines of 120 each
  REQUIRE(l.ok);
  const device::Move& m = l.rank().moves[0];
  CHECK(m.end == 6);
  REQUIRE(m.run_count == 2);  // lines do not end where chunks end
  const device::Stretch* runs = &l.rank().runs[m.runs];
  CHECK(runs[1].begin == 3);
  CHECK(runs[1].size == 3);
  CHECK(runs[1].length == 328);
  CHECK(l.rank().offsets[runs[1].offsets] == 2 * 3 * 128);
  CHECK(l.rank().buffers[s].bytes == 3 * 3 * 128);
  CHECK(l.rank().buffers[s].stride == 3 * 3 * 128);
}

TEST_CASE("pipelines turn once per unit, their bodies stand after them") {
  TestProgram t(1, 1);
  t.program.loops.push_back({.unit = 64, .chunks = 1});
  t.op_in(0, 0, Kind::sync, {});
  t.op_in(0, 0, Kind::copy, {local(kOutput, 0)}, {local(kInput, 0)}).loop = 0;
  t.op_in(0, 0, Kind::sync, {}).loop = 0;
  t.op_in(0, 0, Kind::sync, {});
  t.op_in(0, 1, Kind::sync, {}).loop = 0;
  Lowered l(t, 130);
  REQUIRE(l.ok);
  CHECK(l.rank().block_begin == std::vector<uint32_t>{0, 5, 7});
  CHECK(l.rank().ops[1].kind == StepKind::pipeline);
  CHECK(l.rank().ops[1].count == 2);
  CHECK(l.rank().ops[5].kind == StepKind::pipeline);
  CHECK(l.rank().ops[5].count == 1);
  REQUIRE(l.rank().loops.size() == 2);
  CHECK(l.rank().loops[0].rounds == 3);
}

TEST_CASE("scratch that holds units is as large as these, or as the message") {
  TestProgram t(1, 1);
  t.program.loops.push_back({.unit = 64, .chunks = 1});
  const uint32_t s = t.buffer(0, "s", 3);
  t.program.ranks[0].buffers[s].units = 2;
  t.program.ranks[0].buffers[s].unit = 64;
  t.op_in(0, 0, Kind::copy, {local(s, 2)}, {local(kInput, 0)}).loop = 0;
  for (const auto& [message, chunk] :
       {std::pair{0, 0}, {1, 16}, {100, 112}, {128, 128}, {999, 128}}) {
    Lowered l(t, message);
    REQUIRE(l.ok);
    CHECK(l.rank().buffers[s].bytes == uint64_t{3} * static_cast<uint32_t>(chunk));
    if (message > 0) CHECK(l.rank().offsets[0] == uint64_t{2} * static_cast<uint32_t>(chunk));
  }
}

TEST_CASE("offsets and sizes have 64 bits") {
  TestProgram t(1, 1000);
  const uint32_t s = t.buffer(0, "s", 1000, PacketFormat::LL16, 3);
  t.op_in(0, 0, Kind::copy, {local(kOutput, 999)}, {local(kInput, 999)});
  t.op_in(0, 0, Kind::copy_packets, {local(s, 999)}, {local(kInput, 999)});
  const uint64_t chunk = uint64_t{5} << 30;
  Lowered l(t, 1000 * chunk);
  REQUIRE(l.ok);
  CHECK(l.rank().offsets[0] == 999 * chunk);
  CHECK(l.rank().runs[0].length == chunk);
  CHECK(l.rank().offsets[2] == 2 * 999 * chunk);
  CHECK(l.rank().runs[1].size == chunk / 16);
  CHECK(l.rank().buffers[s].bytes == 2000 * chunk);
  CHECK(l.rank().bases[2].copy_stride == 2000 * chunk);
}

TEST_CASE("sizes beyond reason are refused") {
  TestProgram t(1, 1);
  t.buffer(0, "s", 1u << 31, PacketFormat::LL16, 1u << 31);
  t.op_in(0, 0, Kind::sync, {});
  Lowered l(t, uint64_t{1} << 40);
  CHECK_FALSE(l.ok);
  CHECK(l.text() == "error: a buffer would have 256 TiB or more\n");
}

TEST_CASE("pipelines of more rounds than a machine runs in a call are refused") {
  TestProgram t(1, 1);
  t.program.loops.push_back({.unit = 16, .chunks = 0x7fffffff});
  t.op_in(0, 0, Kind::sync, {}).loop = 0;
  Lowered most(t, 16);
  REQUIRE(most.ok);
  CHECK(most.rank().loops[0].rounds == 0x7fffffff);
  // Also where their number has more than 64 bits.
  for (const uint64_t bytes : {uint64_t{32}, uint64_t{1} << 20, uint64_t{1} << 47}) {
    Lowered l(t, bytes);
    CHECK_FALSE(l.ok);
    CHECK(l.text().find("a pipeline over 2147483647 chunks in units of 16 bytes has more than "
                        "2147483647 rounds for this message") != std::string::npos);
  }
}

TEST_CASE("barriers of the same blocks are one") {
  TestProgram t(1, 1);
  t.op_in(0, 0, Kind::barrier, {id(0), id(1)});
  t.op_in(0, 0, Kind::barrier, {id(0), id(2)});
  t.op_in(0, 1, Kind::barrier, {id(1), id(0)});
  t.op_in(0, 2, Kind::barrier, {id(2), id(0)});
  Lowered l(t, 16);
  REQUIRE(l.ok);
  CHECK(l.rank().barriers.size() == 2);
  CHECK(l.rank().targets == std::vector<uint32_t>{0, 1, 0, 1});
}

TEST_CASE("a switch has a base for every rank, found by name") {
  TestProgram t(2, 1);
  const uint32_t own = t.buffer(0, "stage", 1);
  t.buffer(1, "other", 1);
  t.buffer(1, "stage", 1);
  const uint32_t sw = t.switch_channel(0, "sw", {0, 1});
  t.op_in(0, 0, Kind::switch_broadcast, {far(sw, own, 0)}, {local(kInput, 0)});
  t.op_in(0, 0, Kind::switch_broadcast, {far(sw, kOutput, 0)}, {local(kInput, 0)});
  t.op_in(0, 0, Kind::switch_reduce, {local(kOutput, 0)}, {far(sw, own, 0)});
  Lowered l(t, 64);
  REQUIRE(l.ok);
  const device::DeviceOperand& stage = l.rank().operands[0];
  CHECK(stage.members == 2);
  CHECK(l.rank().bases[stage.base].buffer == own);
  CHECK(l.rank().bases[stage.base + 1].buffer == own + 1);
  CHECK(l.rank().operands[2].base != stage.base);
  CHECK(l.rank().operands[5].base == stage.base);
}

void check_refused(TestProgram t, const std::string& text, uint64_t bytes = 100) {
  Lowered l(t, bytes);
  CHECK_FALSE(l.ok);
  CHECK(l.text() == text);
}

TEST_CASE("what cannot run is refused") {
  SECTION("sizes that differ") {
    TestProgram t(1, 2);
    t.op_in(0, 0, Kind::copy, {local(kOutput, 0)}, {local(kInput, 1)});
    check_refused(t,
                  "error: the operands differ in size for this message\n"
                  "note: in 'copy output[0] <- input[1]' (rank 0, tb 0)\n");
  }
  SECTION("counts that differ") {
    TestProgram t(1, 2);
    t.op_in(0, 0, Kind::copy, {local(kOutput, 0)}, {local(kInput, 0, 2)});
    check_refused(t,
                  "error: operands of unequal chunk counts\n"
                  "note: in 'copy output[0] <- input[0..2]' (rank 0, tb 0)\n");
  }
  SECTION("a packet buffer in a plain op") {
    TestProgram t(1, 1);
    const uint32_t s = t.buffer(0, "s", 1, PacketFormat::LL16);
    t.op_in(0, 0, Kind::copy, {local(s, 0)}, {local(kInput, 0)});
    check_refused(t,
                  "error: a packet buffer in an op that moves plain bytes\n"
                  "note: in 'copy s[0] <- input[0]' (rank 0, tb 0)\n");
  }
  SECTION("a port and a memory channel in one op") {
    TestProgram t(2, 2);
    t.channel(0, ChannelKind::memory, "ch", {}, 1);
    t.channel(0, ChannelKind::port, "net", {}, 1);
    t.op_in(0, 0, Kind::put, {far(0, kOutput, 0), far(1, kOutput, 1)},
            {local(kInput, 0), local(kInput, 1)});
    check_refused(t,
                  "error: destinations through ports and others in one op\n"
                  "note: in 'put ch.output[0], net.output[1] <- input[0], input[1]' (rank 0, tb "
                  "0)\n");
  }
  SECTION("plain data to a port as packets") {
    TestProgram t(2, 1);
    t.channel(0, ChannelKind::port, "net", {}, 1);
    const uint32_t s = t.buffer(1, "s", 1, PacketFormat::LL16);
    t.op_in(0, 0, Kind::put_packets, {far(0, s, 0)}, {local(kInput, 0)});
    check_refused(t,
                  "error: a port sends packets as they are; copy_packets makes them\n"
                  "note: in 'put_packets net.s[0] <- input[0]' (rank 0, tb 0)\n");
  }
}

std::vector<StepKind> kinds_of(const RankProgram& rank) {
  std::vector<StepKind> kinds;
  for (const device::DeviceOp& op : rank.ops) kinds.push_back(op.kind);
  return kinds;
}

TEST_CASE("ops become the steps that the table says") {
  using enum StepKind;
  TestProgram t(2, 2);
  const uint32_t memory = t.channel(0, ChannelKind::memory, "ch", {}, 1);
  const uint32_t port = t.channel(0, ChannelKind::port, "net", {}, 1);
  uint32_t slots = 0;
  for (uint32_t r = 0; r < 2; ++r) slots = t.buffer(r, "slots", 2, PacketFormat::LL16);
  const auto steps = [&](Kind kind, std::initializer_list<Operand> dsts,
                         std::initializer_list<Operand> srcs = {}) {
    TestProgram one = t;
    one.op_in(0, 0, kind, dsts, srcs);
    Lowered l(one, 64);
    INFO(info(kind).name << '\n' << l.text());
    REQUIRE(l.ok);
    return kinds_of(l.rank());
  };
  const Operand in = local(kInput, 0), out = local(kOutput, 0), kept = local(slots, 0);
  using Kinds = std::vector<StepKind>;
  CHECK(steps(Kind::put, {far(memory, kOutput, 0)}, {in}) == Kinds{copy});
  CHECK(steps(Kind::get, {out}, {far(memory, kInput, 0)}) == Kinds{copy});
  CHECK(steps(Kind::reduce_send, {out, far(memory, kOutput, 0)}, {in, in}) == Kinds{reduce});
  CHECK(steps(Kind::unpack_packets, {out}, {kept}) == Kinds{move_packets});
  CHECK(steps(Kind::put_packets, {far(memory, slots, 0)}, {in}) == Kinds{move_packets});
  CHECK(steps(Kind::put_packets, {far(port, slots, 0)}, {kept}) == Kinds{post_packets});
  CHECK(steps(Kind::read_put_packets, {far(memory, slots, 0)}, {kept}) == Kinds{move_packets});
  CHECK(steps(Kind::read_put_packets, {far(port, slots, 0)}, {kept}) == Kinds{forward_packets});
  CHECK(steps(Kind::reduce_copy_packets, {out, local(slots, 1)}, {in, kept}) ==
        Kinds{reduce_packets});
  CHECK(steps(Kind::put_with_signal, {far(port, kOutput, 0)}, {in}) == Kinds{copy, signal});
  CHECK(steps(Kind::put_with_signal_and_flush, {far(port, kOutput, 0)}, {in}) ==
        Kinds{copy, signal, flush});
}

TEST_CASE("a put that signals and flushes does so on the channels of its destinations") {
  TestProgram t(2, 2);
  const uint32_t port = t.channel(0, ChannelKind::port, "net", {}, 1);
  const uint32_t other = t.channel(0, ChannelKind::port, "other", {}, 1);
  t.op_in(0, 0, Kind::put_with_signal_and_flush, {far(port, kOutput, 0), far(other, kOutput, 1)},
          {local(kInput, 0), local(kInput, 1)});
  Lowered l(t, 64);
  REQUIRE(l.ok);
  const RankProgram& rank = l.rank();
  REQUIRE(rank.ops.size() == 3);
  CHECK(rank.ops[0].count == 2);
  for (const uint32_t i : {1, 2}) {
    CHECK(rank.ops[i].source == 0);
    CHECK((rank.ops[i].flags & device::kPosts) != 0);
    REQUIRE(rank.ops[i].count == 2);
    CHECK(rank.targets[rank.ops[i].first] == port);
    CHECK(rank.targets[rank.ops[i].first + 1] == other);
  }
}

TEST_CASE("trees of more sources than go in line are marked as such") {
  for (const uint32_t sources : {2, 3, 4, 9}) {
    const TreePlan made = tree_plan(Kind::reduce, PacketFormat::none, sources);
    RankProgram rank;
    Diagnostics diagnostics;
    REQUIRE(lower_rank(made.plan.program, 0, rank, diagnostics));
    const auto sum = std::ranges::find(rank.ops, device::StepKind::reduce, &device::DeviceOp::kind);
    REQUIRE(sum != rank.ops.end());
    CHECK(((sum->flags & device::kTree) != 0) == (sources > 3));
  }
}

TEST_CASE("exact sums of more than two sources are marked as such, and of sums alone") {
  for (const uint32_t sources : {2, 3}) {
    const TreePlan made =
        tree_plan(Kind::reduce_send, PacketFormat::none, sources, Summation::exact);
    RankProgram rank;
    Diagnostics diagnostics;
    REQUIRE(lower_rank(made.plan.program, 0, rank, diagnostics));
    uint32_t exact = 0;
    for (const device::DeviceOp& op : rank.ops) {
      exact += adds_exactly(op) ? 1 : 0;
      if (!info(op.kind).adds) CHECK((op.flags & device::kExact) == 0);
    }
    CHECK(exact == (sources > 2 ? 1u : 0u));
  }
}

TEST_CASE("a plan whose sums are exact multiplies no floats") {
  const Program exact =
      tree_plan(Kind::reduce, PacketFormat::none, 3, Summation::exact).plan.program;
  Call call{.part_bytes = 48, .dtype = Dtype::f32, .reduce = ReduceOp::prod};
  Diagnostics diagnostics;
  CHECK_FALSE(check_call(exact, call, diagnostics));
  CHECK(diagnostics.all()[0].message ==
        "the plan's sums are exact, and no product of floats is: it cannot do 'prod'");
  call.dtype = call.accumulate = Dtype::i32;
  CHECK(check_call(exact, call, diagnostics));
  call.dtype = call.accumulate = Dtype::f32;
  const Program two = tree_plan(Kind::reduce, PacketFormat::none, 2, Summation::exact).plan.program;
  CHECK(check_call(two, call, diagnostics));
}

std::string refusal(const Program& program, Call call) {
  Diagnostics diagnostics;
  CHECK_FALSE(check_call(program, call, diagnostics));
  return render_text(diagnostics, Sources{}, 100);
}

TEST_CASE("calls that a plan cannot do") {
  TestProgram t(3, 2);
  Op& op = t.op_in(0, 0, Kind::reduce, {local(kOutput, 0)}, {local(kInput, 0), local(kInput, 0)});
  SECTION("average without a complete sum") {
    CHECK(refusal(t.program, {.part_bytes = 64, .reduce = ReduceOp::avg}) ==
          "error: 'avg' needs a plan that marks where a sum is complete\n");
    op.complete = true;
    Call call{.part_bytes = 64, .reduce = ReduceOp::avg};
    Diagnostics diagnostics;
    CHECK(check_call(t.program, call, diagnostics));
    CHECK(call.contributions == 3);
  }
  SECTION("another reduction than the plan's") {
    op.reduce = ReduceOp::max;
    CHECK(refusal(t.program, {.part_bytes = 64}) ==
          "error: the plan's reduction is always 'max'; it cannot do 'sum'\n");
  }
  SECTION("integers in sentinel packets") {
    t.buffer(1, "s", 1, PacketFormat::sentinel);
    CHECK(refusal(t.program, {.part_bytes = 64, .dtype = Dtype::u8, .accumulate = Dtype::u8}) ==
          "error: sentinel packets carry float types only, not 'u8': -0.0 marks a slot that holds "
          "no data\n");
  }
  SECTION("sizes") {
    CHECK(refusal(t.program, {.part_bytes = 6}) ==
          "error: 6 bytes of a rank are not a whole number of f32 elements\n");
    t.program.contract.even_only = true;
    CHECK(refusal(t.program, {.part_bytes = 48}) ==
          "error: the plan only takes messages that divide evenly: multiples of 32 bytes\n");
  }
  SECTION("accumulation types") {
    CHECK(refusal(t.program, {.part_bytes = 64, .dtype = Dtype::f64, .accumulate = Dtype::f32}) ==
          "error: 'f64' cannot be added up in 'f32'\n");
  }
}

TEST_CASE("accumulation types") {
  CHECK(can_accumulate(Dtype::f16, Dtype::f32));
  CHECK(can_accumulate(Dtype::f16, Dtype::f64));
  CHECK(can_accumulate(Dtype::i8, Dtype::i64));
  CHECK(can_accumulate(Dtype::u64, Dtype::u64));
  CHECK(can_accumulate(Dtype::f16, Dtype::f16));
  CHECK(can_accumulate(Dtype::e4m3, Dtype::f16));
  CHECK(can_accumulate(Dtype::e5m2, Dtype::f16));
  CHECK(can_accumulate(Dtype::e4m3b15, Dtype::f16));
  CHECK(can_accumulate(Dtype::bf16, Dtype::bf16));
  CHECK_FALSE(can_accumulate(Dtype::bf16, Dtype::f16));
  CHECK_FALSE(can_accumulate(Dtype::f16, Dtype::bf16));
  CHECK_FALSE(can_accumulate(Dtype::f16, Dtype::e5m2));
  CHECK_FALSE(can_accumulate(Dtype::e4m3, Dtype::e5m2));
  CHECK_FALSE(can_accumulate(Dtype::e4m3, Dtype::bf16));
  CHECK_FALSE(can_accumulate(Dtype::f32, Dtype::f16));
  CHECK_FALSE(can_accumulate(Dtype::i8, Dtype::f16));
  CHECK_FALSE(can_accumulate(Dtype::i8, Dtype::u32));
  CHECK_FALSE(can_accumulate(Dtype::i32, Dtype::f64));
  CHECK_FALSE(can_accumulate(Dtype::i32, Dtype::i8));
}

}  // namespace
}  // namespace mscclc
