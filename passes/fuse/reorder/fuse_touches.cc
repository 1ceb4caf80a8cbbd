#include "passes/fuse/reorder/fuse_touches.h"

#include <algorithm>
#include <bit>

namespace mscclc::fusion {
namespace {

constexpr uint64_t kMaxTouches = uint64_t{1} << 24;  // of one rank

/// Sides of channel ends and semaphores, each a space of its own. On a port all ops of the sending
/// side go through one queue.
enum Side : uint32_t { kSending, kQueue, kWaiting, kReleasing, kAcquiring };

}  // namespace

Touches::Touches(const Program& program) : program_(program) {
  const Contract& contract = program.contract;
  const uint32_t ranks = static_cast<uint32_t>(program.ranks.size());
  shifts_.resize(ranks);
  const bool may_coincide = contract.in_place != InPlace::no && contract.can_alias();
  for (uint32_t r = 0; r < ranks; ++r) {
    buffers_ = std::max(buffers_, static_cast<uint32_t>(program.ranks[r].buffers.size()));
    if (!may_coincide) continue;
    // Output chunk 0 lies at input chunk `input_chunk`, or the other way round.
    if (const auto alias = contract.alias(r)) {
      shifts_[r] = {true, alias->output_chunk, alias->input_chunk};
    }
  }
  channel_space_ = ranks * buffers_;
}

bool Touches::start(uint32_t rank, Number first, Number last) {
  const std::vector<Op>& ops = program_.ranks[rank].ops;
  first_ = first;
  uses_.clear();
  touches_.clear();
  begin_.clear();
  cells_ = 0;
  for (Number n = first; n <= last; ++n) {
    begin_.push_back(static_cast<uint32_t>(uses_.size()));
    add_uses(rank, ops[n - 1]);
  }
  begin_.push_back(static_cast<uint32_t>(uses_.size()));
  uint64_t chunks = 0;
  for (const Use& use : uses_) chunks += use.at.count;
  if (chunks > kMaxTouches) return false;
  const uint32_t bits = std::max<uint32_t>(4, static_cast<uint32_t>(std::bit_width(2 * chunks)));
  slots_.assign(size_t{1} << bits, {});
  shift_ = 64 - bits;
  touches_.reserve(chunks);
  uint32_t next = 0;
  for (uint32_t& begin : begin_) {
    for (; next < begin; ++next) add_touches(next);
    begin = static_cast<uint32_t>(touches_.size());
  }
  return true;
}

void Touches::add_uses(uint32_t rank, const Op& op) {
  const OpInfo& row = info(op.kind);
  if (!row.moves_data()) return add_control(rank, op, row);
  accesses_.clear();
  append_accesses(program_, rank, op, accesses_);
  for (const Access& access : accesses_) {
    const Use use{.at = stretch(access), .write = access.write, .packets = access.packets};
    uses_.push_back(use);
    if (!empties(row, access)) continue;
    uses_.push_back({.at = use.at, .write = true, .packets = true, .empties = true});
  }
  const uint32_t channel = op.dsts == 0 ? kNone : program_.dsts(op)[0].channel;
  if (channel == kNone || program_.ranks[rank].channels[channel].kind != ChannelKind::port) return;
  for (const Operand& o : program_.dsts(op)) {
    uses_.push_back(of_end(kQueue, o.channel));
  }
}

/// A reader of a sentinel slot empties it.
bool Touches::empties(const OpInfo& row, const Access& access) const {
  if (access.write || !access.packets || !row.has(Effects::kPolls)) return false;
  return is_sentinel(program_.ranks[access.rank].buffers[access.buffer].packets);
}

Use Touches::of_end(uint32_t side, uint32_t index) const {
  return {.at = {channel_space_ + side, index, 1}, .write = true, .memory = false};
}

void Touches::add_control(uint32_t rank, const Op& op, const OpInfo& row) {
  if (row.has(kReleases) || row.has(kAcquires)) {
    const Side side = row.has(kReleases) ? kReleasing : kAcquiring;
    for (const Operand& o : program_.dsts(op)) uses_.push_back(of_end(side, o.first));
  } else if (row.has(kSignals) || row.has(kFlushes) || row.has(kWaits)) {
    for (const Operand& o : program_.dsts(op)) {
      const bool port = program_.ranks[rank].channels[o.channel].kind == ChannelKind::port;
      const Side side = row.has(kWaits) ? kWaiting : port ? kQueue : kSending;
      uses_.push_back(of_end(side, o.channel));
    }
  }
}

Stretch Touches::stretch(const Access& access) const {
  const uint32_t space = access.rank * buffers_ + access.buffer;
  if (access.buffer >= kFirstScratch || !shifts_[access.rank].shared) {
    return {space, access.first, access.count};
  }
  const Shift& shift = shifts_[access.rank];
  const uint32_t by = access.buffer == kInput ? shift.input : shift.output;
  return {access.rank * buffers_ + kInput, access.first + by, access.count};
}

void Touches::add_touches(uint32_t use) {
  const Stretch& at = uses_[use].at;
  for (uint32_t i = 0; i < at.count; ++i) {
    touches_.push_back({cell(uint64_t{at.space} << 32 | (at.first + i)), use});
  }
}

uint32_t Touches::cell(uint64_t key) {
  const size_t mask = slots_.size() - 1;
  for (size_t at = key * 0x9e3779b97f4a7c15u >> shift_;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.cell == kNone) slot = {key, cells_++};
    if (slot.key == key) return slot.cell;
  }
}

}  // namespace mscclc::fusion
