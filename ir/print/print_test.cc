// The text of the IR, whole programs at a time. That it reads back is tested with the compiler.
#include "ir/print/print.h"

#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"

using namespace mscclc;
using namespace mscclc::testing;

namespace {

/// A ring of two ranks before any pass: a pipeline over two blocks, locations, a semaphore.
TestProgram ring() {
  TestProgram t(2, 2);
  Program& p = t.program;
  p.name = "ring";
  p.description = "A ring.\n\nTwo ranks.";
  p.files = {"ring.mscl", "stages \"x\".mscl"};
  p.select.sizes = {1024, 32767};
  p.launch.threads = 512;
  p.loops = {{512 << 10, 1}};
  const uint32_t put = t.site(0, 18, 25, {"r", "s"}), wait = t.site(1, 4, 5);
  for (const uint32_t r : {0u, 1u}) {
    const uint32_t inbox = t.buffer(r, "inbox", 3);
    t.channel(r, ChannelKind::memory, "next", {}, 1 - r, 1);
    t.channel(r, ChannelKind::memory, "prev", {}, 1 - r, 0);
    t.semaphore(r, "done", {0, -1}, r);
    Op& first = t.op_in(r, 0, OpKind::put, {far(0, inbox, 1, 2)}, {local(kInput, 0, 2)});
    first.loop = 0;
    t.located(first, put, {r, 0});
    t.located(first, put, {r, 1});
    Op& second = t.op_in(r, 0, OpKind::signal, {end_of(0), end_of(1)});
    second.loop = 0;
    second.relaxed = true;
    Op& third = t.op_in(r, 1, OpKind::wait, {end_of(1)});
    third.loop = 0;
    t.located(third, wait);
    t.op_in(r, 1, OpKind::release, {id(0)});
  }
  return t;
}

}  // namespace

TEST_CASE("a program in written order") {
  CHECK(print_ir(ring().program) == R"(ir 1 from "ring.mscl"
# A ring.
#
# Two ranks.
program    ring
collective allreduce(ranks: 2, chunks: 2)
select     sizes: 1KiB..32KiB
launch     threads: 512

rank 0 {
  buffer inbox[3]
  channel next = memory(1) to prev
  channel prev = memory(1) to next
  semaphore done[0, -1]

  pipeline unit: 512KiB {
    tb 0 {
      put next.inbox[1..3] <- input[0..2]  @18:25(r=0, s=0) @18:25(r=0, s=1)
      signal next, prev relaxed
    }
    tb 1 {
      wait prev  @"stages \"x\".mscl":4:5
    }
  }
  tb 1 {
    release done[0, -1]
  }
}

rank 1 {
  buffer inbox[3]
  channel next = memory(0) to prev
  channel prev = memory(0) to next
  semaphore done[0, -1] = 1

  pipeline unit: 512KiB {
    tb 0 {
      put next.inbox[1..3] <- input[0..2]  @18:25(r=1, s=0) @18:25(r=1, s=1)
      signal next, prev relaxed
    }
    tb 1 {
      wait prev  @"stages \"x\".mscl":4:5
    }
  }
  tb 1 {
    release done[0, -1]
  }
}
)");
}

TEST_CASE("a split program has one section per block, empty ones too") {
  TestProgram t(1, 1);
  t.program.split = true;
  t.program.loops = {{1 << 30, 2}, {1000, 1}};
  t.op_in(0, 1, OpKind::sync, {});
  t.op_in(0, 1, OpKind::sync, {}).loop = 0;
  t.op_in(0, 1, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)}).loop = 1;
  t.op_in(0, 1, OpKind::sync, {});
  t.op_in(0, 3, OpKind::barrier, {id(1), id(3)});
  t.program.ranks[0].blocks = 5;
  CHECK(print_ir(t.program) == R"(ir 1
program    test
collective allreduce(ranks: 1)
launch     split: true

rank 0 {
  tb 0 {}
  tb 1 {
    sync
    pipeline unit: 1GiB, chunks: 2 {
      sync
    }
    pipeline unit: 1000 {
      copy output[0] <- input[0]
    }
    sync
  }
  tb 2 {}
  tb 3 {
    barrier [1, 3]
  }
  tb 4 {}
}
)");
}

