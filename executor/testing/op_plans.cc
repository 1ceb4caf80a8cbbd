#include "executor/testing/op_plans.h"

#include "executor/testing/test_plans.h"

namespace mscclc::testing {
namespace {

using Kind = OpKind;

/// Ranks with `input` and `output` chunks and promises to be added.
TestProgram custom(uint32_t ranks, uint32_t input, uint32_t output) {
  TestProgram t(ranks, 1);
  Contract& c = t.program.contract;
  c.kind = CollectiveKind::custom;
  c.input = {input};
  c.output = {output};
  for (Rank& rank : t.program.ranks) {
    rank.buffers[kInput].chunks = input;
    rank.buffers[kOutput].chunks = output;
  }
  return t;
}

void promise(TestProgram& t, CallerChunk output, std::vector<CallerChunk> inputs) {
  const bool reduced = inputs.size() > 1;
  t.program.contract.promises.push_back({output, reduced, std::move(inputs)});
  t.program.contract.sort_promises();
}

/// Two ranks that promise each other's input, in `chunks` chunks.
TestProgram exchange(ChannelKind kind, uint32_t chunks = 1) {
  TestProgram t = custom(2, chunks, chunks);
  connect_all(t, kind);
  for (uint32_t r = 0; r < 2; ++r) {
    for (uint32_t c = 0; c < chunks; ++c) promise(t, {r, c}, {{1 - r, c}});
  }
  return t;
}

/// All ranks signal each other over their first channels what their blocks did before, and may do
/// after it.
void meet_all(TestProgram& t, uint32_t r, bool relaxed, uint32_t block = 0) {
  std::vector<Operand> ends;
  for (uint32_t c = 0; c + 1 < t.program.ranks.size(); ++c) ends.push_back(end_of(c));
  add_op(t, r, block, Kind::sync, {});
  add_op(t, r, block, Kind::signal, ends).relaxed = relaxed;
  add_op(t, r, block, Kind::wait, ends).relaxed = relaxed;
  add_op(t, r, block, Kind::sync, {});
}

TestProgram copy_plan(PacketFormat) {
  TestProgram t = custom(1, 3, 3);
  for (uint32_t c = 0; c < 3; ++c) promise(t, {0, c}, {{0, c}});
  add_op(t, 0, 0, Kind::copy, {local(kOutput, 0, 3)}, {local(kInput, 0, 3)});
  return t;
}

TestProgram put_plan(PacketFormat) {
  TestProgram t = exchange(ChannelKind::memory, 2);
  for (uint32_t r = 0; r < 2; ++r) {
    meet_all(t, r, true);
    add_op(t, r, 0, Kind::put, {far(0, kOutput, 0), far(0, kOutput, 1)},
           {local(kInput, 0), local(kInput, 1)});
    meet_all(t, r, false);
  }
  return t;
}

TestProgram get_plan(PacketFormat) {
  TestProgram t = exchange(ChannelKind::memory, 2);
  for (uint32_t r = 0; r < 2; ++r) {
    meet_all(t, r, false);
    add_op(t, r, 0, Kind::get, {local(kOutput, 0), local(kOutput, 1)},
           {far(0, kInput, 0), far(0, kInput, 1)});
    meet_all(t, r, false);
  }
  return t;
}

TestProgram port_plan(Kind put) {
  TestProgram t = exchange(ChannelKind::port, 2);
  const bool signals = put != Kind::put;
  if (signals) connect_all(t, ChannelKind::port, "other");  // none is signalled twice
  const uint32_t other = signals ? 1 : 0;
  std::vector<Operand> ends = {end_of(0)};
  if (signals) ends.push_back(end_of(other));
  for (uint32_t r = 0; r < 2; ++r) {
    meet_all(t, r, true);
    add_op(t, r, 0, put, {far(0, kOutput, 0), far(other, kOutput, 1)},
           {local(kInput, 0), local(kInput, 1)});
    if (!signals) add_op(t, r, 0, Kind::signal, ends);
    add_op(t, r, 0, Kind::wait, ends);
    if (put != Kind::put_with_signal_and_flush) add_op(t, r, 0, Kind::flush, ends);
  }
  return t;
}

TestProgram port_put(PacketFormat) { return port_plan(Kind::put); }
TestProgram port_put_signal(PacketFormat) { return port_plan(Kind::put_with_signal); }
TestProgram port_put_flush(PacketFormat) { return port_plan(Kind::put_with_signal_and_flush); }

/// Allreduce of one chunk, everyone's in everyone's scratch.
TestProgram reduce_plan(PacketFormat) {
  TestProgram t(3, 1);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 3; ++r) {
    const uint32_t parts = t.buffer(r, "parts", 2);
    meet_all(t, r, true);
    for (uint32_t c = 0; c < 2; ++c) {
      const uint32_t peer = others(r, 3)[c];
      add_op(t, r, 0, Kind::put, {far(c, parts, mesh(peer, r))}, {local(kInput, 0)});
    }
    meet_all(t, r, false);
    add_op(t, r, 0, Kind::reduce, {local(kOutput, 0)},
           {local(kInput, 0), local(parts, 0), local(parts, 1)})
        .complete = true;
  }
  return t;
}

/// Allreduce of one chunk a rank by reading from everyone.
TestProgram read_reduce_plan(PacketFormat) {
  TestProgram t(3, 1);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 3; ++r) {
    meet_all(t, r, false);
    add_op(t, r, 0, Kind::read_reduce, {local(kOutput, 0)},
           {local(kInput, 0), far(0, kInput, 0), far(1, kInput, 0)})
        .complete = true;
    meet_all(t, r, false);
  }
  return t;
}

