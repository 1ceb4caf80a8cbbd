#include "passes/order/conflicts.h"

#include "passes/framework/passes.h"
#include "passes/framework/thread_partition.h"

namespace mscclc::order {

Conflicts::Conflicts(const Program& program) : program_(program) {
  const Contract& contract = program.contract;
  const size_t ranks = program.ranks.size();
  aliased_.assign(ranks, false);
  shift_.assign(ranks, 0);
  if (contract.in_place == InPlace::no || !contract.can_alias()) return;
  for (uint32_t r = 0; r < ranks; ++r) {
    const auto alias = contract.alias(r);
    aliased_[r] = alias.has_value();
    if (alias) shift_[r] = int64_t{alias->output_chunk} - alias->input_chunk;
  }
}

void Conflicts::start(uint32_t rank) {
  rank_ = rank;
  here_ = &program_.ranks[rank];
  history_.start(*here_, rank);
  alike_ = {};
  visits_ = 0;
  raw_.assign(here_->buffers.size(), false);
  bool has_parts = false;
  for (const Op& op : here_->ops) {
    has_parts |= op.parts != 0;
    if (op.kind != OpKind::put_packets) continue;
    if (channel_kind(program_, rank, op) != ChannelKind::port) continue;
    for (const Operand& o : program_.srcs(op)) raw_[o.buffer] = true;
  }
  granules_.assign(has_parts ? here_->ops.size() : 0, kNone);
}

std::span<const Conflict> Conflicts::find(uint32_t op) {
  accesses_.clear();
  cells_.clear();
  found_.clear();
  append_accesses(program_, rank_, here_->ops[op], accesses_);
  std::erase_if(accesses_, [this](const Access& a) {
    return a.packets && !(a.write && a.rank == rank_ && raw_[a.buffer]);
  });
  for (const Access& access : accesses_) visits_ += access.count;
  if (visits_ > kMaxVisits && !exhausted()) exhausted_at_ = op;
  if (exhausted()) accesses_.clear();
  for (const Access& access : accesses_) check(op, access);
  return found_;
}

void Conflicts::check(uint32_t op, const Access& access) {
  const bool may_coincide = access.buffer < kFirstScratch && aliased_[access.rank];
  const bool by_alias = may_coincide && !is_copy_onto_itself(here_->ops[op]);
  for (uint32_t i = 0; i < access.count; ++i) {
    const uint32_t chunk = access.first + i;
    const uint32_t at = history_.cell(access.rank, access.buffer, chunk);
    cells_.push_back(at);
    const Cell cell = history_[at];
    if (!access.packets) check_list(op, access, cell.writes, access.first, false);
    if (access.write) check_list(op, access, cell.reads, access.first, false);
    if (by_alias) check_alias(op, access, chunk);
  }
}

/// Compares with the chunk of the other buffer that may be the same memory.
void Conflicts::check_alias(uint32_t op, const Access& access, uint32_t chunk) {
  const uint32_t other = access.buffer == kInput ? kOutput : kInput;
  const int64_t shift = access.buffer == kInput ? shift_[access.rank] : -shift_[access.rank];
  const int64_t there = chunk + shift;
  if (there < 0 || there >= program_.ranks[access.rank].buffers[other].chunks) return;
  const uint32_t at = history_.find(access.rank, other, static_cast<uint32_t>(there));
  if (at == kNone) return;
  const Cell cell = history_[at];
  const int64_t first = access.first + shift;
  check_list(op, access, cell.writes, first, true);
  if (access.write) check_list(op, access, cell.reads, first, true);
}

void Conflicts::check_list(uint32_t op, const Access& access, uint32_t head, int64_t first,
                           bool by_alias) {
  for (; head != kNone; head = history_.touch(head).next) {
    const Touch& touch = history_.touch(head);
    if (touch.op == op) continue;
    const Op& earlier = here_->ops[touch.op];
    // In place, a copy onto itself does nothing.
    if (by_alias && is_copy_onto_itself(earlier)) continue;
    const bool same_reference = touch.first == first && touch.count == access.count;
    if (earlier.parts != 0 && same_group_op(touch.op, op)) continue;
    if (same_reference && earlier.parts != 0 && disjoint(touch.op, op)) continue;
    const bool here = same_reference && !access.packets && access.rank == rank_ &&
                      earlier.block == here_->ops[op].block;
    found_.push_back({touch.op, same_reference, here && handled_alike(touch.op, op, access)});
  }
}

/// same_threads() of the two ops.
bool Conflicts::handled_alike(uint32_t earlier, uint32_t op, const Access& access) {
  const bool callers = access.buffer < kFirstScratch;
  if (alike_.earlier != earlier || alike_.op != op || alike_.count != access.count ||
      alike_.callers != callers) {
    alike_ = {
        earlier, op, access.count, callers,
        same_threads(program_, rank_, here_->ops[earlier], here_->ops[op], access.count, callers)};
  }
  return alike_.answer;
}

/// Parts of one group op: if its own operands overlap, no order among its parts helps.
bool Conflicts::same_group_op(uint32_t a, uint32_t b) const {
  const Op &first = here_->ops[a], &second = here_->ops[b];
  return first.kind == second.kind && first.parts == second.parts &&
         a - first.part == b - second.part;
}

/// Different parts of the same reference, cut alike.
bool Conflicts::disjoint(uint32_t a, uint32_t b) {
  const Op &first = here_->ops[a], &second = here_->ops[b];
  return first.parts == second.parts && first.part != second.part && granule(a) == granule(b);
}

/// Data bytes of the packet units in which a group op is cut; 0 if it moves no packets. Plain ops
/// are cut in granules of `align`: even where a unit has as many bytes, the prover does not count
/// the two ways of cutting as one (Cuts::extent), so neither does this.
uint32_t Conflicts::granule(uint32_t op) {
  if (granules_[op] == kNone) granules_[op] = find_granule(here_->ops[op]);
  return granules_[op];
}

uint32_t Conflicts::find_granule(const Op& op) const {
  if (info(op.kind).cost == CostClass::kPacket) {
    const Operand* o = program_.operands.at(op.operands);
    for (const Operand* end = o + op.dsts + op.srcs; o != end; ++o) {
      const PacketFormat format = program_.buffer_of(rank_, *o).packets;
      if (format != PacketFormat::none) return info(format).data;
    }
  }
  return 0;
}

bool Conflicts::is_copy_onto_itself(const Op& op) const {
  if (op.kind != OpKind::copy || !aliased_[rank_]) return false;
  const Operand &dst = program_.dsts(op)[0], &src = program_.srcs(op)[0];
  if (dst.buffer >= kFirstScratch || src.buffer >= kFirstScratch) return false;
  if (dst.buffer == src.buffer) return dst.first == src.first;
  const Operand &input = dst.buffer == kInput ? dst : src,
                &output = dst.buffer == kInput ? src : dst;
  return int64_t{input.first} + shift_[rank_] == output.first;
}

void Conflicts::record(uint32_t op) {
  const Op& self = here_->ops[op];
  const bool settles = !is_copy_onto_itself(self);  // else it does nothing in place: covers()
  size_t next = 0;
  for (const Access& access : accesses_) {
    const bool by_rounds = self.loop != kNone && access.count > 1;
    for (uint32_t i = 0; i < access.count; ++i) {
      Cell& cell = history_[cells_[next++]];
      if (settles && access.write && self.parts == 0 && !by_rounds) {
        cell = {};
      } else {
        if (access.write) drop_covered(cell.writes, op, access);
        drop_covered(cell.reads, op, access);
      }
      history_.push(access.write ? cell.writes : cell.reads, op, access.first, access.count);
    }
  }
}

/// True if whatever comes after `op` comes after the touching op, too, and touches the same bytes
/// of it. A copy onto itself does nothing in place, and so stands for no op that does something.
bool Conflicts::covers(const Touch& touch, uint32_t op, const Access& access) {
  const Op &older = here_->ops[touch.op], &newer = here_->ops[op];
  if (is_copy_onto_itself(newer) && !is_copy_onto_itself(older)) return false;
  // Rounds that conflict with each other concern every block that takes part.
  const bool by_rounds = newer.loop != kNone && access.count > 1;
  if (older.block != newer.block && (!access.write || by_rounds)) return false;
  return touch.first == access.first && touch.count == access.count && older.loop == newer.loop &&
         older.part == newer.part && older.parts == newer.parts &&
         (newer.parts == 0 || granule(touch.op) == granule(op));
}

void Conflicts::drop_covered(uint32_t& head, uint32_t op, const Access& access) {
  uint32_t* link = &head;
  while (*link != kNone) {
    Touch& touch = history_.touch(*link);
    if (covers(touch, op, access)) {
      *link = touch.next;
    } else {
      link = &touch.next;
    }
  }
}

}  // namespace mscclc::order