TEST_CASE("groups, ops without place, interrupted loops, blocks that only exist") {
  TestProgram t(1, 4);
  Program& p = t.program;
  p.loops = {{64, 1}, {64, 1}};
  const auto group = [&](std::vector<int64_t> blocks) {
    p.groups.push_back(p.append(blocks));
    return static_cast<uint32_t>(p.groups.size() - 1);
  };
  const auto copy = [&]() -> Op& {
    return t.op(0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  };
  copy();
  copy().group = group({1, 2, 3});
  copy().group = group({1, 2, 3});
  copy().group = group({0, 3});
  copy().loop = 0;
  copy().loop = 1;
  copy().loop = 0;
  Op& last = copy();
  last.loop = 1;
  last.group = 0;
  last.part = 1;
  last.parts = 3;
  p.ranks[0].blocks = 9;
  const std::string text = print_ir(p);
  CHECK(text.substr(text.find("rank 0")) == R"(rank 0 {
  copy output[0] <- input[0]
  group 1..4 {
    copy output[0] <- input[0]
    copy output[0] <- input[0]
  }
  group [0, 3] {
    copy output[0] <- input[0]
  }
  pipeline unit: 64, loop: 0 {
    copy output[0] <- input[0]
  }
  pipeline unit: 64, loop: 1 {
    copy output[0] <- input[0]
  }
  pipeline unit: 64, loop: 0 {
    copy output[0] <- input[0]
  }
  pipeline unit: 64, loop: 1 {
    group 1..4 {
      copy output[0] <- input[0] part: [1, 3]
    }
  }
  tb 8 {}
}
)");
}

TEST_CASE("every kind of declaration and option") {
  TestProgram t(2, 4);
  const uint32_t inbox = t.buffer(0, "inbox", 4, PacketFormat::LL128, 2);
  t.buffer(0, "spare", 0);
  t.buffer(0, "twice", 1, PacketFormat::none, 2);
  const uint32_t sw = t.switch_channel(0, "sw", {0, 1});
  t.channel(0, ChannelKind::port, "net", {3}, 1);
  Op& op = t.op(0, OpKind::reduce_packets, {local(kOutput, 0)},
                {local(inbox, 0), local(kInput, 0), local(inbox, 1)});
  op.reduce = ReduceOp::max;
  op.summation = Summation::tree;
  op.complete = true;
  t.op(0, OpKind::switch_reduce_broadcast, {far(sw, kOutput, 1)}, {far(sw, kInput, 1)});
  t.op(0, OpKind::barrier, {id(2), id(3), id(4)});
  const std::string text = print_ir(t.program);
  CHECK(text.substr(text.find("rank 0"), text.find("\nrank 1") - text.find("rank 0")) ==
        R"(rank 0 {
  buffer inbox[4] packets: LL128, copies: 2
  buffer spare[0]
  buffer twice[1] copies: 2
  channel sw = switch(0..2)
  channel net[3] = port(1)

  reduce_packets output[0] <- inbox[0], input[0], inbox[1] op: max, tree, complete
  switch_reduce_broadcast sw.output[1] <- sw.input[1]
  barrier 2..5
}
)");
  CHECK(text.ends_with("\nrank 1 {\n}\n"));
}

