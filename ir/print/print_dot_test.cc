// Pictures: which edges are drawn, and that they stay small.
#include <catch2/catch.hpp>

#include "ir/print/print.h"
#include "ir/program/test_programs.h"

using namespace mscclc;
using namespace mscclc::testing;

TEST_CASE("ops, their order and what orders them across blocks and ranks") {
  TestProgram t(2, 1);
  for (const uint32_t r : {0u, 1u}) {
    t.buffer(r, "inbox", 1, PacketFormat::LL16);
    t.channel(r, ChannelKind::memory, "ch", {1 - r}, 1 - r, 0);
  }
  t.switch_channel(1, "sw", {0, 1});
  t.semaphore(0, "done", {}, 1);
  t.op_in(0, 0, OpKind::put_packets, {far(0, 2, 0)}, {local(kInput, 0)});
  t.op_in(0, 0, OpKind::signal, {end_of(0)});
  t.op_in(0, 0, OpKind::release, {id(0)});
  t.op_in(0, 1, OpKind::acquire, {id(0)});
  t.op_in(0, 1, OpKind::acquire, {id(0)});
  t.op(0, OpKind::sync, {});
  t.op_in(1, 0, OpKind::wait, {end_of(0)});
  t.op_in(1, 0, OpKind::unpack_packets, {local(kOutput, 0)}, {local(2, 0)});
  t.op_in(1, 0, OpKind::barrier, {id(0), id(1)});
  t.op_in(1, 1, OpKind::barrier, {id(0), id(1)});
  CHECK(print_dot(t.program) == R"dot(digraph "test" {
  node [shape=box, fontname=monospace, fontsize=10]
  subgraph cluster_r0 {
    label="rank 0"
    r0_ch0 [shape=ellipse, label="ch[1]"]
      r0_op5 [label="sync"]
    subgraph cluster_r0_1 {
      label="tb 0"
      r0_op0 [label="put_packets ch[1].inbox[0] <- input[0]"]
      r0_op1 [label="signal ch[1]"]
      r0_op2 [label="release done"]
    }
    subgraph cluster_r0_2 {
      label="tb 1"
      r0_op3 [label="acquire done"]
      r0_op4 [label="acquire done"]
    }
  }
  subgraph cluster_r1 {
    label="rank 1"
    r1_ch0 [shape=ellipse, label="ch[0]"]
    r1_ch1 [shape=ellipse, label="sw = switch(0..2)"]
    subgraph cluster_r1_0 {
      label="tb 0"
      r1_op0 [label="wait ch[0]"]
      r1_op1 [label="unpack_packets output[0] <- inbox[0]"]
      r1_op2 [label="barrier 0..2"]
    }
    subgraph cluster_r1_1 {
      label="tb 1"
      r1_op3 [label="barrier 0..2"]
    }
  }
  r0_ch0 -> r1_ch0 [dir=none, style=dotted, label=memory]
  r0_op0 -> r0_op1
  r0_op1 -> r0_op2
  r0_op3 -> r0_op4
  r1_op0 -> r1_op1
  r1_op1 -> r1_op2
  r0_op2 -> r0_op4 [color=green]
  r0_op1 -> r1_op0 [color=blue]
  r1_op2 -> r1_op3 [color=grey, dir=none]
  r0_op0 -> r1_op1 [color=red]
}
)dot");
}

TEST_CASE("of a large program the channels are drawn") {
  TestProgram t(3, 1);
  for (int i = 0; i < 1000; ++i) t.op_in(0, 0, OpKind::sync, {});
  t.channel(0, ChannelKind::memory, "ch", {0}, 1, 0);
  t.channel(1, ChannelKind::memory, "ch", {0}, 0, 0);
  t.channel(0, ChannelKind::memory, "ch", {1}, 1);
  t.channel(2, ChannelKind::port, "net", {}, 0);
  CHECK(print_dot(t.program) == R"dot(digraph "test" {
  // 1000 ops are too many to draw: only the channels are shown
  r0 [label="rank 0"]
  r0 -> r1 [dir=none, label="2 memory"]
  r1 [label="rank 1"]
  r2 [label="rank 2"]
  r2 -> r0 [dir=none, label="1 port"]
}
)dot");
}

TEST_CASE("drawings are bounded") {
  TestProgram t(100, 1);
  for (int i = 0; i < 1000; ++i) t.op_in(0, 0, OpKind::sync, {});
  for (uint32_t r = 0; r < 100; ++r) {
    for (uint32_t p = 0; p < 100; ++p) {
      if (p != r) t.channel(r, ChannelKind::memory, "ch", {p}, p, r < p ? r : r - 1);
    }
  }
  const std::string text = print_dot(t.program);
  CHECK(std::count(text.begin(), text.end(), '\n') < 2200);
  CHECK(text.find("not all channels are drawn") != std::string::npos);
}
