// Small programs put together by hand, for tests of what reads the IR.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::testing {

/// Builds a program rank by rank. Every function returns the index of what it made.
class TestProgram {
 public:
  Program program;

  /// An allreduce of `chunks` chunks over `ranks` ranks, all with input and output.
  TestProgram(uint32_t ranks, uint32_t chunks) {
    program.name = "test";
    program.contract.kind = CollectiveKind::allreduce;
    program.contract.ranks = ranks;
    program.contract.chunks = {chunks};
    program.ranks.resize(ranks);
    for (Rank& rank : program.ranks) {
      rank.buffers.push_back(named("input", BufferKind::input, chunks));
      rank.buffers.push_back(named("output", BufferKind::output, chunks));
    }
  }

  uint32_t buffer(uint32_t rank, std::string_view name, uint32_t chunks,
                  PacketFormat packets = PacketFormat::none, uint32_t copies = 1) {
    Buffer b = named(name, BufferKind::scratch, chunks);
    b.packets = packets;
    b.copies = copies;
    program.ranks[rank].buffers.push_back(b);
    return static_cast<uint32_t>(program.ranks[rank].buffers.size() - 1);
  }

  uint32_t channel(uint32_t rank, ChannelKind kind, std::string_view name,
                   std::vector<int64_t> keys, uint32_t peer, uint32_t partner = kNone) {
    Channel c;
    c.kind = kind;
    c.label = label(name, keys);
    c.peer = peer;
    c.partner = partner;
    program.ranks[rank].channels.push_back(c);
    return static_cast<uint32_t>(program.ranks[rank].channels.size() - 1);
  }

  uint32_t switch_channel(uint32_t rank, std::string_view name, std::vector<int64_t> group) {
    const uint32_t id = channel(rank, ChannelKind::switch_, name, {}, kNone);
    program.ranks[rank].channels[id].group = program.append(group);
    return id;
  }

  uint32_t semaphore(uint32_t rank, std::string_view name, std::vector<int64_t> keys,
                     uint32_t initial = 0) {
    Semaphore s;
    s.label = label(name, keys);
    s.initial = initial;
    program.ranks[rank].semaphores.push_back(s);
    return static_cast<uint32_t>(program.ranks[rank].semaphores.size() - 1);
  }

  /// Appends an op without place; change it through the reference.
  Op& op(uint32_t rank, OpKind kind, std::initializer_list<Operand> dsts,
         std::initializer_list<Operand> srcs = {}) {
    Op op;
    op.kind = kind;
    program.set_operands(op, {dsts.begin(), dsts.size()}, {srcs.begin(), srcs.size()});
    program.ranks[rank].ops.push_back(op);
    return program.ranks[rank].ops.back();
  }

  /// The same in a thread block.
  Op& op_in(uint32_t rank, uint32_t block, OpKind kind, std::initializer_list<Operand> dsts,
            std::initializer_list<Operand> srcs = {}) {
    Op& made = op(rank, kind, dsts, srcs);
    made.block = block;
    program.ranks[rank].blocks = std::max(program.ranks[rank].blocks, block + 1);
    return made;
  }

  /// A place in the text with variables `names`, for located().
  uint32_t site(uint32_t file, uint32_t line, uint32_t column,
                std::initializer_list<std::string_view> names = {}) {
    Site s{file, line, column, {}};
    for (const std::string_view name : names) s.variables.push_back(program.intern(name));
    program.sites.push_back(s);
    return static_cast<uint32_t>(program.sites.size() - 1);
  }

  /// Appends a location to `op`.
  void located(Op& op, uint32_t site, std::vector<int64_t> values = {}) {
    program.locations.extend(op.locations, {site, program.append(values)});
  }

 private:
  Buffer named(std::string_view name, BufferKind kind, uint32_t chunks) {
    Buffer b;
    b.name = program.intern(name);
    b.kind = kind;
    b.chunks = chunks;
    return b;
  }

  Label label(std::string_view name, const std::vector<int64_t>& keys) {
    return {program.intern(name), program.append(keys)};
  }
};

inline Operand local(uint32_t buffer, uint32_t first, uint32_t count = 1) {
  return {kNone, buffer, first, count};
}
inline Operand far(uint32_t channel, uint32_t buffer, uint32_t first, uint32_t count = 1) {
  return {channel, buffer, first, count};
}
inline Operand end_of(uint32_t channel) { return {channel, kNone, 0, 0}; }
/// A semaphore or a thread block.
inline Operand id(uint32_t index) { return {kNone, kNone, index, 0}; }

}  // namespace mscclc::testing
