#include "tools/diff/identity.h"

#include <algorithm>
#include <map>

namespace mscclc::diff {
namespace {

constexpr int kRounds = 6;  // what is further apart than so many uses does not show

uint64_t start_of(const Program& program, uint32_t rank, const Channel& channel) {
  uint64_t colour = mixed(static_cast<uint64_t>(channel.kind), channel.peer);
  colour = mixed(colour, channel.credits);
  colour = mixed(colour, rank);
  for (const int64_t member : program.values(channel.group)) {
    colour = mixed(colour, static_cast<uint64_t>(member));
  }
  return colour;
}

/// What an op has besides operands and its pipeline.
uint64_t head_of(const Op& op) {
  uint64_t colour = mixed(static_cast<uint64_t>(op.kind), static_cast<uint64_t>(op.reduce));
  colour = mixed(colour, op.relaxed * 8u + op.complete * 4u + static_cast<uint32_t>(op.summation));
  colour = mixed(colour, uint64_t{op.part} << 16 | op.parts);
  return mixed(colour, op.loop != kNone);
}

uint64_t pipeline_of(const Program& program, const Op& op) {
  if (op.loop == kNone) return 0;
  return mixed(program.loops[op.loop].unit, program.loops[op.loop].chunks);
}

/// Calls visit(operand, slot's kind) for each operand, destinations first.
template <class Visit>
void for_each_operand(const Program& program, const Op& op, Visit&& visit) {
  const OpInfo& row = info(op.kind);
  size_t i = 0;
  for (const Operand& o : program.dsts(op)) visit(o, row.dsts.of(i++, false).kind);
  i = 0;
  for (const Operand& o : program.srcs(op)) visit(o, row.srcs.of(i++, false).kind);
}

class Colouring {
 public:
  explicit Colouring(const Program& program) : program_(program), out_(program.ranks.size()) {
    for (uint32_t r = 0; r < out_.size(); ++r) begin(r);
  }

  std::vector<RankIdentity> run() {
    for (int round = 0; round < kRounds; ++round) refine();
    for (RankIdentity& rank : out_) {
      uint64_t all = rank.blocks.size();
      for (const auto* colours : {&rank.blocks, &rank.channels, &rank.buffers, &rank.semaphores}) {
        uint64_t sum = 0;  // in no order
        for (const uint64_t colour : *colours) sum += mixed(1, colour);
        all = mixed(all, sum);
      }
      rank.all = all;
    }
    return std::move(out_);
  }

 private:
  void begin(uint32_t r) {
    const Rank& rank = program_.ranks[r];
    RankIdentity& out = out_[r];
    for (const Channel& c : rank.channels) out.channels.push_back(start_of(program_, r, c));
    for (uint32_t b = 0; b < rank.buffers.size(); ++b) {
      const uint64_t which = b < kFirstScratch ? b + 1 : 0;
      out.buffers.push_back(mixed(coarse_identity(rank.buffers[b]), which));
    }
    for (const Semaphore& s : rank.semaphores) out.semaphores.push_back(mixed(7, s.initial));
    std::map<int64_t, std::vector<uint32_t>> blocks;
    for (uint32_t i = 0; i < rank.ops.size(); ++i) {
      const Op& op = rank.ops[i];
      const int64_t place = op.block != kNone   ? int64_t{op.block}
                            : op.group != kNone ? (int64_t{1} << 33) + op.group
                                                : int64_t{1} << 40;
      blocks[place].push_back(i);
    }
    for (auto& [place, ops] : blocks) {
      out.places.push_back(place);
      out.ops.push_back(std::move(ops));
      out.blocks.push_back(place == int64_t{1} << 40);
    }
  }

  void refine() {
    std::vector<RankIdentity> next = out_;
    for (uint32_t r = 0; r < out_.size(); ++r) {
      for (size_t b = 0; b < out_[r].blocks.size(); ++b) refine_block(r, b, next);
    }
    for (uint32_t r = 0; r < out_.size(); ++r) {
      for (size_t c = 0; c < next[r].channels.size(); ++c) {
        const Channel& channel = program_.ranks[r].channels[c];
        if (channel.partner == kNone || channel.peer >= out_.size()) continue;
        const auto& far = out_[channel.peer].channels;
        if (channel.partner < far.size()) {
          next[r].channels[c] += mixed(3, far[channel.partner]);
        }
      }
    }
    out_ = std::move(next);
  }

