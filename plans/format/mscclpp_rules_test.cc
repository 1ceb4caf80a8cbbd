// Every reason for a long name: a program that has it, which the target of MSCCL++'s executor
// refuses, and which is otherwise written with the long name and read back.
#include "plans/format/wire/mscclpp_rules.h"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>

#include "ir/print/print.h"
#include "ir/program/applied.h"
#include "ir/verify/verify.h"
#include "plans/format/plan_json.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using namespace testing;

constexpr uint32_t kStage = kFirstScratch, kSlots = kFirstScratch + 1;
constexpr uint32_t kMem = 0, kNet = 1, kSw = 2;

struct RuleCase {
  const char* name;  ///< the long name that is written
  std::function<void(TestProgram&)> build;
};

/// Two ranks with a buffer, packets and a channel of each kind; ops are to be added to rank 0.
TestProgram base(uint32_t slot_copies = 1, PacketFormat format = PacketFormat::LL16) {
  TestProgram t(2, 2);
  t.program.split = true;
  t.program.contract.even_only = true;
  for (const uint32_t r : {0u, 1u}) {
    t.buffer(r, "stage", 2);
    t.buffer(r, "slots", 2, format, slot_copies);
    t.channel(r, ChannelKind::memory, "ch", {}, 1 - r, kMem);
    t.channel(r, ChannelKind::port, "net", {}, 1 - r, kNet);
    t.switch_channel(r, "sw", {0, 1});
  }
  return t;
}

/// An op of rank 0.
Op& add(TestProgram& t, OpKind kind, std::initializer_list<Operand> dsts,
        std::initializer_list<Operand> srcs = {}) {
  return t.op_in(0, 0, kind, dsts, srcs);
}

void add_lists(TestProgram& t, OpKind kind, const std::vector<Operand>& dsts,
               const std::vector<Operand>& srcs) {
  Op op;
  op.kind = kind;
  op.block = 0;
  t.program.set_operands(op, dsts, srcs);
  t.program.ranks[0].ops.push_back(op);
  t.program.ranks[0].blocks = 1;
}

/// Many channels or semaphores.
void add_many(TestProgram& t, OpKind kind, size_t count, Operand dst) {
  add_lists(t, kind, std::vector<Operand>(count, dst), {});
}

/// Many moves of one chunk, each to a chunk of its own.
void add_moves(TestProgram& t, OpKind kind, uint32_t count, uint32_t channel, Operand src) {
  std::vector<Operand> dsts;
  const uint32_t wide = t.buffer(0, "wide", count);
  t.buffer(1, "wide", count);
  for (uint32_t i = 0; i < count; ++i) dsts.push_back(far(channel, wide, i));
  add_lists(t, kind, dsts, std::vector<Operand>(count, src));
}

void add_loop(TestProgram& t, Op& op) {
  op.loop = static_cast<uint32_t>(t.program.loops.size());
  t.program.loops.push_back({1024, 1});
}

/// A second port to the same rank.
uint32_t add_second_port(TestProgram& t) {
  for (const uint32_t r : {0u, 1u}) {
    const auto next = static_cast<uint32_t>(t.program.ranks[r].channels.size());
    t.channel(r, ChannelKind::port, "net2", {}, 1 - r, next);
  }
  return static_cast<uint32_t>(t.program.ranks[0].channels.size() - 1);
}

/// One op that puts through port `first`, then through kNet.
Op& put_through_two(TestProgram& t, uint32_t first) {
  return add(t, OpKind::put, {far(first, kStage, 0), far(kNet, kStage, 1)},
             {local(kStage, 0), local(kStage, 1)});
}

const Operand kInput0 = local(kInput, 0);

/// The program's contract is `then: twice`, of rows; the op, of rank 0, is that function of its
/// sum.
void apply_twice(TestProgram& t, Op& op) {
  Contract& c = t.program.contract;
  c.even_only = false;
  c.columns = 64;
  c.then = 0;
  rows::Function twice;
  twice.name = "twice";
  twice.nodes = {
      {.op = rows::Op::param, .spread = rows::Spread::columns},
      {.op = rows::Op::add, .spread = rows::Spread::columns, .args = {0, 0, kNone, kNone}}};
  twice.params = {{.name = "x", .node = 0}};
  twice.outputs = {{.name = "y", .node = 1}};
  t.program.functions = {twice};
  const std::vector<RowValue> first = {{}};
  op.applied = t.program.append(encode_applied(0, 0, first, first));
}