TEST_CASE("header: everything that is not the default") {
  Program p;
  p.name = "put";  // an op: not free as a name
  p.split = p.foreign = true;
  p.contract.kind = CollectiveKind::broadcast;
  p.contract.ranks = 4;
  p.contract.chunks = {2, 3};
  p.contract.root = 2;
  p.contract.in_place = InPlace::no;
  p.contract.even_only = true;
  p.select.sizes.min = 3;
  p.select.nodes = {2, 2};
  p.select.gpus_per_node = {0, 8};
  p.select.dtypes = {Dtype::f16, Dtype::e4m3b15};
  p.select.ops = {ReduceOp::sum, ReduceOp::min};
  p.select.tags = {"fast", "a b", "8x", "for"};
  p.select.priority = -3;
  p.launch = {1, 2, Policy::blocked, 128, false, false, true};
  CHECK(print_ir(p) == R"(ir 1
program    "put"
collective broadcast(ranks: 4, chunks: [2, 3], root: 2, inplace: false, even: true)
select     sizes: 3.., nodes: 2, gpus_per_node: 0..9, dtypes: [f16, e4m3b15], ops: [sum, min], )"
                       R"(tags: [fast, "a b", "8x", "for"], priority: -3
launch     threads: 1, instances: 2, policy: blocked, align: 128, fuse: false, )"
                       R"(auto_sync: false, reuse_scratch: true, split: true, foreign: true
)");
  p = {};
  CHECK(print_ir(p) == "ir 1\nprogram    \"\"\n");
}

TEST_CASE("header: contracts with members of their own") {
  Program p;
  p.name = "x";
  const auto collective = [&p] {
    const std::string text = print_ir(p);
    return text.substr(text.find("collective"));
  };
  p.contract.ranks = 3;
  p.contract.kind = CollectiveKind::sendrecv;
  p.contract.shift = -1;
  CHECK(collective() == "collective sendrecv(ranks: 3, shift: -1)\n");
  p.contract.kind = CollectiveKind::alltoallv;
  p.contract.counts = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  p.contract.in_place = InPlace::yes;
  CHECK(collective() ==
        "collective alltoallv(ranks: 3, counts: [0, 1, 2, 3, 4, 5, 6, 7, 8], inplace: true)\n");
  p.contract = {};
  p.contract.kind = CollectiveKind::custom;
  p.contract.ranks = 3;
  p.contract.input = {1, 4};
  p.contract.output = {2};
  p.contract.promises = {{{0, 0}, false, {{1, 3}}},
                         {{0, 1}, true, {{0, 2}, {1, 2}, {2, 2}}},
                         {{1, 0}, true, {{2, 2}, {0, 2}}},
                         {{1, 1}, true, {{2, 2}, {0, 1}}},
                         {{2, 0}, true, {{2, 2}}}};
  CHECK(collective() ==
        "collective custom(ranks: 3, input: [1, 4], output: 2)\n"
        "ensure     output[0] at 0 = input[3] at 1\n"
        "ensure     output[1] at 0 = reduce(input[2] at p for p in 0..3)\n"
        "ensure     output[0] at 1 = reduce(input[2] at p for p in [2, 0])\n"
        "ensure     output[1] at 1 = reduce(input[2] at 2, input[1] at 0)\n"
        "ensure     output[0] at 2 = reduce(input[2] at p for p in 2..3)\n");
}

TEST_CASE("single ops and their places") {
  TestProgram t = ring();
  const Op& put = t.program.ranks[1].ops[0];
  CHECK(print_op(t.program, 1, put) == "put next.inbox[1..3] <- input[0..2]");
  CHECK(print_location(t.program, put) == "ring.mscl:18:25 (r = 1, s = 0)");
  CHECK(print_bindings(t.program, put) == "r = 1, s = 0");
  const Op& wait = t.program.ranks[1].ops[2];
  CHECK(print_op(t.program, 1, wait) == "wait prev");
  CHECK(print_location(t.program, wait) == "stages \"x\".mscl:4:5");
  CHECK(print_bindings(t.program, wait).empty());
  CHECK(print_location(t.program, Op{}).empty());
  CHECK(print_op(t.program, 0, t.program.ranks[0].ops[3]) == "release done[0, -1]");
}
