#include "tools/draw/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

namespace mscclc::draw {
namespace {

class Hash {
 public:
  void mix(uint64_t value) {
    state_ ^= value + 0x9e3779b97f4a7c15ull + (state_ << 6) + (state_ >> 2);
    state_ *= 0xff51afd7ed558ccdull;
    state_ ^= state_ >> 32;
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xcbf29ce484222325ull;
};

/// What an operand is, apart from its chunk and from which of several channels it goes through.
uint64_t operand_shape(const Program& program, uint32_t rank, const Operand& o, SlotKind kind,
                       const PeerNames* names) {
  Hash hash;
  const bool chunks = kind <= SlotKind::switched;
  if (chunks) {
    hash.mix(o.buffer);
    hash.mix(o.count);
  }
  if (kind == SlotKind::flag) hash.mix(o.buffer);
  if ((chunks || kind == SlotKind::channel) && o.channel != kNone) {
    const Channel& channel = program.ranks[rank].channels[o.channel];
    hash.mix(static_cast<uint64_t>(channel.kind) + 1);
    if (names != nullptr && channel.peer != kNone) {
      hash.mix(names->relative(rank, channel.peer) + uint64_t{1});
    }
  }
  return hash.value();
}

uint64_t op_shape(const Program& program, uint32_t rank, const Op& op, const PeerNames* names) {
  Hash hash;
  hash.mix(static_cast<uint64_t>(op.kind));
  hash.mix(static_cast<uint64_t>(op.reduce) * 8 + op.relaxed * 4u +
           static_cast<uint64_t>(op.summation));
  hash.mix(op.parts);
  hash.mix(op.loop == kNone ? 0 : program.loops[op.loop].unit + 1);
  for (const bool left : {true, false}) {
    const auto operands = left ? program.dsts(op) : program.srcs(op);
    const Slots& slots = left ? info(op.kind).dsts : info(op.kind).srcs;
    std::vector<uint64_t> shapes;  // in no order: ranks list their peers from 0 on
    for (size_t i = 0; i < operands.size(); ++i) {
      const SlotKind kind = slots.count == 0 ? SlotKind::local : slots.of(i, false).kind;
      shapes.push_back(operand_shape(program, rank, operands[i], kind, names));
    }
    std::sort(shapes.begin(), shapes.end());
    hash.mix(shapes.size());
    for (const uint64_t shape : shapes) hash.mix(shape);
  }
  return hash.value();
}

/// Of all blocks of a rank, in no order.
uint64_t rank_shape(const Program& program, const Steps& steps, uint32_t rank,
                    const PeerNames* names) {
  std::vector<uint64_t> shapes;
  for (uint32_t b = steps.first_block[rank]; b < steps.first_block[rank + 1]; ++b) {
    shapes.push_back(shape_of(program, steps, steps.blocks[b], names));
  }
  std::sort(shapes.begin(), shapes.end());
  Hash hash;
  for (const uint64_t shape : shapes) hash.mix(shape);
  return hash.value();
}

bool all_alike(const Program& program, const Steps& steps, const PeerNames& names) {
  const uint64_t first = rank_shape(program, steps, 0, &names);
  for (uint32_t r = 1; r < program.ranks.size(); ++r) {
    if (rank_shape(program, steps, r, &names) != first) return false;
  }
  return true;
}

/// All that may be tried, the simplest first.
std::vector<PeerNames> turns_of(uint32_t ranks) {
  std::vector<PeerNames> turns = {{RankTurn::ring, ranks, 1}};
  for (uint32_t gpus = ranks / 2; gpus >= 2; --gpus) {
    if (ranks % gpus == 0) turns.push_back({RankTurn::nodes, ranks, gpus});
  }
  if (std::has_single_bit(ranks)) turns.push_back({RankTurn::flip, ranks, 1});
  return turns;
}

std::string ring_name(uint32_t k, uint32_t ranks) {
  return k <= ranks / 2 ? fmt::format("r + {}", k) : fmt::format("r − {}", ranks - k);
}

std::string node_name(uint32_t relative, uint32_t gpus) {
  const uint32_t node = relative / gpus, mate = relative % gpus;
  if (node == 0) return fmt::format("mate + {}", mate);
  if (mate == 0) return fmt::format("node + {}", node);
  return fmt::format("node + {}, mate + {}", node, mate);
}

/// "its node", "its twins" or both, if the peers are just those.
std::string node_set(uint32_t rank, uint32_t gpus, uint32_t ranks,
                     const std::vector<uint32_t>& peers) {
  const bool mates =
      std::ranges::all_of(peers, [&](uint32_t p) { return p / gpus == rank / gpus; });
  if (mates && peers.size() == gpus - 1) return "its node";
  const bool twins =
      std::ranges::all_of(peers, [&](uint32_t p) { return p % gpus == rank % gpus; });
  if (twins && peers.size() == ranks / gpus - 1) return "its twins";
  const bool both = std::ranges::all_of(
      peers, [&](uint32_t p) { return p / gpus == rank / gpus || p % gpus == rank % gpus; });
  return both && peers.size() == gpus + ranks / gpus - 2 ? "its node and its twins" : "";
}

}  // namespace

uint32_t PeerNames::relative(uint32_t rank, uint32_t peer) const {
  switch (turn) {
    case RankTurn::none:
      return peer;
    case RankTurn::ring:
      return (peer + ranks - rank) % ranks;
    case RankTurn::flip:
      return peer ^ rank;
    case RankTurn::nodes:
      break;
  }
  const uint32_t nodes = ranks / gpus;
  const uint32_t node = (peer / gpus + nodes - rank / gpus) % nodes;
  return node * gpus + (peer % gpus + gpus - rank % gpus) % gpus;
}

std::string PeerNames::one(uint32_t rank, uint32_t peer) const {
  const uint32_t k = relative(rank, peer);
  if (turn == RankTurn::ring) return ring_name(k, ranks);
  if (turn == RankTurn::flip) return fmt::format("r xor {}", k);
  if (turn == RankTurn::nodes) return node_name(k, gpus);
  return fmt::format("{}", k);
}

std::string PeerNames::several(uint32_t rank, std::vector<uint32_t> peers) const {
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  if (peers.size() > 1 && peers.size() + 1 == ranks && !std::ranges::count(peers, rank)) {
    return "all others";
  }
  if (peers.size() == ranks && ranks > 1) return "all ranks";
  if (turn == RankTurn::none) {
    const std::vector<int64_t> list(peers.begin(), peers.end());
    return list_text(list);
  }
  if (turn == RankTurn::nodes && !peers.empty()) {
    if (std::string set = node_set(rank, gpus, ranks, peers); !set.empty()) return set;
  }
  if (peers.size() > 3) return fmt::format("{} ranks", peers.size());
  std::string text;
  for (const uint32_t peer : peers) text += (text.empty() ? "" : ", ") + one(rank, peer);
  return text;
}

Symmetry find_symmetry(const Program& program, const Steps& steps) {
  const uint32_t ranks = static_cast<uint32_t>(program.ranks.size());
  Symmetry out;
  out.names.ranks = ranks;
  if (ranks > 1) {
    for (const PeerNames& names : turns_of(ranks)) {
      if (!all_alike(program, steps, names)) continue;
      out.names = names;
      break;
    }
  }
  std::map<uint64_t, size_t> known;
  for (uint32_t r = 0; r < ranks; ++r) {
    const auto [at, is_new] =
        known.try_emplace(rank_shape(program, steps, r, nullptr), out.classes.size());
    if (is_new) out.classes.emplace_back();
    out.classes[at->second].push_back(r);
  }
  return out;
}

uint64_t shape_of(const Program& program, const Steps& steps, const Block& block,
                  const PeerNames* names) {
  Hash hash;
  for (uint32_t s = block.first; s < block.first + block.count; ++s) {
    for (const uint32_t i : steps.steps[s].ops) {
      hash.mix(op_shape(program, block.rank, program.ranks[block.rank].ops[i], names));
    }
  }
  return hash.value();
}

std::string list_text(std::span<const int64_t> sorted, size_t most_runs) {
  std::string text;
  size_t runs = 0;
  for (size_t i = 0; i < sorted.size();) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (runs++ == most_runs) return text + ", …";
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", sorted[i]);
    if (end - i > 1) text += fmt::format("{}{}", end - i == 2 ? ", " : "–", sorted[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace mscclc::draw