const std::multimap<std::string, RuleCase> kCases = {
    {"no_such_op",
     {"switch_reduce",
      [](TestProgram& t) {
        add(t, OpKind::switch_reduce, {local(kOutput, 0)}, {far(kSw, kInput, 0)});
      }}},
    {"row_function",
     {"apply",
      [](TestProgram& t) {
        apply_twice(t, add(t, OpKind::apply, {local(kOutput, 0)}, {local(kStage, 0)}));
      }}},
    {"row_function",
     {"reduce",
      [](TestProgram& t) {
        apply_twice(t, add(t, OpKind::reduce, {local(kOutput, 0)}, {kInput0, local(kStage, 0)}));
      }}},
    {"row_function",
     {"reduce_packets",
      [](TestProgram& t) {
        apply_twice(
            t, add(t, OpKind::reduce_packets, {local(kOutput, 0)}, {kInput0, local(kSlots, 0)}));
      }}},
    {"no_chunks",
     {"mscclc_signal",
      [](TestProgram& t) {
        t.program.contract.kind = CollectiveKind::custom;
        t.program.contract.input = {2};
        t.program.contract.output = {0};
        for (Rank& rank : t.program.ranks) rank.buffers[kOutput].chunks = 0;
        add(t, OpKind::signal, {end_of(kMem)});
      }}},
    {"flush_ignored",
     {"mscclc_flush", [](TestProgram& t) { add(t, OpKind::flush, {end_of(kNet)}); }}},
    {"get_offsets",
     {"mscclc_get",
      [](TestProgram& t) { add(t, OpKind::get, {local(kStage, 0)}, {far(kMem, kStage, 1)}); }}},
    {"get_offsets",
     {"mscclc_get",
      [](TestProgram& t) { add(t, OpKind::get, {local(kOutput, 0)}, {far(kMem, kInput, 0)}); }}},
    {"port_packets",
     {"put_packets",
      [](TestProgram& t) {
        add(t, OpKind::put_packets, {far(kNet, kSlots, 0)}, {local(kSlots, 1)});
      }}},
    {"port_source",
     {"put_with_signal",
      [](TestProgram& t) { add(t, OpKind::put_with_signal, {far(kNet, kStage, 0)}, {kInput0}); }}},
    {"signal_order",
     {"mscclc_signal",
      [](TestProgram& t) {
        put_through_two(t, add_second_port(t));
        add(t, OpKind::signal, {end_of(kNet)});
      }}},
    {"signal_order",
     {"mscclc_signal",
      [](TestProgram& t) {  // one port twice, so by two threads
        put_through_two(t, kNet);
        add(t, OpKind::signal, {end_of(kNet)});
      }}},
    {"signal_order",
     {"mscclc_signal",
      [](TestProgram& t) {  // what the round before has put
        const uint32_t second = add_second_port(t);
        add_loop(t, add(t, OpKind::signal, {end_of(kNet)}));
        put_through_two(t, second).loop = 0;
      }}},
    {"mixed_sources",
     {"mscclc_put",
      [](TestProgram& t) {
        add(t, OpKind::put, {far(kMem, kOutput, 0), far(kMem, kOutput, 1)},
            {kInput0, local(kStage, 1)});
      }}},
    {"reduction",
     {"reduce",
      [](TestProgram& t) {
        add(t, OpKind::reduce, {local(kOutput, 0)}, {kInput0, local(kStage, 0)}).reduce =
            ReduceOp::max;
      }}},
    {"tree",
     {"reduce",
      [](TestProgram& t) {
        add(t, OpKind::reduce, {local(kOutput, 0)}, {kInput0, local(kStage, 0)}).summation =
            Summation::tree;
      }}},
    {"exact",
     {"reduce",
      [](TestProgram& t) {
        add(t, OpKind::reduce, {local(kOutput, 0)}, {kInput0, local(kStage, 0)}).summation =
            Summation::exact;
      }}},
    {"part_in_pipeline",
     {"mscclc_copy",
      [](TestProgram& t) {
        Op& op = add(t, OpKind::copy, {local(kOutput, 0)}, {kInput0});
        op.parts = 2;
        add_loop(t, op);
      }}},
    {"shared_reduce",
     {"reduce",
      [](TestProgram& t) {
        t.program.launch.reuse_scratch = true;
        add(t, OpKind::reduce, {local(kOutput, 0)}, {kInput0, local(kStage, 0)});
      }}},
    {"shared_remote",
     {"mscclc_put",
      [](TestProgram& t) {
        t.program.launch.reuse_scratch = true;
        add(t, OpKind::put, {far(kMem, kOutput, 0)}, {kInput0});
      }}},
    {"double_scratch",
     {"mscclc_put",
      [](TestProgram& t) {
        for (Rank& rank : t.program.ranks) rank.buffers[kSlots].copies = 2;
        add(t, OpKind::put, {far(kMem, kStage, 0)}, {kInput0});
      }}},
    {"uneven_halves",
     {"put_packets",
      [](TestProgram& t) {
        t.program.contract.kind = CollectiveKind::alltoallv;
        t.program.contract.chunks = {1};
        t.program.contract.counts = {1, 1, 1, 2};
        t.program.contract.in_place = InPlace::no;
        for (const uint32_t b : {kInput, kOutput}) t.program.ranks[1].buffers[b].chunks = 3;
        for (Rank& rank : t.program.ranks) rank.buffers[kSlots].copies = 2;
        add(t, OpKind::put_packets, {far(kMem, kSlots, 0)}, {kInput0});
      }}},
    {"copies",
     {"mscclc_copy",
      [](TestProgram& t) {
        t.program.ranks[0].buffers[kStage].copies = 3;
        add(t, OpKind::copy, {local(kStage, 0)}, {kInput0});
      }}},
    {"credits",
     {"mscclc_wait",
      [](TestProgram& t) {
        t.program.ranks[0].channels[kNet].credits = 1;
        add(t, OpKind::wait, {end_of(kNet)});
      }}},
    {"units",
     {"mscclc_copy",
      [](TestProgram& t) {
        Buffer& stage = t.program.ranks[0].buffers[kStage];
        stage.units = 2;
        stage.unit = 1024;
        add_loop(t, add(t, OpKind::copy, {local(kStage, 0)}, {kInput0}));
      }}},
    {"packet_format",
     {"copy_packets",
      [](TestProgram& t) {
        for (Rank& rank : t.program.ranks) rank.buffers[kSlots].packets = PacketFormat::sentinel;
        add(t, OpKind::copy_packets, {local(kSlots, 0)}, {kInput0});
      }}},
    {"plain_in_the_middle",
     {"reduce_packets",
      [](TestProgram& t) {
        add(t, OpKind::reduce_packets, {local(kOutput, 0)},
            {local(kSlots, 0), kInput0, local(kSlots, 1)});
      }}},
    {"many_unpacked",
     {"unpack_packets",
      [](TestProgram& t) {
        add(t, OpKind::unpack_packets, {local(kOutput, 0), local(kOutput, 1)},
            {local(kSlots, 0), local(kSlots, 1)});
      }}},
    {"many_operands",
     {"mscclc_put", [](TestProgram& t) { add_moves(t, OpKind::put, 11, kMem, kInput0); }}},
    {"many_channels",
     {"mscclc_put", [](TestProgram& t) { add_moves(t, OpKind::put, 9, kNet, local(kStage, 0)); }}},
    {"few_threads",
     {"mscclc_signal",
      [](TestProgram& t) {
        t.program.launch.threads = 32;
        add_many(t, OpKind::signal, 33, end_of(kMem));
      }}},
    {"many_semaphores",
     {"release",
      [](TestProgram& t) {
        t.semaphore(0, "s", {});
        add_many(t, OpKind::release, 17, id(0));
      }}},
    {"block_channels",
     {"mscclc_signal",
      [](TestProgram& t) {
        for (int64_t k = 0; k < 17; ++k) {
          const uint32_t c = t.channel(0, ChannelKind::memory, "more", {k}, 1);
          add(t, OpKind::signal, {end_of(c)});
        }
      }}},
    {"block_buffers",
     {"mscclc_put",
      [](TestProgram& t) {
        t = TestProgram(7, 2);
        t.program.split = true;
        t.program.contract.in_place = InPlace::yes;
        for (uint32_t r = 0; r < 7; ++r) t.buffer(r, "stage", 2);
        for (uint32_t peer = 1; peer < 7; ++peer) {
          const uint32_t c = t.channel(0, ChannelKind::memory, "ch", {peer}, peer);
          for (const uint32_t b : {kInput, kOutput, kStage}) {
            add(t, OpKind::put, {far(c, b, 0)}, {kInput0});
          }
        }
      }}},
    {"many_barriers",
     {"mscclc_barrier",
      [](TestProgram& t) {
        for (uint32_t b = 0; b < 17; ++b) t.op_in(0, b, OpKind::barrier, {id(b)});
      }}},
    {"many_ports",
     {"mscclc_wait",
      [](TestProgram& t) {
        for (int64_t k = 0; k < 1024; ++k) t.channel(0, ChannelKind::port, "more", {k}, 1);
        add(t, OpKind::wait, {end_of(kNet)});
      }}},
    {"switch_order",
     {"switch_broadcast",
      [](TestProgram& t) {
        t.program.ranks[1].channels[kSw].label.name = t.program.intern("swap");
        t.op_in(1, 0, OpKind::switch_broadcast, {far(kSw, kOutput, 0)}, {kInput0});
      }}},
    {"switch_layout",
     {"switch_broadcast",
      [](TestProgram& t) {
        std::swap(t.program.ranks[0].buffers[kStage].name, t.program.ranks[0].buffers[kSlots].name);
        std::swap(t.program.ranks[0].buffers[kStage].packets,
                  t.program.ranks[0].buffers[kSlots].packets);
        t.buffer(0, "late", 2);
        std::swap(t.program.ranks[0].buffers[kSlots], t.program.ranks[0].buffers[kSlots + 1]);
        add(t, OpKind::switch_broadcast, {far(kSw, kSlots + 1, 0)}, {kInput0});
      }}},
};

