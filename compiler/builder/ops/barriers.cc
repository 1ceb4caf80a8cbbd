#include "compiler/builder/ops/barriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/builder/draft/texts.h"

namespace mscclc {

bool Barriers::add(const List& blocks, Mark mark) {
  if (budget_.gave_up() || !draft_.ready()) return false;
  if (places_.group() != kNone) {
    reports_.fail("nesting", {}, "'barrier' inside 'group'");
    return false;
  }
  std::vector<Operand> members;
  if (!find_members(blocks, mark, members)) return false;
  std::vector<int64_t> ids;
  for (const Operand& member : members) ids.push_back(member.first);
  marks_.try_emplace(std::move(ids), mark);
  if (places_.block() != kNone) return arrive(places_.block(), members);
  for (const Operand& member : members) {
    if (!arrive(member.first, members)) return false;
  }
  return true;
}

/// Appends the arrival of block `b` at a barrier.
bool Barriers::arrive(uint32_t b, std::span<const Operand> members) {
  if (!budget_.add_op(draft_.program.operands.size() + members.size())) return false;
  if (!places_.need_block(b)) return false;
  places_.use_block(b);
  Op op;
  op.kind = OpKind::barrier;
  op.block = b;
  op.loop = places_.loop();
  op.locations = locations_.present();
  draft_.program.set_operands(op, members, {});
  draft_.out->ops.push_back(op);
  return true;
}

bool Barriers::find_members(const List& blocks, Mark mark, std::vector<Operand>& members) {
  if (blocks.count == 0) {
    reports_.fail("barrier", mark, "an empty barrier");
    return false;
  }
  if (blocks.count > kMaxBlocks) {
    reports_.fail("barrier", mark, fmt::format("a barrier of more than {} blocks", kMaxBlocks));
    return false;
  }
  bool holds_this = places_.block() == kNone || draft_.program.foreign;
  for (int64_t i = 0; i < blocks.count; ++i) {
    const int64_t b = blocks[i];
    if (b < 0 || b >= kMaxBlocks) {
      reports_.fail("block", mark,
                    fmt::format("tb {}: thread blocks are 0 to {}", b, kMaxBlocks - 1));
      return false;
    }
    const auto same = [&](const Operand& o) { return o.first == b; };
    if (blocks.data != nullptr && std::ranges::any_of(members, same)) {
      reports_.fail("barrier", mark, fmt::format("tb {} appears twice in the barrier", b));
      return false;
    }
    holds_this = holds_this || b == places_.block();
    members.push_back({.first = static_cast<uint32_t>(b)});
  }
  if (!holds_this) {
    reports_.fail(
        "barrier", mark,
        fmt::format("tb {} is not in the barrier {}", places_.block(), blocks_text(blocks)));
    return false;
  }
  return true;
}

/// Blocks of a barrier must all reach it equally often.
void Barriers::check(uint32_t r) {
  if (marks_.empty()) return;
  std::map<std::pair<std::vector<int64_t>, uint32_t>, std::map<uint32_t, int64_t>> arrivals;
  for (const Op& op : draft_.program.ranks[r].ops) {
    if (op.kind != OpKind::barrier) continue;
    std::vector<int64_t> blocks;
    for (const Operand& o : draft_.program.dsts(op)) blocks.push_back(o.first);
    const uint32_t rounds = op.loop == kNone ? 0 : places_.rounds_of(draft_.program.loops[op.loop]);
    ++arrivals[{std::move(blocks), rounds}][op.block];
  }
  for (const auto& arrival : arrivals) {
    const std::vector<int64_t>& blocks = arrival.first.first;
    const std::map<uint32_t, int64_t>& by_block = arrival.second;
    const auto reached = [&](int64_t b) {
      const auto found = by_block.find(static_cast<uint32_t>(b));
      return found == by_block.end() ? 0 : found->second;
    };
    const auto [least, most] = std::ranges::minmax_element(blocks, {}, reached);
    if (reached(*least) == reached(*most)) continue;
    Diagnostic& d =
        reports_.fail("unbalanced", marks_[blocks],
                      fmt::format("tb {} reaches the barrier {} {}, tb {} {}", *most,
                                  blocks_text(List::stored(blocks)), times(reached(*most), true),
                                  *least, times(reached(*least), true)));
    d.notes.push_back({fmt::format("on rank {}", r), d.span});
    if (arrival.first.second != 0) {
      d.notes.push_back({places_.rounds_text(arrival.first.second), d.span});
    }
  }
}

}  // namespace mscclc