/// Allreduce: rank r adds up chunk r and writes it to everyone.
TestProgram read_reduce_send_plan(PacketFormat) {
  TestProgram t(3, 3);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 3; ++r) {
    meet_all(t, r, false);
    add_op(t, r, 0, Kind::read_reduce_send,
           {local(kOutput, r), far(0, kOutput, r), far(1, kOutput, r)},
           {local(kInput, r), far(0, kInput, r), far(1, kInput, r)})
        .complete = true;
    meet_all(t, r, false);
  }
  return t;
}

TestProgram reduce_send_plan(PacketFormat) { return with_syncs(two_shot(3)); }

TestProgram copy_unpack_plan(PacketFormat format) {
  TestProgram t = custom(1, 2, 2);
  for (uint32_t c = 0; c < 2; ++c) promise(t, {0, c}, {{0, c}});
  const uint32_t slots = t.buffer(0, "slots", 3, format);
  add_op(t, 0, 0, Kind::copy_packets, {local(slots, 1, 2)}, {local(kInput, 0, 2)});
  add_op(t, 0, 1, Kind::unpack_packets, {local(kOutput, 0), local(kOutput, 1)},
         {local(slots, 1), local(slots, 2)});
  return t;
}

TestProgram put_packets_plan(PacketFormat format) { return one_shot(3, 2, format); }

TestProgram port_packets_plan(PacketFormat format) {
  TestProgram t = exchange(ChannelKind::port);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t out = t.buffer(r, "out", 1, format, 2);
    const uint32_t inbox = t.buffer(r, "inbox", 1, format, 2);
    add_op(t, r, 0, Kind::copy_packets, {local(out, 0)}, {local(kInput, 0)});
    add_op(t, r, 0, Kind::sync, {});  // one thread posts what all have written
    add_op(t, r, 0, Kind::put_packets, {far(0, inbox, 0)}, {local(out, 0)});
    add_op(t, r, 0, Kind::unpack_packets, {local(kOutput, 0)}, {local(inbox, 0)});
    add_op(t, r, 0, Kind::flush, {end_of(0)});
  }
  return t;
}