/// True if the target of MSCCL++'s executor refuses the program for this reason, among others.
bool refused_for(const Program& program, const std::string& fault) {
  Diagnostics diagnostics;
  if (write_plan(program, *find_target("mscclpp", diagnostics), diagnostics)) return false;
  return std::any_of(diagnostics.all().begin(), diagnostics.all().end(),
                     [&](const Diagnostic& d) { return d.code == "mscclpp-" + fault; });
}

void check(const std::string& fault, const RuleCase& c) {
  TestProgram t = base();
  c.build(t);
  Diagnostics diagnostics;
  const bool right = verify_structure(t.program, diagnostics);
  INFO(fault << " " << render_text(diagnostics, Sources()));
  REQUIRE(right);
  CHECK(refused_for(t.program, fault));
  const auto plan = write_plan(t.program, *find_target("host", diagnostics), diagnostics);
  REQUIRE(plan);
  CHECK(plan->find("{\"name\":\"" + std::string(c.name) + "\"") != std::string::npos);
  const auto again = read_plan(*plan, "plan.json", diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(again);
  CHECK(print_ir(*again) == print_ir(t.program));
}

}  // namespace

TEST_CASE("each fault of MSCCL++'s executor gives a long name") {
  for (const auto& [fault, c] : kCases) check(fault, c);
}

