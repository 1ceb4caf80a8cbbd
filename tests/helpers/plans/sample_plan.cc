#include "tests/helpers/plans/sample_plan.h"

#include <utility>

#include "tests/helpers/programs/test_programs.h"

namespace mscclc::testing {
namespace {

constexpr uint32_t kStage = kFirstScratch, kSlots = kFirstScratch + 1;

void declare_rank(TestProgram& t, uint32_t rank) {
  const uint32_t peer = 1 - rank;
  t.buffer(rank, "stage", 2);
  t.buffer(rank, "slots", 2, PacketFormat::LL16, 1);
  t.channel(rank, ChannelKind::memory, "up", {peer}, peer, 1);
  t.channel(rank, ChannelKind::memory, "down", {peer}, peer, 0);
  t.channel(rank, ChannelKind::port, "net", {}, peer, 2);
  t.switch_channel(rank, "sw", {0, 1});
  t.semaphore(rank, "done", {0});
  t.semaphore(rank, "done", {1}, 1);
}

void write_ops(TestProgram& t, uint32_t rank, uint32_t site) {
  const auto locate = [&](Op& op, int64_t p) { t.located(op, site, {rank, p}); };
  // tb 0: packets; the plain source of the sum is first.
  locate(t.op_in(rank, 0, OpKind::put_packets, {far(0, kSlots, 0)}, {local(kInput, 0)}), 0);
  Op& sum = t.op_in(rank, 0, OpKind::reduce_packets, {local(kOutput, 0)},
                    {local(kInput, 0), local(kSlots, 0)});
  sum.complete = true;
  locate(sum, 1);
  t.op_in(rank, 0, OpKind::barrier, {id(0), id(1)});
  // tb 1: a pipeline through scratch, then a part of a copy.
  t.op_in(rank, 1, OpKind::barrier, {id(0), id(1)});
  t.program.loops.push_back({1024, 1});
  const uint32_t loop = static_cast<uint32_t>(t.program.loops.size() - 1);
  for (const OpKind kind : {OpKind::acquire, OpKind::switch_reduce_broadcast, OpKind::release}) {
    const bool moves = kind == OpKind::switch_reduce_broadcast;
    Op& op = moves ? t.op_in(rank, 1, kind, {far(3, kStage, rank)}, {far(3, kStage, rank)})
                   : t.op_in(rank, 1, kind, {id(kind == OpKind::release ? 0 : 1)});
    op.loop = loop;
  }
  Op& copy = t.op_in(rank, 1, OpKind::copy, {local(kOutput, 1)}, {local(kStage, 0)});
  copy.part = 1;
  copy.parts = 2;
  // tb 2: a port, and signals.
  t.op_in(rank, 2, OpKind::put_with_signal, {far(2, kStage, 1)}, {local(kStage, 1)});
  t.op_in(rank, 2, OpKind::wait, {end_of(2)});
  t.op_in(rank, 2, OpKind::signal, {end_of(0), end_of(1)}).relaxed = true;
  t.op_in(rank, 2, OpKind::wait, {end_of(0), end_of(1)}).relaxed = true;
  t.op_in(rank, 2, OpKind::put, {far(1, kOutput, 1)}, {local(kInput, 1)});
  t.op_in(rank, 2, OpKind::sync, {});
}

}  // namespace

Program sample_plan() {
  TestProgram t(2, 2);
  t.program.name = "sample";
  t.program.split = true;
  t.program.contract.even_only = true;
  t.program.files.push_back("sample.mscl");
  t.program.launch.threads = 256;
  t.program.select.sizes = {0, 1 << 20};
  for (const uint32_t rank : {0u, 1u}) declare_rank(t, rank);
  const uint32_t site = t.site(0, 18, 5, {"r", "p"});
  for (const uint32_t rank : {0u, 1u}) write_ops(t, rank, site);
  return std::move(t.program);
}

}  // namespace mscclc::testing