/// Rank 0 sends to rank 1, which forwards to rank 2, which signals rank 0 that all is read.
TestProgram forward_plan(PacketFormat format, ChannelKind kind) {
  TestProgram t = custom(3, 1, 1);
  connect_all(t, kind);
  connect_all(t, ChannelKind::memory, "direct");
  promise(t, {2, 0}, {{0, 0}});
  for (uint32_t r = 0; r < 3; ++r) {
    t.buffer(r, "slot", 1, format, 2);
    t.buffer(r, "out", 1, format, 2);
  }
  const uint32_t memory = 2;  // channels of the second mesh
  const uint32_t slot = kFirstScratch, out = kFirstScratch + 1;
  add_op(t, 0, 0, Kind::put_packets, {far(memory + mesh(0, 1), slot, 0)}, {local(kInput, 0)});
  add_op(t, 1, 0, Kind::read_put_packets, {far(mesh(1, 2), slot, 0)}, {local(slot, 0)});
  add_op(t, 2, 0, Kind::unpack_packets, {local(kOutput, 0)}, {local(slot, 0)});
  // A packet back, by which rank 0 knows that both have read.
  add_op(t, 2, 0, Kind::put_packets, {far(memory + mesh(2, 0), out, 0)}, {local(kOutput, 0)});
  add_op(t, 0, 0, Kind::unpack_packets, {local(kOutput, 0)}, {local(out, 0)});
  return t;
}

TestProgram forward_memory(PacketFormat f) { return forward_plan(f, ChannelKind::memory); }
TestProgram forward_port(PacketFormat f) { return forward_plan(f, ChannelKind::port); }

/// Allreduce of one chunk a rank in two steps of packets; `kind` is the op that adds up.
TestProgram two_step_packets(PacketFormat format, Kind kind) {
  constexpr uint32_t kRanks = 3;
  TestProgram t(kRanks, kRanks);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < kRanks; ++r) {
    const uint32_t parts = t.buffer(r, "parts", kRanks, format, 2);
    const uint32_t sums = t.buffer(r, "sums", kRanks, format, 2);
    std::vector<Operand> sources, to, out, results;
    for (const uint32_t p : others(r, kRanks)) {
      add_op(t, r, 0, Kind::put_packets, {far(mesh(r, p), parts, r)}, {local(kInput, p)});
      sources.push_back(local(parts, p));
      to.push_back(far(mesh(r, p), sums, r));
      out.push_back(local(kOutput, p));
      results.push_back(local(sums, p));
    }
    sources.insert(sources.begin() + 1, local(kInput, r));  // the plain source among packets
    std::vector<Operand> dsts = {local(kOutput, r)};
    const bool copies = kind == Kind::reduce_copy_packets || kind == Kind::reduce_copy_send_packets;
    if (copies) dsts.push_back(local(sums, r));
    if (kind == Kind::reduce_send_packets || kind == Kind::reduce_copy_send_packets) {
      dsts.insert(dsts.end(), to.begin(), to.end());
    }
    add_op(t, r, 0, kind, dsts, sources).complete = true;
    if (kind == Kind::reduce_packets || kind == Kind::reduce_copy_packets) {
      add_op(t, r, 0, Kind::put_packets, to, {to.size(), local(kOutput, r)});
    }
    if (copies) add_op(t, r, 0, Kind::unpack_packets, {local(kOutput, r)}, {local(sums, r)});
    add_op(t, r, 0, Kind::unpack_packets, out, results);
  }
  return t;
}

TestProgram reduce_packets_plan(PacketFormat f) {
  return two_step_packets(f, Kind::reduce_packets);
}
TestProgram reduce_send_packets_plan(PacketFormat f) {
  return two_step_packets(f, Kind::reduce_send_packets);
}
TestProgram reduce_copy_packets_plan(PacketFormat f) {
  return two_step_packets(f, Kind::reduce_copy_packets);
}
TestProgram reduce_copy_send_packets_plan(PacketFormat f) {
  return two_step_packets(f, Kind::reduce_copy_send_packets);
}

