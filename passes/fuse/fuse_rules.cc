// Whether a rule matches two ops, and the operands of the op that they become.
#include "passes/fuse/fuse_rules.h"

#include <algorithm>

#include "ir/report/coinciding.h"
#include "ir/verify/row_faults.h"

namespace mscclc::fusion {

using enum OpKind;

namespace {
bool adds_in_turn(const View& op) { return op.summation == Summation::in_turn; }

/// A row function stays with its sum. What a sum has become of may be sent on; nothing is added to
/// it, and its operands stay what has been checked of them.
bool may_match(Form form, const View& left, const View& right) {
  if (form == Form::rows) return left.applied.count == 0;
  if (right.applied.count != 0) return false;
  return left.applied.count == 0 || form == Form::send;
}
}  // namespace

bool Matcher::match(const Rule& rule, const View& left, const View& right, Match& match) const {
  match = {};
  match.result = rule.result;
  match.reduce = left.reduce;
  if (!may_match(rule.form, left, right)) return false;
  switch (rule.form) {
    case Form::join:
      return match_join(left, right);
    case Form::fan:
      match.flow.waits_anyway = true;
      return left.srcs[0] == right.srcs[0] && match_join(left, right);
    case Form::sum:
      return match_sum(rule, left, right, match);
    case Form::send:
      return match_send(rule, left, right, match);
    case Form::forward:
      return match_forward(rule, left, right, match);
    case Form::queue:
      return match_queue(left, right, match);
    case Form::through:
      return match_through(rule, left, right, match);
    case Form::retarget:
      return match_retarget(rule, left, right, match);
    case Form::exchange:
      return match_exchange(left, right, match);
    case Form::rows:
      return match_rows(rule, left, right, match);
  }
  return false;
}

bool Matcher::match_join(const View& left, const View& right) const {
  if (left.relaxed != right.relaxed) return false;
  const Operand &a = left.dsts[0], &b = right.dsts[0];
  if (a.count != b.count || channel_kind(a) != channel_kind(b)) return false;
  return info(left.kind).cost != CostClass::kPacket || format(left) == format(right);
}

bool Matcher::match_sum(const Rule& rule, const View& left, const View& right, Match& match) const {
  const Operand& d = left.dsts[0];
  if (right.srcs[0] != d || right.dsts[0] != d) return false;
  const bool adds = left.kind != copy;
  if (adds && (left.reduce != right.reduce || !adds_in_turn(left) || !adds_in_turn(right)))
    return false;
  const bool in_packets = info(rule.left).cost == CostClass::kPacket;
  if (in_packets && format(left) != format(right)) return false;
  if (is_scratch(d) && !same_size(callers_chunk(left), callers_chunk(right))) return false;
  match.flow = {.uses = 1, .rewrites = true};
  match.reduce = right.reduce;
  return true;
}

bool Matcher::match_send(const Rule& rule, const View& left, const View& right,
                         Match& match) const {
  const Operand& d = left.dsts[0];
  const auto is_d = [&d](const Operand& o) { return o == d; };
  if (!std::ranges::all_of(right.srcs, is_d) || !takes(rule.result, right.dsts[0])) return false;
  if (info(right.kind).cost == CostClass::kPacket && format(left) != format(right)) return false;
  match.flow.uses = static_cast<uint32_t>(right.srcs.size());
  if (!sends_rows(rule, left, right)) return false;
  const Operand* sent = callers_chunk(right.dsts);
  if (!is_scratch(d) || sent == nullptr) return true;
  // Only here it is new that the sum and where it goes must be equally long.
  const Operand* summed = callers_chunk(left);
  for (const Operand& o : right.dsts) {
    if (!is_scratch(o) && !same_size(summed == nullptr ? sent : summed, &o)) return false;
  }
  if (summed != nullptr) return true;
  match.shorter = left.dsts.first(1);
  return left.dsts.size() == 1;
}

/// What a row function has made of a sum goes only where all of it may go.
bool Matcher::sends_rows(const Rule& rule, const View& left, const View& right) const {
  if (left.applied.count == 0) return true;
  trial_.dsts.assign(left.dsts.begin(), left.dsts.end());
  trial_.dsts.insert(trial_.dsts.end(), right.dsts.begin(), right.dsts.end());
  const RowOp made{rule.result, left.in_loop, trial_.dsts, left.srcs, left.applied};
  return !applied_fault(program_, rank_, made);
}

bool Matcher::match_forward(const Rule& rule, const View& left, const View& right,
                            Match& match) const {
  if (left.dsts[1] != right.srcs[0] || !takes(rule.result, right.dsts[0])) return false;
  match.flow = {.uses = 1, .waits_anyway = true};
  match.gone = left.dsts.subspan(1, 1);
  return true;
}

bool Matcher::match_queue(const View& left, const View& right, Match& match) const {
  if (right.relaxed || left.dsts.size() != right.dsts.size()) return false;
  if (channel_kind(left.dsts[0]) != ChannelKind::port) return false;
  constexpr size_t kMaxUnordered = 64;
  const auto same = [](const Operand& a, const Operand& b) { return a.channel == b.channel; };
  if (left.kind == put && repeated_channel(left.dsts) != nullptr) return false;
  match.flow.channels = true;
  if (std::ranges::equal(left.dsts, right.dsts, same)) return true;
  return left.dsts.size() <= kMaxUnordered &&
         std::is_permutation(left.dsts.begin(), left.dsts.end(), right.dsts.begin(), same);
}

/// Finds the left op's results, in their order, among the right op's sources, and sees whether the
/// right op can take the left op's sources instead.
bool Matcher::match_through(const Rule& rule, const View& left, const View& right,
                            Match& match) const {
  const Operand& first = right.dsts[0];
  // A port reads its source later: the author's copy may be what makes that safe.
  if (first.channel != kNone && channel_kind(first) == ChannelKind::port) return false;
  if (!std::ranges::all_of(left.dsts, [this](const Operand& o) { return is_scratch(o); })) {
    return false;
  }
  const bool single = left.dsts.size() == 1;
  size_t found = 0;
  trial_.dsts.assign(right.dsts.begin(), right.dsts.end());
  trial_.srcs.clear();
  for (const Operand& o : right.srcs) {
    const size_t at = single ? 0 : found;
    const bool taken = at < left.dsts.size() && o == left.dsts[at];
    trial_.srcs.push_back(taken ? left.srcs[at] : o);
    found += taken;
  }
  if (found == 0 || (!single && found != left.dsts.size())) return false;
  match.flow.uses = static_cast<uint32_t>(found);
  match.flow.waits_anyway = left.kind == copy_packets;
  match.gone = left.dsts;
  match.reduce = right.reduce;
  // One source for several destinations, or as many: as the result wants it.
  const bool pairwise = info(rule.result).srcs.slot[0].pairwise;
  if (pairwise && trial_.srcs.size() == 1) trial_.srcs.resize(trial_.dsts.size(), trial_.srcs[0]);
  if (rule.result == read_put_packets) {
    const auto other = [this](const Operand& o) { return o != trial_.srcs[0]; };
    if (std::ranges::any_of(trial_.srcs, other)) return false;
    trial_.srcs.resize(1);
  }
  if (single) {
    match.reads = static_cast<uint32_t>(trial_.srcs.size() + found - right.srcs.size());
  }
  // A sentinel slot is empty when it has been read.
  const PacketFormat read = program_.buffer_of(rank_, left.srcs[0]).packets;
  if (match.reads > 1 && is_sentinel(read)) return false;
  return fits_slots(rule.result, trial_);
}

bool Matcher::match_retarget(const Rule& rule, const View& left, const View& right,
                             Match& match) const {
  const Operand &t = right.srcs[0], &d = right.dsts[0];
  const auto found = std::ranges::find(left.dsts, t);
  if (found == left.dsts.end() || !is_scratch(t)) return false;
  match.flow.uses = 1;
  match.gone = {found, 1};
  trial_.dsts.assign(left.dsts.begin(), left.dsts.end());
  trial_.srcs.assign(left.srcs.begin(), left.srcs.end());
  trial_.dsts[static_cast<size_t>(found - left.dsts.begin())] = d;
  const bool pairwise = info(rule.result).srcs.slot[0].pairwise;
  // The other destinations must not become shorter.
  if (!pairwise && left.dsts.size() > 1 && !is_scratch(d) && !callers_chunk(left)) return false;
  return fits_slots(rule.result, trial_);
}

bool Matcher::match_exchange(const View& left, const View& right, Match& match) const {
  const Operand &d = left.dsts[0], &from = left.srcs[0], &to = right.dsts[0];
  if (right.srcs[0] != d || from.channel != to.channel) return false;
  if (!same_size(callers_chunk(left.srcs), callers_chunk(right.dsts))) return false;
  match.flow.uses = 1;
  const Channel& channel = program_.ranks[rank_].channels[to.channel];
  const auto group = program_.values(channel.group);
  const bool stored_anyway = d.buffer == to.buffer && d.first == to.first &&
                             std::ranges::find(group, int64_t{rank_}) != group.end();
  match.flow.rewrites = stored_anyway;
  if (!stored_anyway) match.gone = left.dsts;
  return stored_anyway || is_scratch(d);
}

/// The sum is all that the function takes of buffers, and has one result there. So what it has as
/// operands is 0 on both sides, for the sum as for the `apply`.
bool Matcher::match_rows(const Rule& rule, const View& left, const View& right,
                         Match& match) const {
  if (left.dsts.size() != 1 || right.srcs.size() != 1 || right.dsts.size() != 1) return false;
  const Operand& sum = left.dsts[0];
  if (right.srcs[0] != sum) return false;
  const bool in_place = right.dsts[0] == sum;
  if (!in_place && !is_scratch(sum)) return false;
  trial_.dsts.assign(right.dsts.begin(), right.dsts.end());
  trial_.srcs.assign(left.srcs.begin(), left.srcs.end());
  const RowOp made{rule.result, left.in_loop, trial_.dsts, trial_.srcs, right.applied};
  if (applied_fault(program_, rank_, made)) return false;
  match.flow = {.uses = 1, .rewrites = in_place};
  if (!in_place) match.gone = left.dsts;
  return fits_slots(rule.result, trial_);
}

void Matcher::build(const Rule& rule, const Match& match, const View& right, Operands& to) const {
  switch (rule.form) {
    case Form::join:
      to.dsts.insert(to.dsts.end(), right.dsts.begin(), right.dsts.end());
      to.srcs.insert(to.srcs.end(), right.srcs.begin(), right.srcs.end());
      break;
    case Form::sum:
      to.dsts.assign(right.dsts.begin(), right.dsts.end());
      to.srcs.insert(to.srcs.end(), right.srcs.begin() + 1, right.srcs.end());
      break;
    case Form::send:
      // The order of the table's slots: the result, packets of it here, then far ends.
      to.dsts.insert(right.kind == copy_packets ? to.dsts.begin() + 1 : to.dsts.end(),
                     right.dsts.begin(), right.dsts.end());
      break;
    case Form::forward:
      if (!match.keeps_packets) to.dsts.erase(to.dsts.begin() + 1);
      [[fallthrough]];
    case Form::fan:
      to.dsts.insert(to.dsts.end(), right.dsts.begin(), right.dsts.end());
      break;
    case Form::queue:
      break;
    case Form::through:
    case Form::retarget:
    case Form::rows:  // as matched
      std::swap(to.dsts, trial_.dsts);
      std::swap(to.srcs, trial_.srcs);
      break;
    case Form::exchange:
      to.dsts.assign(right.dsts.begin(), right.dsts.end());
      break;
  }
}

bool Matcher::is_scratch(const Operand& o) const {
  return program_.buffer_of(rank_, o).kind == BufferKind::scratch;
}

ChannelKind Matcher::channel_kind(const Operand& o) const {
  return o.channel == kNone ? ChannelKind::memory : program_.ranks[rank_].channels[o.channel].kind;
}

/// True if the op takes the kind of channel through which `o` is reached, if it does.
bool Matcher::takes(OpKind kind, const Operand& o) const {
  return o.channel == kNone || (info(kind).channels & bit(channel_kind(o))) != 0;
}

PacketFormat Matcher::format(const View& op) const {
  const OpInfo& row = info(op.kind);
  const auto of = [this](const Slots& slots, std::span<const Operand> side) {
    if (std::ranges::none_of(slots, &Slot::packets)) return PacketFormat::none;
    for (const Operand& o : side) {
      const PacketFormat format = program_.buffer_of(rank_, o).packets;
      if (format != PacketFormat::none) return format;
    }
    return PacketFormat::none;
  };
  const PacketFormat format = of(row.dsts, op.dsts);
  return format != PacketFormat::none ? format : of(row.srcs, op.srcs);
}

const Operand* Matcher::callers_chunk(std::span<const Operand> operands) const {
  for (const Operand& o : operands) {
    if (!is_scratch(o)) return &o;
  }
  return nullptr;
}

const Operand* Matcher::callers_chunk(const View& op) const {
  const Operand* found = callers_chunk(op.dsts);
  return found != nullptr ? found : callers_chunk(op.srcs);
}

bool Matcher::same_size(const Operand* a, const Operand* b) const {
  const Contract& contract = program_.contract;
  if (a == nullptr || b == nullptr) return true;
  if (contract.kind == CollectiveKind::none || contract.even_only) return true;
  const auto size = [&](const Operand& o, uint32_t i) {
    const bool at_switch = channel_kind(o) == ChannelKind::switch_;
    const uint32_t owner = at_switch ? rank_ : program_.owner_of(rank_, o);
    return contract.size_class(o.buffer == kInput ? Side::input : Side::output, owner, o.first + i);
  };
  for (uint32_t i = 0; i < a->count; ++i) {
    if (size(*a, i) != size(*b, i)) return false;
  }
  return true;
}

/// Do these operands fall into the slots of the op's row, with sizes and formats that agree?
bool Matcher::fits_slots(OpKind kind, const Operands& operands) const {
  const OpInfo& row = info(kind);
  PacketFormat format = PacketFormat::none;
  uint32_t plain = 0;
  const auto fits = [&](const Slots& slots, const std::vector<Operand>& side) {
    const bool many = slots.slot[slots.count - 1u].many || slots.slot[0].pairwise;
    if (side.size() < slots.count || (side.size() > slots.count && !many)) return false;
    plain = 0;
    for (size_t i = 0; i < side.size(); ++i) {
      const PacketFormat here = program_.buffer_of(rank_, side[i]).packets;
      const Slot& slot = slots.of(i, here != PacketFormat::none);
      const bool local = side[i].channel == kNone;
      if (local != (slot.kind == SlotKind::local) || !takes(kind, side[i])) return false;
      if (slot.packets != (here != PacketFormat::none)) return false;
      if (here != PacketFormat::none && format != PacketFormat::none && here != format) {
        return false;
      }
      if (here != PacketFormat::none) format = here;
      plain += here == PacketFormat::none;
    }
    return !slots.slot[0].floating || plain == 1;
  };
  if (!fits(row.dsts, operands.dsts) || !fits(row.srcs, operands.srcs)) return false;
  if (row.srcs.slot[0].pairwise) {
    if (operands.dsts.size() != operands.srcs.size()) return false;
    for (size_t i = 0; i < operands.dsts.size(); ++i) {
      const Operand &d = operands.dsts[i], &s = operands.srcs[i];
      if (!is_scratch(d) && !is_scratch(s) && !same_size(&d, &s)) return false;
    }
    return true;
  }
  const Operand* first =
      callers_chunk({OpKind::sync, {}, false, {}, operands.dsts, operands.srcs, {}, false});
  const auto agrees = [&](const Operand& o) { return is_scratch(o) || same_size(first, &o); };
  return std::ranges::all_of(operands.dsts, agrees) && std::ranges::all_of(operands.srcs, agrees);
}

}  // namespace mscclc::fusion
