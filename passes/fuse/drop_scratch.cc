#include "passes/fuse/drop_scratch.h"

#include <algorithm>
#include <vector>

namespace mscclc {
namespace {

class ScratchDrop {
 public:
  explicit ScratchDrop(Program& program)
      : program_(program), untouched_(program.names().size(), false) {}

  uint32_t run() {
    if (!may_change() || !find_untouched()) return 0;
    const uint32_t dropped = number_buffers();
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (Op& op : program_.ranks[r].ops) renumber(r, op);
    }
    for (Rank& rank : program_.ranks) {
      std::erase_if(rank.buffers, [this](const Buffer& b) { return drops(b); });
    }
    return dropped;
  }

 private:
  bool may_change() const {
    return !program_.foreign && !program_.launch.reuse_scratch &&
           (!has_switch() || all_declare_the_same());
  }

  bool has_switch() const {
    return std::ranges::any_of(program_.ranks, [](const Rank& rank) {
      return std::ranges::any_of(rank.channels, [](const Channel& channel) {
        return channel.kind == ChannelKind::switch_;
      });
    });
  }

  bool all_declare_the_same() const {
    return std::ranges::all_of(program_.ranks, [&](const Rank& rank) {
      return std::ranges::equal(rank.buffers, program_.ranks[0].buffers, {}, &Buffer::name,
                                &Buffer::name);
    });
  }

  /// Are there names of scratch that no op touches? Most programs touch all at their first rank.
  bool find_untouched() {
    for (const Rank& rank : program_.ranks) {
      for (const Buffer& b : rank.buffers) {
        if (b.kind != BufferKind::scratch || untouched_[b.name]) continue;
        untouched_[b.name] = true;
        ++names_;
      }
    }
    for (uint32_t r = 0; r < program_.ranks.size() && names_ > 0; ++r) {
      for (const Op& op : program_.ranks[r].ops) touch(r, op);
    }
    return names_ > 0;
  }

  void touch(uint32_t rank, const Op& op) {
    if (names_ == 0 || !info(op.kind).moves_data()) return;
    for (const Operand& o : program_.all_operands(op)) {
      const Buffer& b = program_.buffer_of(rank, o);  // of this name at all members of a switch
      if (!drops(b)) continue;
      untouched_[b.name] = false;
      --names_;
    }
  }

  bool drops(const Buffer& b) const { return b.kind == BufferKind::scratch && untouched_[b.name]; }

  uint32_t number_buffers() {
    uint32_t dropped = 0;
    for (const Rank& rank : program_.ranks) {
      std::vector<uint32_t>& numbers = numbers_.emplace_back();
      uint32_t next = 0;
      for (const Buffer& b : rank.buffers) {
        dropped += drops(b);
        numbers.push_back(drops(b) ? kNone : next++);
      }
    }
    return dropped;
  }

  void renumber(uint32_t rank, Op& op) {
    if (!info(op.kind).moves_data()) return;
    const std::span<const Operand> before = program_.all_operands(op);
    operands_.assign(before.begin(), before.end());
    for (Operand& o : operands_) o.buffer = numbers_[numbered_by(rank, o)][o.buffer];
    if (std::ranges::equal(operands_, before)) return;
    const auto sources = operands_.begin() + op.dsts;
    program_.set_operands(op, {operands_.begin(), sources}, {sources, operands_.end()});
  }

  uint32_t numbered_by(uint32_t rank, const Operand& o) const {
    const bool at_switch =
        o.channel != kNone && program_.ranks[rank].channels[o.channel].kind == ChannelKind::switch_;
    return at_switch ? rank : program_.owner_of(rank, o);
  }

  Program& program_;
  std::vector<bool> untouched_;                 ///< by name
  uint32_t names_ = 0;                          ///< how many of them
  std::vector<std::vector<uint32_t>> numbers_;  ///< new ones, by rank and buffer
  std::vector<Operand> operands_;
};

}  // namespace

uint32_t drop_untouched_scratch(Program& program) { return ScratchDrop(program).run(); }

}  // namespace mscclc
