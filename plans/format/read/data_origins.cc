#include "plans/format/read/data_origins.h"

#include <algorithm>
#include <span>

namespace mscclc {

bool DataOrigins::follow() {
  if (!number_chunks()) return false;
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    for (const Op& op : program_.ranks[r].ops) {
      if (info(op.kind).moves_data() && !add_op(r, op)) return false;
    }
  }
  spread();
  return true;
}

bool DataOrigins::passed_on() const {
  return reads_ || std::ranges::any_of(steps_, [&](const Step& step) {
           const uint32_t origin = origins_[step.from];
           return step.sender != kNone && origin != kNone && origin != step.sender;
         });
}

uint32_t DataOrigins::shift() const {
  const uint32_t ranks = static_cast<uint32_t>(program_.ranks.size());
  uint32_t shift = 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    bool receives = false;
    for (uint32_t c = first_[r][kOutput]; c < first_[r][kOutput + 1]; ++c) {
      if (origins_[c] == kNone) continue;
      const uint32_t distance = origins_[c] == kSeveral ? 0 : (r + ranks - origins_[c]) % ranks;
      if (distance == 0 || (shift != 0 && distance != shift)) return 0;
      shift = distance;
      receives = true;
    }
    if (!receives) return 0;
  }
  return shift;
}

bool DataOrigins::number_chunks() {
  uint64_t chunks = 0;
  for (const Rank& rank : program_.ranks) {
    std::vector<uint32_t>& first = first_.emplace_back();
    for (const Buffer& b : rank.buffers) {
      first.push_back(static_cast<uint32_t>(chunks));
      if ((chunks += b.chunks) > kMost) return false;
    }
    first.push_back(static_cast<uint32_t>(chunks));
  }
  origins_.assign(chunks, kNone);
  return true;
}

bool DataOrigins::add_op(uint32_t rank, const Op& op) {
  const std::span<const Operand> dsts = program_.dsts(op), srcs = program_.srcs(op);
  const bool pairwise = info(op.kind).srcs.slot[0].pairwise && dsts.size() == srcs.size();
  for (size_t d = 0; d < dsts.size(); ++d) {
    for (const Operand& src : pairwise ? srcs.subspan(d, 1) : srcs) {
      if (!add_steps(rank, src, dsts[d])) return false;
    }
  }
  return true;
}

bool DataOrigins::add_steps(uint32_t rank, const Operand& from, const Operand& to) {
  if (!has_chunks(rank, from) || !has_chunks(rank, to)) return false;
  const uint32_t source = number(rank, from), target = number(rank, to);
  const uint32_t count = std::min(from.count, to.count);
  if (steps_.size() + count > kMost) return false;
  const uint32_t sender = to.channel == kNone ? kNone : rank;
  reads_ = reads_ || from.channel != kNone;
  for (uint32_t k = 0; k < count; ++k) steps_.push_back({source + k, target + k, sender});
  return true;
}

bool DataOrigins::has_chunks(uint32_t rank, const Operand& o) const {
  const bool local = o.channel == kNone;
  if (!local && program_.ranks[rank].channels[o.channel].kind == ChannelKind::switch_) {
    return false;
  }
  const std::vector<Buffer>& buffers = program_.ranks[program_.owner_of(rank, o)].buffers;
  return o.buffer < buffers.size() && uint64_t{o.first} + o.count <= buffers[o.buffer].chunks;
}

uint32_t DataOrigins::number(uint32_t rank, const Operand& o) const {
  return first_[program_.owner_of(rank, o)][o.buffer] + o.first;
}

void DataOrigins::spread() {
  std::ranges::sort(steps_, {}, &Step::from);
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    for (uint32_t c = first_[r][kInput]; c < first_[r][kInput + 1]; ++c) add_origin(c, r);
  }
  while (!changed_.empty()) {
    const uint32_t from = changed_.back();
    changed_.pop_back();
    const auto leaving = std::ranges::equal_range(steps_, from, {}, &Step::from);
    for (const Step& step : leaving) add_origin(step.to, origins_[from]);
  }
}

void DataOrigins::add_origin(uint32_t chunk, uint32_t origin) {
  uint32_t& known = origins_[chunk];
  if (known == origin || known == kSeveral) return;
  known = known == kNone ? origin : kSeveral;
  changed_.push_back(chunk);
}

}  // namespace mscclc
