#include "tests/random_programs/repeated.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/random_programs/families/sketch.h"

namespace mscclc::random_programs {
namespace {

class Repeater {
 public:
  Repeater(const Program& one, uint32_t times) : one_(one), all_(one), times_(times) {}

  Program repeat() {
    repeat_contract();
    for (uint32_t r = 0; r < one_.ranks.size(); ++r) repeat_rank(r);
    return std::move(all_);
  }

 private:
  void repeat_contract() {
    Contract& contract = all_.contract;
    const uint32_t in = one_.contract.chunk_count(Side::input, 0);
    const uint32_t out = one_.contract.chunk_count(Side::output, 0);
    contract.input = {in * times_};
    contract.output = {out * times_};
    contract.promises.clear();
    for (uint32_t copy = 0; copy < times_; ++copy) {
      for (Promise promise : one_.contract.promises) {
        promise.output.chunk += copy * out;
        for (CallerChunk& input : promise.inputs) input.chunk += copy * in;
        contract.promises.push_back(std::move(promise));
      }
    }
    contract.sort_promises();
  }

  void repeat_rank(uint32_t r) {
    const Rank& one = one_.ranks[r];
    Rank& all = all_.ranks[r];
    for (Buffer& buffer : all.buffers) {
      buffer.chunks *= times_;
      buffer.dims = all_.append(std::vector<int64_t>{buffer.chunks});
      buffer.rows = {};
    }
    for (uint32_t copy = 1; copy < times_; ++copy) {
      for (Channel channel : one.channels) {
        channel.partner += copy * channels_of(channel.peer);
        all.channels.push_back(channel);
      }
      all.semaphores.insert(all.semaphores.end(), one.semaphores.begin(), one.semaphores.end());
      for (const Op& op : one.ops) all.ops.push_back(copied(r, op, copy));
    }
    all.blocks = one.blocks * times_;
    all.removed.clear();
  }

  uint32_t channels_of(uint32_t rank) const {
    return static_cast<uint32_t>(one_.ranks[rank].channels.size());
  }

  Op copied(uint32_t r, Op op, uint32_t copy) {
    const Rank& rank = one_.ranks[r];
    std::vector<Operand> operands;
    for (Operand o : one_.all_operands(op)) {
      if (info(op.kind).moves_data()) {
        o.first += copy * one_.buffer_of(r, o).chunks;
      } else if (info(op.kind).has(kMeets)) {
        o.first += copy * rank.blocks;
      } else if (o.channel == kNone) {
        o.first += copy * static_cast<uint32_t>(rank.semaphores.size());
      }
      if (o.channel != kNone) o.channel += copy * channels_of(r);
      operands.push_back(o);
    }
    all_.set_operands(op, std::span(operands).first(op.dsts), std::span(operands).subspan(op.dsts));
    op.block += copy * rank.blocks;
    return op;
  }

  const Program& one_;
  Program all_;
  const uint32_t times_;
};

bool may_be_repeated(const Program& program) {
  return program.contract.kind == CollectiveKind::custom && program.loops.empty() &&
         program.functions.empty() && program.flags.empty() &&
         std::ranges::all_of(program.ranks, [](const Rank& rank) {
           return std::ranges::all_of(rank.channels, [](const Channel& c) {
             return c.kind == ChannelKind::memory && c.partner != kNone;
           });
         });
}

/// One op is left out, is relaxed or not, or has another chunk, or another channel.
void change(Program& program, Dice& dice) {
  Rank& rank = program.ranks[dice.below(static_cast<uint32_t>(program.ranks.size()))];
  if (rank.ops.empty()) return;
  const uint32_t at = dice.below(static_cast<uint32_t>(rank.ops.size()));
  Op& op = rank.ops[at];
  const OpInfo& row = info(op.kind);
  const uint32_t way = dice.below(3);
  if (way == 0) {
    rank.ops.erase(rank.ops.begin() + at);
  } else if (way == 1 && (row.has(kSignals) || row.has(kWaits))) {
    op.relaxed = !op.relaxed;
  } else if (op.dsts + op.srcs > 0) {
    Operand& o = program.operands[op.operands + dice.below(uint32_t{op.dsts} + op.srcs)];
    const uint32_t r = static_cast<uint32_t>(&rank - program.ranks.data());
    if (row.moves_data()) {
      o.first = dice.below(program.buffer_of(r, o).chunks - o.count + 1);
    } else if (o.channel != kNone) {
      const uint32_t other = dice.below(static_cast<uint32_t>(rank.channels.size()));
      if (rank.channels[other].peer == rank.channels[o.channel].peer) o.channel = other;
    } else if (!row.has(kMeets)) {
      o.first = dice.below(static_cast<uint32_t>(rank.semaphores.size()));
    }
  }
}

}  // namespace

std::optional<Program> repeated(const Program& program, uint32_t times, Dice& dice) {
  if (!may_be_repeated(program)) return std::nullopt;
  Program all = Repeater(program, times).repeat();
  all.contract.even_only |= one_in(dice, 2);
  if (!one_in(dice, 4)) change(all, dice);
  return all;
}

}  // namespace mscclc::random_programs
