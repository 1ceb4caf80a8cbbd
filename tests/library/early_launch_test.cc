// When blocks let the next launch begin (executor/early_launch.h), tried on the whole library:
// blocks that never begin must not keep anyone waiting whose rank has let the next launch begin.
#include "executor/early_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/library/library.h"

namespace mscclc {
namespace {

using Block = std::pair<uint32_t, uint32_t>;  ///< rank, block

/// A plan whose blocks run as far as they come while one of them does not begin. Data is left out:
/// a packet chunk is full once it has been written.
class Standstill {
 public:
  Standstill(const Program& program, Block absent) : program_(program), absent_(absent) {
    for (const Rank& rank : program.ranks) {
      at_.emplace_back();
      const std::vector<uint32_t> begin = block_offsets(rank);
      for (uint32_t b = 0; b + 1 < begin.size(); ++b)
        at_.back().push_back({begin[b], begin[b + 1]});
      signals_.emplace_back(rank.channels.size());
      semaphores_.emplace_back();
      for (const Semaphore& s : rank.semaphores) semaphores_.back().push_back(s.initial);
      full_.emplace_back();
      for (const Buffer& b : rank.buffers) full_.back().emplace_back(b.chunks);
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t r = 0; r < at_.size(); ++r) {
        for (uint32_t b = 0; b < at_[r].size(); ++b) moved |= advance(r, b);
      }
    }
  }
  bool has_ended(uint32_t rank, uint32_t block) const {
    return at_[rank][block].next == at_[rank][block].end;
  }
  /// Has the block done this op (of its rank)?
  bool has_done(uint32_t rank, uint32_t block, uint32_t op) const {
    return op < at_[rank][block].next;
  }

 private:
  struct At {
    uint32_t next, end;
  };

  bool advance(uint32_t rank, uint32_t block) {
    At& at = at_[rank][block];
    bool moved = false;
    while (at.next < at.end && Block(rank, block) != absent_) {
      const Op& op = program_.ranks[rank].ops[at.next];
      if (!may_pass(rank, block, op)) break;
      pass(rank, op);
      ++at.next;
      moved = true;
    }
    return moved;
  }

  bool may_pass(uint32_t rank, uint32_t block, const Op& op) {
    const auto dsts = program_.dsts(op);
    const auto all = [&](const auto& has) { return std::all_of(dsts.begin(), dsts.end(), has); };
    switch (op.kind) {
      case OpKind::wait:
        return all([&](const Operand& o) { return signals_[rank][o.channel] > 0; });
      case OpKind::acquire:
        return all([&](const Operand& o) { return semaphores_[rank][o.first] > 0; });
      case OpKind::barrier:  // members pass it together: each must stand at one, or be past it
        return all(
            [&](const Operand& o) { return o.first == block || reached(rank, o.first, op); });
      default:
        break;
    }
    if (!info(op.kind).has(kPolls)) return true;
    for (const Operand& o : program_.srcs(op)) {
      if (program_.buffer_of(rank, o).packets == PacketFormat::none) continue;
      for (uint32_t c = o.first; c < o.first + o.count; ++c) {
        if (!full_[rank][o.buffer][c]) return false;
      }
    }
    return true;
  }
  /// Has a block come to a barrier with the same members as `op`, or passed it?
  bool reached(uint32_t rank, uint32_t block, const Op& op) const {
    const At& at = at_[rank][block];
    if (Block(rank, block) == absent_) return false;
    const auto members = program_.dsts(op);
    const std::vector<uint32_t> begin = block_offsets(program_.ranks[rank]);
    for (uint32_t i = begin[block]; i <= at.next && i < at.end; ++i) {
      const Op& theirs = program_.ranks[rank].ops[i];
      if (theirs.kind != OpKind::barrier) continue;
      if (std::ranges::equal(program_.dsts(theirs), members)) return true;
    }
    return false;
  }