TEST_CASE("all faults are tried") {
  for (size_t f = 1; f < kPeerFaults; ++f) {  // 0 is none
    const std::string fault(name(static_cast<MscclppFault>(f)));
    INFO(fault);
    CHECK(kCases.count(fault) > 0);
  }
}

TEST_CASE("what MSCCL++'s executor runs rightly has its wire name") {
  TestProgram t = base();
  t.program.launch.threads = 64;
  add(t, OpKind::get, {local(kStage, 0)}, {far(kMem, kStage, 0)});
  add(t, OpKind::put_with_signal, {far(kNet, kOutput, 0)}, {local(kStage, 0)});
  add(t, OpKind::read_put_packets, {far(kNet, kSlots, 0)}, {local(kSlots, 1)});
  add(t, OpKind::reduce_packets, {local(kOutput, 0)}, {kInput0, local(kSlots, 0)});
  add(t, OpKind::reduce_packets, {local(kOutput, 0)}, {local(kSlots, 0), kInput0});
  add(t, OpKind::put, {far(kMem, kStage, 0)}, {kInput0});
  add(t, OpKind::switch_reduce_broadcast, {far(kSw, kStage, 0)}, {far(kSw, kStage, 0)});
  add_many(t, OpKind::signal, 12, end_of(kMem));
  const uint32_t second = add_second_port(t);
  add(t, OpKind::sync, {});
  put_through_two(t, second);
  add(t, OpKind::signal, {end_of(second), end_of(kNet)});  // by the same threads
  put_through_two(t, second);
  add(t, OpKind::sync, {});
  add(t, OpKind::signal, {end_of(kNet)});
  Target wire_only;
  wire_only.mscclpp_wire_only = true;
  Diagnostics diagnostics;
  CHECK(write_plan(t.program, wire_only, diagnostics));
  INFO(render_text(diagnostics, Sources()));
  CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("long names are no wire names and name their op") {
  for (const OpInfo& row : op_table()) {
    for (const bool relaxed : {false, true}) {
      const std::string_view name = long_name(row.kind, relaxed);
      CHECK(name.empty() == (relaxed && row.relaxed.empty()));
      if (name.empty()) continue;
      bool found_relaxed = false;
      CHECK_FALSE(find_wire_op(name, found_relaxed));
      CHECK(find_long_name(name, found_relaxed) == row.kind);
      CHECK(found_relaxed == relaxed);
    }
  }
}

TEST_CASE("the message says what would happen, and where") {
  TestProgram t = base();
  t.program.files = {"a.mscl"};
  Op& op = add(t, OpKind::flush, {end_of(kNet)});
  t.located(op, t.site(0, 3, 5, {"r"}), {0});
  Diagnostics diagnostics;
  CHECK_FALSE(write_plan(t.program, *find_target("mscclpp", diagnostics), diagnostics));
  CHECK(render_text(diagnostics, Sources()) ==
        "a.mscl:3:5: error: target 'mscclpp' cannot run 'flush' here: MSCCL++'s executor does "
        "nothing for a flush; use put_with_signal_and_flush\n"
        "a.mscl:3:5: note: when r = 0\n"
        "a.mscl:3:5: note: in 'flush net' (rank 0, tb 0)\n");
}

}  // namespace mscclc
