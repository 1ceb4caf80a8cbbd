#include "passes/prove/model/system.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "ir/program/flag_regions.h"
#include "ir/support/precondition.h"

namespace mscclc::proof {

namespace {

uint32_t blocks_of(const Rank& rank) {
  return static_cast<uint32_t>(block_offsets(rank).size()) - 1;
}

/// The processes of one turn fill one page, or several.
uint32_t page_bits(const Program& program, const Symmetry& symmetry) {
  if (symmetry.trivial()) return ClockLayout::kMaxBits;
  uint32_t processes = 0, bits = ClockLayout::kLeastBits;
  for (uint32_t r = 0; r < symmetry.step(); ++r) processes += blocks_of(program.ranks[r]) + 1;
  while (bits < ClockLayout::kMaxBits && 1u << bits < processes) ++bits;
  return bits;
}

/// Do ranks turn, or do blocks of a rank learn from each other? (Else from those of other ranks.)
bool blocks_meet(const Program& program, const Symmetry& symmetry) {
  if (!symmetry.trivial()) return true;
  return std::ranges::any_of(program.ranks, [](const Rank& rank) {
    return std::ranges::any_of(rank.ops, [](const Op& op) {
      return info(op.kind).has(kMeets) || info(op.kind).has(kAcquires);
    });
  });
}

/// The n-th memory channel between two ranks is the same for all plans, and so is the n-th port.
/// They are counted as the lower rank lists them.
std::vector<uint32_t> shared_ends(const Program& program, const std::vector<Part>& parts,
                                  const std::vector<uint32_t>& first_end) {
  std::vector<uint32_t> shared(first_end.back());
  std::iota(shared.begin(), shared.end(), 0u);
  using Wire = std::tuple<size_t, ChannelKind, uint32_t, uint32_t>;  // part, kind, lower, higher
  std::map<Wire, uint32_t> counts;
  std::map<std::tuple<ChannelKind, uint32_t, uint32_t, uint32_t>, uint32_t> first_with;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const std::vector<Channel>& channels = program.ranks[r].channels;
    size_t part = 0;
    uint32_t left = 0;  // channels of the part that are still to come
    for (uint32_t c = 0; c < channels.size(); ++c) {
      for (; left == 0; ++part) {
        left = parts[part].has(r) ? static_cast<uint32_t>(parts[part].rank(r).channels.size()) : 0;
      }
      --left;
      const Channel& channel = channels[c];
      if (channel.partner == kNone || channel.peer < r) continue;
      const uint32_t n = counts[{part, channel.kind, r, channel.peer}]++;
      const uint32_t here = first_end[r] + c, there = first_end[channel.peer] + channel.partner;
      const auto [known, fresh] = first_with.try_emplace({channel.kind, r, channel.peer, n}, here);
      if (fresh) continue;
      const uint32_t first = known->second - first_end[r];
      shared[here] = known->second;
      shared[there] = first_end[channel.peer] + channels[first].partner;
    }
  }
  return shared;
}

/// By rank, part and part: System::overlaid().
std::vector<bool> overlaid_parts(size_t ranks, const std::vector<Part>& parts) {
  std::vector<bool> overlaid;
  for (uint32_t r = 0; r < ranks; ++r) {
    for (const Part& a : parts) {
      for (const Part& b : parts) {
        overlaid.push_back(&a != &b && share_scratch(r, a, b) && !share_chunks(r, a, b));
      }
    }
  }
  return overlaid;
}

}  // namespace

System::System(const Program& program, const Symmetry& symmetry, bool in_place)
    : program_(program),
      symmetry_(symmetry),
      in_place_(in_place),
      parts_{only_part(program)},
      chunks_(program_, parts_, ranks(), in_place) {
  precondition(program.split);
  build();
}

System::System(const Joint& joint, const Symmetry& symmetry, bool in_place)
    : program_(joint.program),
      symmetry_(symmetry),
      in_place_(in_place),
      parts_(joint.parts),
      chunks_(program_, parts_, ranks(), in_place) {
  build();
}

void System::build() {
  clock_.page_bits = page_bits(program_, symmetry_);
  uint32_t ends = 0, semaphores = 0, processes = 0;
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    const Rank& rank = program_.ranks[r];
    first_.push_back(processes);
    blocks_.push_back(r < ranks() ? blocks_of(rank) : blocks_[r % ranks()]);
    processes += blocks_[r] + 1;
    first_end_.push_back(ends);
    first_semaphore_.push_back(semaphores);
    ends += static_cast<uint32_t>(rank.channels.size());
    semaphores += static_cast<uint32_t>(rank.semaphores.size());
  }
  first_end_.push_back(ends);
  first_semaphore_.push_back(semaphores);
  numbers_.resize(processes);
  if (blocks_meet(program_, symmetry_)) {
    number_by_rank();
  } else {
    number_by_block();
  }
  width_ = clock_.width = static_cast<uint32_t>(processes_.size());
  turn_ = ranks() < program_.ranks.size() ? block_process(ranks(), 0) : 0;
  if (joint()) {
    shared_ends_ = shared_ends(program_, parts_, first_end_);
    overlaid_ = overlaid_parts(program_.ranks.size(), parts_);
  }
  add_ports();
}

void System::add_block(uint32_t rank, uint32_t block) {
  numbers_[first_[rank] + block] = static_cast<uint32_t>(processes_.size());
  processes_.push_back({ProcessKind::block, rank, block});
}

void System::add_caller(uint32_t rank) {
  numbers_[first_[rank] + blocks_[rank]] = static_cast<uint32_t>(processes_.size());
  processes_.push_back({ProcessKind::caller, rank, 0});
  const uint32_t flags = flag_total(program_);
  for (uint32_t f = 0; f < flags; ++f) processes_.push_back({ProcessKind::flag, rank, f});
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

void System::number_touched_chunks() {
  precondition(!joint());
  std::vector<bool> touched(chunks_.count());
  for (uint32_t r = 0; r < ranks(); ++r) {
    for (const Op& op : program_.ranks[r].ops) {
      if (!info(op.kind).moves_data()) continue;
      for (const Operand& o : program_.all_operands(op)) {
        const uint32_t owner = program_.owner_of(r, o);
        const uint32_t copies = program_.ranks[owner].buffers[o.buffer].copies;
        for (uint32_t k = 0; k < o.count * copies; ++k) {
          touched[spot(owner, o.buffer, o.first + k / copies, k % copies).chunk] = true;
        }
      }
    }
  }
  chunks_.keep(touched);
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