  void refine_block(uint32_t r, size_t b, std::vector<RankIdentity>& next) {
    uint64_t colour = out_[r].blocks[b];
    uint64_t at = 0;
    uint32_t loop = kNone;
    for (const uint32_t i : out_[r].ops[b]) {
      const Op& op = program_.ranks[r].ops[i];
      colour = mixed(mixed(colour, head_of(op)), pipeline_of(program_, op));
      colour = mixed(colour, op.loop == loop);  // two pipelines after each other are not one
      loop = op.loop;
      for_each_operand(program_, op, [&](const Operand& o, SlotKind kind) {
        colour = mixed(colour, colour_of(r, o, kind));
        use(r, o, kind, mixed(mixed(out_[r].blocks[b], ++at), o.first), next);
      });
    }
    next[r].blocks[b] = colour;
  }

  /// The rank whose buffer a chunk lies in; at a switch this one, which names it as all do.
  uint32_t owner(uint32_t r, const Operand& o) const {
    if (o.channel == kNone) return r;
    const Channel& channel = program_.ranks[r].channels[o.channel];
    return channel.peer == kNone ? r : channel.peer;
  }

  uint64_t colour_of(uint32_t r, const Operand& o, SlotKind kind) const {
    const RankIdentity& rank = out_[r];
    if (kind == SlotKind::semaphore) return rank.semaphores[o.first];
    if (kind == SlotKind::flag) return mixed(mixed(23, o.buffer), o.first);  // arrays keep order
    if (kind == SlotKind::block) {
      const auto at = std::ranges::find(rank.places, int64_t{o.first});
      return at == rank.places.end() ? 5
                                     : rank.blocks[static_cast<size_t>(at - rank.places.begin())];
    }
    uint64_t colour = o.channel == kNone ? 11 : rank.channels[o.channel];
    if (kind == SlotKind::channel) return colour;
    colour = mixed(colour, out_[owner(r, o)].buffers[o.buffer]);
    return mixed(mixed(colour, o.first), o.count);
  }

  /// What is used gets a colour by its uses, in no order.
  void use(uint32_t r, const Operand& o, SlotKind kind, uint64_t how,
           std::vector<RankIdentity>& next) const {
    if (kind == SlotKind::semaphore) {
      next[r].semaphores[o.first] += mixed(13, how);
    } else if (kind != SlotKind::block && kind != SlotKind::flag) {
      if (o.channel != kNone) next[r].channels[o.channel] += mixed(17, how);
      if (kind != SlotKind::channel)
        next[owner(r, o)].buffers[o.buffer] += mixed(19, mixed(how, r));
    }
  }

  const Program& program_;
  std::vector<RankIdentity> out_;
};

}  // namespace

std::vector<RankIdentity> identities(const Program& program) { return Colouring(program).run(); }

uint64_t mixed(uint64_t before, uint64_t value) {
  before ^= value + 0x9e3779b97f4a7c15ull + (before << 6) + (before >> 2);
  before *= 0xff51afd7ed558ccdull;
  return before ^ before >> 32;
}

uint64_t coarse_identity(const Buffer& buffer) {
  uint64_t colour = mixed(static_cast<uint64_t>(buffer.packets), buffer.copies);
  colour = mixed(mixed(colour, buffer.units), buffer.unit);
  return mixed(mixed(colour, buffer.chunks), static_cast<uint64_t>(buffer.kind));
}

namespace {

/// What an operand is, without regard to which of several channels, buffers or semaphores.
uint64_t coarse_operand(const Program& program, uint32_t rank, const Operand& o, SlotKind kind,
                        bool turned) {
  const uint64_t ranks = program.ranks.size();
  uint64_t colour = static_cast<uint64_t>(kind);
  if (kind == SlotKind::semaphore || kind == SlotKind::block) return colour;
  if (kind == SlotKind::flag) return mixed(mixed(colour, o.buffer), turned ? 0 : o.first);
  if (o.channel != kNone) {
    const Channel& channel = program.ranks[rank].channels[o.channel];
    const uint64_t peer = channel.peer;
    colour = mixed(colour, static_cast<uint64_t>(channel.kind));
    colour = mixed(colour, turned && peer != kNone ? (peer + ranks - rank) % ranks : peer);
  }
  if (kind == SlotKind::channel) return colour;
  const Buffer& buffer = program.buffer_of(rank, o);
  colour = mixed(colour, static_cast<uint64_t>(buffer.kind));
  colour = mixed(colour, static_cast<uint64_t>(buffer.packets));
  return mixed(mixed(colour, turned ? 0 : o.first), o.count);
}

}  // namespace

uint64_t coarse_identity(const Program& program, uint32_t rank, const Op& op, bool turned) {
  uint64_t in_order = head_of(op), in_no_order = 0;  // each rank lists its peers from 0 on
  for_each_operand(program, op, [&](const Operand& o, SlotKind kind) {
    const uint64_t colour = coarse_operand(program, rank, o, kind, turned);
    if (turned) {
      in_no_order += mixed(23, colour);
    } else {
      in_order = mixed(in_order, colour);
    }
  });
  return mixed(in_order, in_no_order);
}

}  // namespace mscclc::diff
