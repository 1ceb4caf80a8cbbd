#include "executor/testing/tree_plans.h"

#include "executor/testing/test_plans.h"
#include "ir/support/precondition.h"

namespace mscclc::testing {
namespace {

using Kind = OpKind;

constexpr Kind kTreeOps[] = {
    Kind::reduce,
    Kind::read_reduce,
    Kind::reduce_send,
    Kind::read_reduce_send,
    Kind::reduce_packets,
    Kind::reduce_send_packets,
    Kind::reduce_packets_put,
    Kind::reduce_copy_packets,
    Kind::reduce_copy_send_packets,
};

bool has_packets(Kind kind) { return info(kind).cost == CostClass::kPacket; }
bool reads_far(Kind kind) { return kind == Kind::read_reduce || kind == Kind::read_reduce_send; }
bool sends_packets(Kind kind) {
  return kind == Kind::reduce_send_packets || kind == Kind::reduce_copy_send_packets;
}
bool sends_plain(Kind kind) {
  return kind == Kind::reduce_send || kind == Kind::read_reduce_send ||
         kind == Kind::reduce_packets_put;
}
bool keeps_packets(Kind kind) {
  return kind == Kind::reduce_copy_packets || kind == Kind::reduce_copy_send_packets;
}

/// The ranks signal each other what they did before, and may do after it.
void meet(TestProgram& t, uint32_t r) {
  add_op(t, r, 0, Kind::sync, {});
  add_op(t, r, 0, Kind::signal, {end_of(0)});
  add_op(t, r, 0, Kind::wait, {end_of(0)});
  add_op(t, r, 0, Kind::sync, {});
}

/// Packets of both ranks: what is added up, and sums.
struct Slots {
  uint32_t parts, sums;
};

/// The op of rank `r`, after what fills its packets at the other rank.
void add_tree(TreePlan& made, Kind kind, uint32_t r, uint32_t n, Slots slots, Summation summation) {
  TestProgram& t = made.plan;
  const uint32_t plain = has_packets(kind) ? n / 2 : 0;
  std::vector<Operand> sources, to, inputs;
  for (uint32_t k = 0; k < n; ++k) {
    const bool here = k == plain || (!has_packets(kind) && !reads_far(kind));
    made.sources[r].push_back({here ? r : 1 - r, k});
    if (here) {
      sources.push_back(local(kInput, k));
    } else if (reads_far(kind)) {
      sources.push_back(far(0, kInput, k));
    } else {
      sources.push_back(local(slots.parts, k));
      to.push_back(far(0, slots.parts, k));
      inputs.push_back(local(kInput, k));
    }
  }
  if (!to.empty()) add_op(t, r, 0, Kind::put_packets, to, inputs);
  std::vector<Operand> dsts = {local(kOutput, 0)};
  if (keeps_packets(kind)) dsts.push_back(local(slots.sums, 0));
  if (sends_packets(kind)) dsts.push_back(far(0, slots.sums, 1));
  if (sends_plain(kind)) dsts.push_back(far(0, kOutput, 1));
  Op& op = add_op(t, r, 0, kind, dsts, sources);
  op.summation = summation;
  op.complete = true;
}

void promise(TreePlan& made, uint32_t r) {
  std::vector<Promise>& promises = made.plan.program.contract.promises;
  promises.push_back({{r, 0}, true, made.sources[r]});
  if (made.sends) promises.push_back({{1 - r, 1}, true, made.sources[r]});
}

}  // namespace

std::span<const OpKind> tree_ops() { return kTreeOps; }

TreePlan tree_plan(OpKind kind, PacketFormat format, uint32_t sources, Summation summation) {
  precondition(sources >= 2);
  TreePlan made{TestProgram(2, 1), {{}, {}}, sends_packets(kind) || sends_plain(kind)};
  TestProgram& t = made.plan;
  Contract& c = t.program.contract;
  c.kind = CollectiveKind::custom;
  c.input = {sources};
  c.output = {2};
  connect_all(t, ChannelKind::memory);
  Slots slots{};
  for (uint32_t r = 0; r < 2; ++r) {
    t.program.ranks[r].buffers[kInput].chunks = sources;
    t.program.ranks[r].buffers[kOutput].chunks = 2;
    if (!has_packets(kind)) continue;
    slots = {t.buffer(r, "parts", sources, format, 2), t.buffer(r, "sums", 2, format, 2)};
  }
  for (uint32_t r = 0; r < 2; ++r) {
    if (!has_packets(kind)) meet(t, r);
    add_tree(made, kind, r, sources, slots, summation);
    if (keeps_packets(kind)) {
      add_op(t, r, 0, Kind::unpack_packets, {local(kOutput, 0)}, {local(slots.sums, 0)});
    }
    if (sends_packets(kind)) {
      add_op(t, r, 0, Kind::unpack_packets, {local(kOutput, 1)}, {local(slots.sums, 1)});
    }
    if (!has_packets(kind) || sends_plain(kind)) meet(t, r);
    promise(made, r);
  }
  c.sort_promises();
  return made;
}

std::vector<PacketFormat> formats_of_tree(OpKind kind) {
  if (!has_packets(kind)) return {PacketFormat::none};
  std::vector<PacketFormat> formats;
  for (const PacketFormatInfo& row : packet_formats()) formats.push_back(row.format);
  return formats;
}

}  // namespace mscclc::testing
