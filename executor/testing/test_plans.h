// Whole plans for tests of the executor, built by hand.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/helpers/programs/test_programs.h"

namespace mscclc::testing {

/// Appends an op of a thread block whose operands are in vectors. Blocks in ascending order.
inline Op& add_op(TestProgram& t, uint32_t rank, uint32_t block, OpKind kind,
                  const std::vector<Operand>& dsts, const std::vector<Operand>& srcs = {}) {
  Op& op = t.op_in(rank, block, kind, {});
  t.program.set_operands(op, dsts, srcs);
  t.program.split = true;
  return op;
}

/// Channels of every rank to every other, in both directions partners: index of peer p among the
/// channels of r is `mesh(r, p)`, counted from the first that the call made.
inline uint32_t mesh(uint32_t r, uint32_t p) { return p < r ? p : p - 1; }
inline void connect_all(TestProgram& t, ChannelKind kind, std::string_view name = "ch") {
  const auto ranks = static_cast<uint32_t>(t.program.ranks.size());
  const auto before = static_cast<uint32_t>(t.program.ranks[0].channels.size());
  for (uint32_t r = 0; r < ranks; ++r) {
    for (uint32_t p = 0; p < ranks; ++p) {
      if (p != r) t.channel(r, kind, name, {p}, p, before + mesh(p, r));
    }
  }
}

/// Ranks other than `r`.
inline std::vector<uint32_t> others(uint32_t r, uint32_t ranks) {
  std::vector<uint32_t> out;
  for (uint32_t p = 0; p < ranks; ++p) {
    if (p != r) out.push_back(p);
  }
  return out;
}

/// Two ranks swap their input: an opening handshake, put, sync, closing handshake.
inline TestProgram exchange(ChannelKind kind = ChannelKind::memory) {
  TestProgram t(2, 1);
  t.program.contract.kind = CollectiveKind::sendrecv;
  t.program.contract.shift = 1;
  connect_all(t, kind);
  for (uint32_t r = 0; r < 2; ++r) {
    add_op(t, r, 0, OpKind::signal, {end_of(0)}).relaxed = true;
    add_op(t, r, 0, OpKind::wait, {end_of(0)}).relaxed = true;
    add_op(t, r, 0, OpKind::sync, {});
    add_op(t, r, 0, OpKind::put, {far(0, kOutput, 0)}, {local(kInput, 0)});
    add_op(t, r, 0, OpKind::sync, {});
    add_op(t, r, 0, OpKind::signal, {end_of(0)});
    add_op(t, r, 0, OpKind::wait, {end_of(0)});
  }
  return t;
}

inline void erase(Program& program, uint32_t rank, uint32_t op) {
  program.ranks[rank].ops.erase(program.ranks[rank].ops.begin() + op);
}

/// Allreduce: everyone puts every chunk to everyone as packets and adds up.
inline TestProgram one_shot(uint32_t ranks, uint32_t blocks, PacketFormat format,
                            uint32_t copies = 2) {
  TestProgram t(ranks, blocks);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < ranks; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", (ranks - 1) * blocks, format, copies);
    for (uint32_t b = 0; b < blocks; ++b) {
      std::vector<Operand> to, from, sources = {local(kInput, b)};
      for (const uint32_t p : others(r, ranks)) {
        to.push_back(far(mesh(r, p), inbox, mesh(p, r) * blocks + b));
        from.push_back(local(kInput, b));
        sources.push_back(local(inbox, mesh(r, p) * blocks + b));
      }
      add_op(t, r, b, OpKind::put_packets, to, from);
      add_op(t, r, b, OpKind::reduce_packets, {local(kOutput, b)}, sources).complete = true;
    }
  }
  return t;
}

