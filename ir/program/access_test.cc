// The accesses of ops, read off the op table.
#include "ir/program/access.h"

#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"

using namespace mscclc;
using namespace mscclc::testing;

namespace {

/// "r1 buffer2 [3+1] w" with p for packets and d for deferred.
std::vector<std::string> accesses(const Program& program, uint32_t rank, const Op& op) {
  std::vector<Access> list;
  append_accesses(program, rank, op, list);
  std::vector<std::string> out;
  for (const Access& a : list) {
    std::string text = "r" + std::to_string(a.rank) + " b" + std::to_string(a.buffer) + " " +
                       std::to_string(a.first) + "+" + std::to_string(a.count) + " ";
    text += a.write ? 'w' : 'r';
    if (a.packets) text += 'p';
    if (a.deferred) text += 'd';
    out.push_back(text);
  }
  return out;
}

using Texts = std::vector<std::string>;

/// Two ranks with a plain and a packet buffer each; rank 0 has a channel of every kind.
struct Pair : TestProgram {
  uint32_t scratch, packets, memory, port, sw;
  Pair() : TestProgram(2, 4) {
    buffer(1, "elsewhere", 1);  // rank 1's buffers have other indexes
    for (const uint32_t r : {0u, 1u}) {
      scratch = buffer(r, "scratch", 4);
      packets = buffer(r, "packets", 4, PacketFormat::LL16);
    }
    memory = channel(0, ChannelKind::memory, "mem", {}, 1);
    port = channel(0, ChannelKind::port, "net", {}, 1);
    sw = switch_channel(0, "sw", {0, 1});
  }
};

}  // namespace

TEST_CASE("a put reads here and writes there") {
  Pair p;
  const Op op = p.op(0, OpKind::put, {far(p.memory, 3, 1, 2)}, {local(kInput, 0, 2)});
  CHECK(accesses(p.program, 0, op) == Texts{"r0 b0 0+2 r", "r1 b3 1+2 w"});
}

TEST_CASE("a port reads its source later, unless the op flushes") {
  Pair p;
  const Op put = p.op(0, OpKind::put, {far(p.port, 1, 0)}, {local(kInput, 0)});
  CHECK(accesses(p.program, 0, put) == Texts{"r0 b0 0+1 rd", "r1 b1 0+1 w"});
  const Op flushed =
      p.op(0, OpKind::put_with_signal_and_flush, {far(p.port, 1, 0)}, {local(kInput, 0)});
  CHECK(accesses(p.program, 0, flushed) == Texts{"r0 b0 0+1 r", "r1 b1 0+1 w"});
}

TEST_CASE("packets: what waits for them, and what sends them as they lie") {
  Pair p;
  const Op put = p.op(0, OpKind::put_packets, {far(p.memory, 4, 0)}, {local(kInput, 0)});
  CHECK(accesses(p.program, 0, put) == Texts{"r0 b0 0+1 r", "r1 b4 0+1 wp"});
  const Op sent = p.op(0, OpKind::put_packets, {far(p.port, 4, 0)}, {local(3, 0)});
  CHECK(accesses(p.program, 0, sent) == Texts{"r0 b3 0+1 rd", "r1 b4 0+1 wp"});
  const Op forward = p.op(0, OpKind::read_put_packets, {far(p.port, 4, 0)}, {local(3, 0)});
  CHECK(accesses(p.program, 0, forward) == Texts{"r0 b3 0+1 rpd", "r1 b4 0+1 wp"});
}

TEST_CASE("the plain source of a packet sum stands anywhere") {
  Pair p;
  const Op op = p.op(0, OpKind::reduce_copy_send_packets,
                     {local(kOutput, 0), local(3, 2), far(p.memory, 4, 3)},
                     {local(3, 0), local(kInput, 0), local(3, 1)});
  CHECK(accesses(p.program, 0, op) == Texts{"r0 b3 0+1 rp", "r0 b0 0+1 r", "r0 b3 1+1 rp",
                                            "r0 b1 0+1 w", "r0 b3 2+1 wp", "r1 b4 3+1 wp"});
}

TEST_CASE("read_reduce_send reads far sources and writes far destinations") {
  Pair p;
  const Op op = p.op(0, OpKind::read_reduce_send, {local(kOutput, 0), far(p.memory, 1, 0)},
                     {local(kInput, 0), far(p.memory, 0, 0)});
  CHECK(accesses(p.program, 0, op) ==
        Texts{"r0 b0 0+1 r", "r1 b0 0+1 r", "r0 b1 0+1 w", "r1 b1 0+1 w"});
}

TEST_CASE("a switch operand is an access to every member, where its buffer lies") {
  Pair p;
  const Op op = p.op(0, OpKind::switch_reduce, {local(kOutput, 1)}, {far(p.sw, 2, 1)});
  CHECK(accesses(p.program, 0, op) == Texts{"r0 b2 1+1 r", "r1 b3 1+1 r", "r0 b1 1+1 w"});
  const Op all = p.op(0, OpKind::switch_broadcast_packets, {far(p.sw, 3, 1)}, {local(3, 0)});
  CHECK(accesses(p.program, 0, all) == Texts{"r0 b3 0+1 rp", "r0 b3 1+1 wp", "r1 b4 1+1 wp"});
}

TEST_CASE("ops that move no data touch nothing") {
  Pair p;
  CHECK(accesses(p.program, 0, p.op(0, OpKind::signal, {end_of(p.memory)})).empty());
  CHECK(accesses(p.program, 0, p.op(0, OpKind::barrier, {id(0), id(1)})).empty());
  CHECK(accesses(p.program, 0, p.op(0, OpKind::sync, {})).empty());
}
