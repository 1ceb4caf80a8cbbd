#include "passes/prove/model/system.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "ir/program/scratch_layout.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

System::System(const Program& program, const Symmetry& symmetry, bool in_place)
    : program_(program), symmetry_(symmetry), in_place_(in_place) {
  parts_.push_back(only_part(program));
  build();
}

System::System(const Joint& joint, const Symmetry& symmetry, bool in_place)
    : program_(joint.program), symmetry_(symmetry), in_place_(in_place), parts_(joint.parts) {
  build();
}

/// The processes of one turn fill one page, or several.
uint32_t System::page_bits() const {
  if (symmetry_.trivial()) return ClockLayout::kMaxBits;
  uint32_t processes = 0, bits = ClockLayout::kLeastBits;
  for (uint32_t r = 0; r < ranks(); ++r) processes += blocks_of(r) + 1;
  while (bits < ClockLayout::kMaxBits && 1u << bits < processes) ++bits;
  return bits;
}

void System::build() {
  clock_.page_bits = page_bits();
  uint32_t ends = 0, semaphores = 0, buffers = 0, processes = 0;
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    const Rank& rank = program_.ranks[r];
    first_.push_back(processes);
    blocks_.push_back(r < ranks() ? blocks_of(r) : blocks_[r % ranks()]);
    processes += blocks_[r] + 1;
    first_end_.push_back(ends);
    first_semaphore_.push_back(semaphores);
    first_buffer_.push_back(buffers);
    ends += static_cast<uint32_t>(rank.channels.size());
    semaphores += static_cast<uint32_t>(rank.semaphores.size());
    buffers += static_cast<uint32_t>(rank.buffers.size());
    if (r < ranks()) place_buffers(r);
  }
  first_end_.push_back(ends);
  first_semaphore_.push_back(semaphores);
  numbers_.resize(processes);
  if (blocks_meet()) {
    number_by_rank();
  } else {
    number_by_block();
  }
  width_ = clock_.width = static_cast<uint32_t>(processes_.size());
  turn_ = ranks() < program_.ranks.size() ? block_process(ranks(), 0) : 0;
  if (joint()) {
    share_ends();
    find_overlaid();
  }
  add_ports();
}

/// Do ranks turn, or do blocks of a rank learn from each other? (Else from those of other ranks.)
bool System::blocks_meet() const {
  if (!symmetry_.trivial()) return true;
  return std::ranges::any_of(program_.ranks, [](const Rank& rank) {
    return std::ranges::any_of(rank.ops, [](const Op& op) {
      return info(op.kind).has(kMeets) || info(op.kind).has(kAcquires);
    });
  });
}

void System::add_block(uint32_t rank, uint32_t block) {
  numbers_[first_[rank] + block] = static_cast<uint32_t>(processes_.size());
  processes_.push_back({ProcessKind::block, rank, block});
}

void System::add_caller(uint32_t rank) {
  numbers_[first_[rank] + blocks_[rank]] = static_cast<uint32_t>(processes_.size());
  processes_.push_back({ProcessKind::caller, rank, 0});
}

/// The processes of a rank are next to each other.
void System::number_by_rank() {
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    for (uint32_t b = 0; b < blocks_[r]; ++b) add_block(r, b);
    add_caller(r);
    if ((r + 1) % ranks() == 0) fill_page(r);
  }
}

/// Blocks of one number are next to each other, as they mostly deal with each other: so what a
/// block learns is on few pages.
void System::number_by_block() {
  const uint32_t most = *std::ranges::max_element(blocks_);
  for (uint32_t b = 0; b < most; ++b) {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      if (b < blocks_[r]) add_block(r, b);
    }
  }
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) add_caller(r);
}

/// After the last rank of a turn.
void System::fill_page(uint32_t rank) {
  const uint32_t turn =
      static_cast<uint32_t>(processes_.size()) - block_process(rank + 1 - ranks(), 0);
  const uint32_t over = turn % clock_.columns();
  if (symmetry_.trivial() || over == 0) return;
  processes_.resize(processes_.size() + clock_.columns() - over, {ProcessKind::none, rank, kNone});
}

void System::add_ports() {
  ports_.assign(ends(), kNone);
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    if (r == ranks()) port_turn_ = static_cast<uint32_t>(processes_.size()) - width_;
    const std::vector<Channel>& channels = program_.ranks[r].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      if (channels[c].kind != ChannelKind::port || ports_[end(r, c)] != kNone) continue;
      ports_[end(r, c)] = static_cast<uint32_t>(processes_.size());
      processes_.push_back({ProcessKind::port_reader, r, c});
      processes_.push_back({ProcessKind::port_writer, r, c});
    }
  }
}