/// Broadcast from rank 0 as packets. The others signal it from a block of their own that they
/// are in this call.
inline TestProgram broadcast_of_packets(uint32_t ranks, uint32_t blocks, PacketFormat format) {
  TestProgram t(ranks, blocks);
  t.program.contract.kind = CollectiveKind::broadcast;
  t.program.contract.root = 0;
  connect_all(t, ChannelKind::memory);
  const uint32_t none = t.buffer(0, "inbox", 0, format, 2);
  for (uint32_t r = 1; r < ranks; ++r) t.buffer(r, "inbox", blocks, format, 2);
  std::vector<Operand> ends;
  for (const uint32_t p : others(0, ranks)) ends.push_back(end_of(mesh(0, p)));
  for (uint32_t b = 0; b < blocks; ++b) {
    std::vector<Operand> to;
    for (const uint32_t p : others(0, ranks)) to.push_back(far(mesh(0, p), none, b));
    add_op(t, 0, b, OpKind::put_packets, to, std::vector<Operand>(to.size(), local(kInput, b)));
    add_op(t, 0, b, OpKind::copy, {local(kOutput, b)}, {local(kInput, b)});
  }
  add_op(t, 0, blocks, OpKind::wait, ends).relaxed = true;
  for (uint32_t r = 1; r < ranks; ++r) {
    for (uint32_t b = 0; b < blocks; ++b) {
      add_op(t, r, b, OpKind::unpack_packets, {local(kOutput, b)}, {local(none, b)});
    }
    add_op(t, r, blocks, OpKind::signal, {end_of(mesh(r, 0))}).relaxed = true;
  }
  return t;
}

/// Two ranks swap their input as packets; a block of its own says so to the partner, and waits for
/// its word.
inline TestProgram exchange_of_packets(uint32_t blocks, PacketFormat format, bool relaxed) {
  TestProgram t(2, blocks);
  t.program.contract.kind = CollectiveKind::sendrecv;
  t.program.contract.shift = 1;
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", blocks, format, 2);
    for (uint32_t b = 0; b < blocks; ++b) {
      add_op(t, r, b, OpKind::put_packets, {far(0, inbox, b)}, {local(kInput, b)});
      add_op(t, r, b, OpKind::unpack_packets, {local(kOutput, b)}, {local(inbox, b)});
    }
    add_op(t, r, blocks, OpKind::signal, {end_of(0)}).relaxed = relaxed;
    add_op(t, r, blocks, OpKind::wait, {end_of(0)}).relaxed = relaxed;
  }
  return t;
}

/// Two ranks swap a chunk as packets, and copy their own before they unpack.
inline TestProgram copy_and_unpack(PacketFormat format, bool sync) {
  TestProgram t(2, 2);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", 1, format, 2);
    add_op(t, r, 0, OpKind::put_packets, {far(0, inbox, 0)}, {local(kInput, r)});
    add_op(t, r, 0, OpKind::copy, {local(kOutput, r)}, {local(kInput, r)});
    if (sync) add_op(t, r, 0, OpKind::sync, {});
    add_op(t, r, 0, OpKind::unpack_packets, {local(kOutput, 1 - r)}, {local(inbox, 0)});
  }
  return t;
}

/// A rank sends its chunk to all others and keeps a copy, or keeps another chunk, and perhaps one
/// more.
inline TestProgram put_and_copy(uint32_t ranks, PacketFormat format, bool same, bool more) {
  TestProgram t(ranks, 2);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < ranks; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", ranks - 1, format, 2);
    std::vector<Operand> to;
    for (const uint32_t p : others(r, ranks)) to.push_back(far(mesh(r, p), inbox, mesh(p, r)));
    add_op(t, r, 0, OpKind::put_packets, to, std::vector<Operand>(to.size(), local(kInput, 0)));
    add_op(t, r, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, same ? 0 : 1)});
    if (more) add_op(t, r, 0, OpKind::copy, {local(kOutput, 1)}, {local(kInput, 1)});
  }
  return t;
}