/// Allreduce: shares come as packets, sums go straight into the outputs.
TestProgram reduce_packets_put_plan(PacketFormat format) {
  TestProgram t(3, 3);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 3; ++r) {
    const uint32_t parts = t.buffer(r, "parts", 3, format, 2);
    std::vector<Operand> sources, sums = {local(kOutput, r)};
    for (const uint32_t p : others(r, 3)) {
      add_op(t, r, 0, Kind::put_packets, {far(mesh(r, p), parts, r)}, {local(kInput, p)});
      sources.push_back(local(parts, p));
      sums.push_back(far(mesh(r, p), kOutput, r));
    }
    sources.insert(sources.begin() + 1, local(kInput, r));  // the plain source among packets
    add_op(t, r, 0, Kind::reduce_packets_put, sums, sources).complete = true;
    meet_all(t, r, false);
  }
  return t;
}

/// Three ranks with a switch over all of them as their last channel (index 2).
TestProgram switched(uint32_t input, uint32_t output) {
  TestProgram t = custom(3, input, output);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 3; ++r) t.switch_channel(r, "sw", {0, 1, 2});
  return t;
}

/// The same with the shapes of an allgather or a reducescatter.
TestProgram switched(CollectiveKind kind) {
  TestProgram t = kind == CollectiveKind::allgather ? switched(1, 3) : switched(3, 1);
  t.program.contract.kind = kind;
  t.program.contract.chunks = {1};
  return t;
}

TestProgram switch_broadcast_plan(PacketFormat) {
  TestProgram t = switched(CollectiveKind::allgather);
  for (uint32_t r = 0; r < 3; ++r) {
    meet_all(t, r, true);
    add_op(t, r, 0, Kind::switch_broadcast, {far(2, kOutput, r)}, {local(kInput, 0)});
    meet_all(t, r, false);
  }
  return t;
}

TestProgram switch_broadcast_packets_plan(PacketFormat format) {
  TestProgram t = switched(CollectiveKind::allgather);
  for (uint32_t r = 0; r < 3; ++r) {
    const uint32_t own = t.buffer(r, "own", 1, format);
    const uint32_t slots = t.buffer(r, "slots", 3, format, 2);
    add_op(t, r, 0, Kind::copy_packets, {local(own, 0)}, {local(kInput, 0)});
    add_op(t, r, 0, Kind::switch_broadcast_packets, {far(2, slots, r)}, {local(own, 0)});
    add_op(t, r, 0, Kind::unpack_packets, {local(kOutput, 0, 3)}, {local(slots, 0, 3)});
  }
  return t;
}

TestProgram switch_reduce_plan(PacketFormat) {
  TestProgram t = switched(CollectiveKind::reducescatter);
  for (uint32_t r = 0; r < 3; ++r) {
    meet_all(t, r, false);
    add_op(t, r, 0, Kind::switch_reduce, {local(kOutput, 0)}, {far(2, kInput, r)}).complete = true;
    meet_all(t, r, false);
  }
  return t;
}

TestProgram switch_reduce_broadcast_plan(PacketFormat) {
  TestProgram t = switched(3, 3);
  t.program.contract.kind = CollectiveKind::allreduce;
  t.program.contract.chunks = {3};
  for (uint32_t r = 0; r < 3; ++r) {
    meet_all(t, r, false);
    add_op(t, r, 0, Kind::switch_reduce_broadcast, {far(2, kOutput, r)}, {far(2, kInput, r)})
        .complete = true;
    meet_all(t, r, false);
  }
  return t;
}

/// One block copies in, two others out again, a group of two; tied by semaphores and a barrier.
TestProgram blocks_plan(PacketFormat) {
  TestProgram t = custom(1, 2, 2);
  for (uint32_t c = 0; c < 2; ++c) promise(t, {0, c}, {{0, c}});
  const uint32_t stage = t.buffer(0, "stage", 2);
  const uint32_t full = t.semaphore(0, "full", {}), empty = t.semaphore(0, "empty", {}, 2);
  add_op(t, 0, 0, Kind::acquire, {id(empty)});
  add_op(t, 0, 0, Kind::acquire, {id(empty)});
  add_op(t, 0, 0, Kind::sync, {});
  add_op(t, 0, 0, Kind::copy, {local(stage, 0, 2)}, {local(kInput, 0, 2)});
  add_op(t, 0, 0, Kind::sync, {});
  add_op(t, 0, 0, Kind::release, {id(full), id(full)});
  for (uint32_t b = 1; b < 3; ++b) {
    add_op(t, 0, b, Kind::acquire, {id(full)});
    add_op(t, 0, b, Kind::barrier, {id(1), id(2)});
    Op& op = add_op(t, 0, b, Kind::copy, {local(kOutput, 0, 2)}, {local(stage, 0, 2)});
    op.part = static_cast<uint16_t>(b - 1);
    op.parts = 2;
    add_op(t, 0, b, Kind::barrier, {id(2), id(1)});
    add_op(t, 0, b, Kind::release, {id(empty)});
  }
  return t;
}