/// The n-th memory channel between two ranks is the same for all plans, and so is the n-th port.
/// They are counted as the lower rank lists them.
void System::share_ends() {
  shared_ends_.resize(first_end_.back());
  std::iota(shared_ends_.begin(), shared_ends_.end(), 0u);
  using Wire = std::tuple<size_t, ChannelKind, uint32_t, uint32_t>;  // part, kind, lower, higher
  std::map<Wire, uint32_t> counts;
  std::map<std::tuple<ChannelKind, uint32_t, uint32_t, uint32_t>, uint32_t> first_with;
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    const std::vector<Channel>& channels = program_.ranks[r].channels;
    size_t part = 0;
    uint32_t left = 0;  // channels of the part that are still to come
    for (uint32_t c = 0; c < channels.size(); ++c) {
      for (; left == 0; ++part) {
        left =
            parts_[part].has(r) ? static_cast<uint32_t>(parts_[part].rank(r).channels.size()) : 0;
      }
      --left;
      const Channel& channel = channels[c];
      if (channel.partner == kNone || channel.peer < r) continue;
      const uint32_t n = counts[{part, channel.kind, r, channel.peer}]++;
      const uint32_t here = first_end_[r] + c, there = first_end_[channel.peer] + channel.partner;
      const auto [known, fresh] = first_with.try_emplace({channel.kind, r, channel.peer, n}, here);
      if (fresh) continue;
      const uint32_t first = known->second - first_end_[r];
      shared_ends_[here] = known->second;
      shared_ends_[there] = first_end_[channel.peer] + channels[first].partner;
    }
  }
}

/// In place, both of the caller's buffers lie in the larger one.
void System::place_callers(uint32_t r, const Part& part) {
  const Contract& contract = part.contract();
  uint64_t* bases = &bases_[first_buffer_[r] + part.input];
  const Rank& rank = part.rank(r);
  const bool together =
      contract.in_place == InPlace::yes || (in_place_ && contract.in_place != InPlace::no);
  const auto alias = together ? contract.alias(part.local[r]) : std::nullopt;
  if (!alias) return;
  if (rank.buffers[kOutput].chunks >= rank.buffers[kInput].chunks) {
    bases[kInput] = bases[kOutput] + alias->output_chunk;
  } else {
    bases[kOutput] = bases[kInput] + alias->input_chunk;
  }
}

/// Is the scratch of both laid out alike at a rank, chunk by chunk?
bool System::shares_chunks(uint32_t r, const Part& a, const Part& b) const {
  if (!a.has(r) || !b.has(r)) return false;
  if (!a.program->launch.reuse_scratch || !b.program->launch.reuse_scratch) return false;
  return premise(Premise::chunk_on_chunk,
                 same_scratch(*a.program, a.local[r], *b.program, b.local[r]));
}

void System::find_overlaid() {
  const auto shares = [&](const Part& part, uint32_t r) {
    return part.has(r) && part.program->launch.reuse_scratch;
  };
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    for (const Part& a : parts_) {
      for (const Part& b : parts_) {
        overlaid_.push_back(&a != &b && shares(a, r) && shares(b, r) && !shares_chunks(r, a, b));
      }
    }
  }
}

void System::place_buffers(uint32_t r) {
  for (const Buffer& buffer : program_.ranks[r].buffers) {
    bases_.push_back(chunks_);
    chunks_ += uint64_t{buffer.chunks} * buffer.copies;
    period_ = std::lcm(period_, buffer.copies);
  }
  for (const Part& part : parts_) {
    if (!part.has(r)) continue;
    place_callers(r, part);
    for (const Part& earlier : parts_) {
      if (&earlier == &part) break;
      if (!shares_chunks(r, earlier, part)) continue;
      const size_t scratch = part.rank(r).buffers.size() - kFirstScratch;
      std::copy_n(&bases_[first_buffer_[r] + earlier.first_scratch[r]], scratch,
                  &bases_[first_buffer_[r] + part.first_scratch[r]]);
      break;
    }
  }
}

const Part& System::part_of_op(uint32_t rank, uint32_t op) const {
  size_t part = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].has(rank) && parts_[i].first_op[rank] <= op) part = i;
  }
  return parts_[part];
}

const Part& System::part_of_buffer(uint32_t rank, uint32_t buffer) const {
  if (is_callers(buffer)) return parts_[buffer / 2];
  size_t part = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].has(rank) && parts_[i].first_scratch[rank] <= buffer) part = i;
  }
  return parts_[part];
}

News System::turned(const News& news, uint32_t turns) const {
  if (turns == 0) return news;
  News result = news;
  result.known = news.known.rotated(turned(0, turns), clock_);
  if (news.process != kNone) result.process = turned(news.process, turns);
  if (news.port != kNone) result.port = turned(news.port, turns);
  return result;
}

}  // namespace mscclc::proof