  void pass(uint32_t rank, const Op& op) {
    for (const Operand& o : program_.dsts(op)) {
      if (op.kind == OpKind::wait) --signals_[rank][o.channel];
      if (op.kind == OpKind::acquire) --semaphores_[rank][o.first];
      if (op.kind == OpKind::release) ++semaphores_[rank][o.first];
      if (o.channel == kNone) {
        if (info(op.kind).moves_data()) fill(rank, o);
        continue;
      }
      const Channel& channel = program_.ranks[rank].channels[o.channel];
      if (info(op.kind).has(kSignals) && channel.partner != kNone) {
        ++signals_[channel.peer][channel.partner];
      }
      if (!info(op.kind).moves_data()) continue;
      if (channel.kind != ChannelKind::switch_) {
        fill(channel.peer, o);
      } else {
        for (const int64_t member : program_.values(channel.group)) {
          fill(static_cast<uint32_t>(member), o);
        }
      }
    }
  }
  void fill(uint32_t rank, const Operand& o) {
    for (uint32_t c = o.first; c < o.first + o.count; ++c) full_[rank][o.buffer][c] = true;
  }

  const Program& program_;
  const Block absent_;
  std::vector<std::vector<At>> at_;                   // by rank, block
  std::vector<std::vector<uint32_t>> signals_;        // by rank, channel: there to be taken
  std::vector<std::vector<uint32_t>> semaphores_;     // by rank
  std::vector<std::vector<std::vector<bool>>> full_;  // by rank, buffer, chunk
};

/// By block: the op (of the rank) after which it lets the next launch begin; kNone: its end does.
std::vector<uint32_t> marks(const Program& program, uint32_t rank) {
  RankProgram lowered;
  Diagnostics diagnostics;
  REQUIRE(lower_rank(program, rank, lowered, diagnostics));
  mark_early_launch(program, rank, lowered);
  std::vector<uint32_t> ops(program.ranks[rank].blocks, kNone);
  for (uint32_t b = 0; b < ops.size(); ++b) {
    for (uint32_t i = lowered.block_begin[b]; i < lowered.block_begin[b + 1]; ++i) {
      if ((lowered.ops[i].flags & device::kFreesNext) != 0) ops[b] = lowered.ops[i].source;
    }
  }
  return ops;
}

/// "" or which rank has let the next launch begin, and then waits for a block that never began.
std::string stuck(const Program& program, const Standstill& run,
                  const std::vector<std::vector<uint32_t>>& marks, Block absent) {
  for (uint32_t r = 0; r < marks.size(); ++r) {
    if (r == absent.first) continue;  // the absent block has not let it begin
    bool ended = true, next_begins = true;
    for (uint32_t b = 0; b < marks[r].size(); ++b) {
      ended &= run.has_ended(r, b);
      next_begins &=
          run.has_ended(r, b) || (marks[r][b] != kNone && run.has_done(r, b, marks[r][b]));
    }
    if (next_begins && !ended) {
      return fmt::format("rank {} without block {} of rank {}", r, absent.second, absent.first);
    }
  }
  return "";
}

TEST_CASE("a block that lets the next launch begin waits for no block that has not begun") {
  uint32_t marked = 0, plans = 0;
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : entry.worlds) {
      const CompiledWorld world(entry.name, defines);
      const Program& program = world.program();
      if (program.ranks.size() > 5) continue;
      INFO(entry.name << " for " << program.ranks.size() << " ranks" << world.errors());
      std::vector<std::vector<uint32_t>> all;
      for (uint32_t r = 0; r < program.ranks.size(); ++r) all.push_back(marks(program, r));
      ++plans;
      marked += std::any_of(all[0].begin(), all[0].end(), [](uint32_t op) { return op != kNone; });
      for (uint32_t r = 0; r < program.ranks.size(); ++r) {
        for (uint32_t b = 0; b < program.ranks[r].blocks; ++b) {
          const Standstill run(program, {r, b});
          REQUIRE(stuck(program, run, all, {r, b}) == "");
        }
      }
    }
  }
  CHECK(plans > 100);
  CHECK(marked > plans / 2);
}

TEST_CASE("a block that lets the next launch begin too soon is noticed") {
  const CompiledWorld world("allreduce_1shot", {{"R", "4"}});
  const Program& program = world.program();
  std::vector<std::vector<uint32_t>> all;
  for (uint32_t r = 0; r < 4; ++r) all.push_back(marks(program, r));
  for (uint32_t b = 0; b < all[2].size(); ++b) all[2][b] = block_offsets(program.ranks[2])[b];
  CHECK(stuck(program, Standstill(program, {1, 0}), all, {1, 0}) ==
        "rank 2 without block 0 of rank 1");
}

}  // namespace
}  // namespace mscclc