/// Allreduce in two steps over plain memory: chunk r is added up at rank r. One block; the sums
/// are put to everyone by reduce_send.
inline TestProgram two_shot(uint32_t ranks) {
  TestProgram t(ranks, ranks);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < ranks; ++r) {
    const uint32_t parts = t.buffer(r, "parts", ranks - 1);
    std::vector<Operand> ends, to, from, sums = {local(kOutput, r)}, sources = {local(kInput, r)};
    for (const uint32_t p : others(r, ranks)) {
      ends.push_back(end_of(mesh(r, p)));
      to.push_back(far(mesh(r, p), parts, mesh(p, r)));
      from.push_back(local(kInput, p));
      sums.push_back(far(mesh(r, p), kOutput, r));
      sources.push_back(local(parts, mesh(r, p)));
    }
    add_op(t, r, 0, OpKind::put, to, from);
    add_op(t, r, 0, OpKind::signal, ends);
    add_op(t, r, 0, OpKind::wait, ends);
    add_op(t, r, 0, OpKind::reduce_send, sums, sources).complete = true;
    add_op(t, r, 0, OpKind::signal, ends);
    add_op(t, r, 0, OpKind::wait, ends);
  }
  return t;
}

/// Allreduce in two steps: chunk r comes to rank r as packets and is added up there, and ports hand
/// the sum to everyone. Out of place.
inline TestProgram two_shot_by_ports(uint32_t ranks, PacketFormat format) {
  TestProgram t(ranks, ranks);
  connect_all(t, ChannelKind::memory);
  connect_all(t, ChannelKind::port, "data");
  for (uint32_t r = 0; r < ranks; ++r) {
    const uint32_t parts = t.buffer(r, "parts", ranks - 1, format);
    std::vector<Operand> ends, to, shares, outputs, sources = {local(kInput, r)};
    for (const uint32_t p : others(r, ranks)) {
      const uint32_t data = ranks - 1 + mesh(r, p);
      ends.push_back(end_of(data));
      to.push_back(far(mesh(r, p), parts, mesh(p, r)));
      shares.push_back(local(kInput, p));
      outputs.push_back(far(data, kOutput, r));
      sources.push_back(local(parts, mesh(r, p)));
    }
    const std::vector<Operand> sums(outputs.size(), local(kOutput, r));
    add_op(t, r, 0, OpKind::put_packets, to, shares);
    add_op(t, r, 0, OpKind::reduce_packets, {local(kOutput, r)}, sources).complete = true;
    add_op(t, r, 0, OpKind::put, outputs, sums);
    add_op(t, r, 0, OpKind::signal, ends);
    add_op(t, r, 0, OpKind::flush, ends);
    add_op(t, r, 0, OpKind::wait, ends);
  }
  return t;
}

/// The plan with a meeting between any two ops of a block, which fibers do without.
inline TestProgram with_syncs(TestProgram t) {
  for (Rank& rank : t.program.ranks) {
    std::vector<Op> ops;
    for (const Op& op : rank.ops) {
      Op sync;
      sync.kind = OpKind::sync;
      sync.block = op.block;
      if (!ops.empty() && ops.back().block == op.block) ops.push_back(sync);
      ops.push_back(op);
    }
    rank.ops = ops;
  }
  return t;
}

/// Two ranks add up what both have. One block sends and waits for nothing, another adds up what
/// came: as packets, or as plain data with a signal.
inline TestProgram sums_apart(PacketFormat format) {
  const bool packets = format != PacketFormat::none;
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", 1, format, 2);
    add_op(t, r, 0, packets ? OpKind::put_packets : OpKind::put, {far(0, inbox, 0)},
           {local(kInput, 0)});
    if (!packets) {
      add_op(t, r, 0, OpKind::sync, {});
      add_op(t, r, 0, OpKind::signal, {end_of(0)});
      add_op(t, r, 1, OpKind::wait, {end_of(0)});
      add_op(t, r, 1, OpKind::sync, {});
    }
    add_op(t, r, 1, packets ? OpKind::reduce_packets : OpKind::reduce, {local(kOutput, 0)},
           {local(kInput, 0), local(inbox, 0)})
        .complete = true;
  }
  return t;
}

}  // namespace mscclc::testing