/// Two stages of a pipeline, the second in two parts.
TestProgram pipeline_plan(PacketFormat) {
  TestProgram t = custom(1, 1, 1);
  promise(t, {0, 0}, {{0, 0}});
  const uint32_t stage = t.buffer(0, "stage", 1);
  for (uint32_t b = 0; b < 2; ++b) t.semaphore(0, "full", {b});
  t.program.loops.push_back({.unit = 48, .chunks = 1});
  const auto looped = [](Op& op) { op.loop = 0; };
  looped(add_op(t, 0, 0, Kind::copy, {local(stage, 0)}, {local(kInput, 0)}));
  looped(add_op(t, 0, 0, Kind::sync, {}));
  looped(add_op(t, 0, 0, Kind::release, {id(0), id(1)}));
  for (uint32_t b = 1; b < 3; ++b) {
    looped(add_op(t, 0, b, Kind::acquire, {id(b - 1)}));
    looped(add_op(t, 0, b, Kind::sync, {}));
    Op& op = add_op(t, 0, b, Kind::copy, {local(kOutput, 0)}, {local(stage, 0)});
    looped(op);
    op.part = static_cast<uint16_t>(b - 1);
    op.parts = 2;
  }
  return t;
}

}  // namespace

const std::vector<OpPlan>& op_plans() {
  static const std::vector<OpPlan> plans = {
      {"copy", copy_plan, false},
      {"put", put_plan, false},
      {"get", get_plan, false},
      {"put by port", port_put, false},
      {"put_with_signal", port_put_signal, false},
      {"put_with_signal_and_flush", port_put_flush, false},
      {"reduce", reduce_plan, false},
      {"read_reduce", read_reduce_plan, false},
      {"reduce_send", reduce_send_plan, false},
      {"read_reduce_send", read_reduce_send_plan, false},
      {"copy_packets", copy_unpack_plan, true},
      {"put_packets", put_packets_plan, true},
      {"put_packets by port", port_packets_plan, true},
      {"read_put_packets", forward_memory, true},
      {"read_put_packets by port", forward_port, true},
      {"reduce_packets", reduce_packets_plan, true},
      {"reduce_send_packets", reduce_send_packets_plan, true},
      {"reduce_packets_put", reduce_packets_put_plan, true},
      {"reduce_copy_packets", reduce_copy_packets_plan, true},
      {"reduce_copy_send_packets", reduce_copy_send_packets_plan, true},
      {"switch_broadcast", switch_broadcast_plan, false},
      {"switch_broadcast_packets", switch_broadcast_packets_plan, true},
      {"switch_reduce", switch_reduce_plan, false},
      {"switch_reduce_broadcast", switch_reduce_broadcast_plan, false},
      {"release, acquire, barrier", blocks_plan, false},
      {"pipeline", pipeline_plan, false},
  };
  return plans;
}

std::vector<PacketFormat> formats_of(const OpPlan& plan) {
  if (!plan.packets) return {PacketFormat::none};
  const bool by_port = plan.name.find("by port") != std::string::npos;
  std::vector<PacketFormat> formats;
  for (const PacketFormatInfo& f : packet_formats()) {
    if (!by_port || f.goes_everywhere()) formats.push_back(f.format);
  }
  return formats;
}

}  // namespace mscclc::testing
