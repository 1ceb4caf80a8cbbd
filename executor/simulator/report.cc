// The deadlock report: for every block that waits, its op, where that stands in the program, what
// it waits for, and who should bring it.
#include <fmt/format.h>

#include <algorithm>

#include "executor/simulator/call_run.h"
#include "ir/print/print.h"
#include "ir/program/flag_regions.h"
#include "ir/report/op_error.h"

namespace mscclc {
namespace {

constexpr size_t kMaxBlocks = 16;

class HangReport {
 public:
  HangReport(std::span<const RunningPlan> plans, const std::deque<BlockTask>& blocks,
             std::span<const OtherSide* const> others)
      : plans_(plans), others_(others) {
    for (const BlockTask& task : blocks) add(task);
  }

  void add_to(Diagnostics& diagnostics) const;

 private:
  void add(const BlockTask& task);
  std::string describe(const BlockTask& task) const;
  std::string reason(const BlockTask& task) const;
  std::string signal_reason(const BlockTask& task) const;
  std::string semaphore_reason(const BlockTask& task) const;
  std::string barrier_reason(const BlockTask& task) const;
  std::string flag_reason(const BlockTask& task) const;
  std::string packet_reason(const BlockTask& task) const;
  std::string packet_writers(uint32_t plan, uint32_t rank, uint32_t buffer, uint64_t chunk) const;
  std::string doing(uint32_t plan, uint32_t rank, uint32_t block) const;
  const BlockTask* find(uint32_t plan, uint32_t rank, uint32_t block) const;
  const Cluster& cluster(uint32_t plan) const { return *plans_[plan].cluster; }
  const Program& program(uint32_t plan) const { return cluster(plan).program(); }
  const SimRank& state(const BlockTask& task) const {
    return cluster(task.plan).states()[task.rank];
  }
  const Op& op_of(const BlockTask& task) const {
    return program(task.plan).ranks[task.rank].ops[task.machine->op()->source];
  }

  const std::span<const RunningPlan> plans_;
  const std::span<const OtherSide* const> others_;
  std::vector<const BlockTask*> blocks_;
};

/// How much a strand's wait explains: more if it waits for others than its own block's strands.
uint32_t weight(const BlockTask& task) {
  if (task.ended) return 0;
  const Waiting::For what = task.machine->waiting().what;
  return what == Waiting::For::nothing ? 1 : what == Waiting::For::threads ? 2 : 3;
}

// A block of several strands is reported by the strand whose wait explains most.
void HangReport::add(const BlockTask& task) {
  const bool another = blocks_.empty() || blocks_.back()->plan != task.plan ||
                       blocks_.back()->rank != task.rank || blocks_.back()->block != task.block;
  if (another) {
    blocks_.push_back(&task);
  } else if (weight(task) > weight(*blocks_.back())) {
    blocks_.back() = &task;
  }
}

const BlockTask* HangReport::find(uint32_t plan, uint32_t rank, uint32_t block) const {
  for (const BlockTask* task : blocks_) {
    if (task->plan == plan && task->rank == rank && task->block == block) return task;
  }
  return nullptr;
}

// "tb 2 of rank 1, which waits at 'acquire s'"
std::string HangReport::doing(uint32_t plan, uint32_t rank, uint32_t block) const {
  const std::string who = fmt::format("tb {} of rank {}", block, rank);
  const BlockTask* task = find(plan, rank, block);
  if (task == nullptr || task->ended) return who + ", which has ended";
  if (task->machine->waiting().what == Waiting::For::nothing) {
    return who + ", whose next call has not begun";
  }
  return fmt::format("{}, which waits at '{}'", who, print_op(program(plan), rank, op_of(*task)));
}

/// Blocks of a rank with an op of which `brings(op)` is true, each once.
template <class Brings>
std::vector<uint32_t> blocks_that(const Rank& rank, Brings brings) {
  std::vector<uint32_t> blocks;
  for (const Op& op : rank.ops) {
    if ((blocks.empty() || blocks.back() != op.block) && brings(op)) blocks.push_back(op.block);
  }
  return blocks;
}

std::string HangReport::signal_reason(const BlockTask& task) const {
  const Waiting& w = task.machine->waiting();
  const Program& program = this->program(task.plan);
  const Channel& own = program.ranks[task.rank].channels[w.index];
  const uint64_t arrived = state(task).channels[w.index]->arrived;
  std::string text = fmt::format("waits for signal {} at '{}'; {} came", w.expected,
                                 program.text(own.label), arrived);
  if (own.partner == kNone) return text + "; no rank can send it";
  const Rank& peer = program.ranks[own.peer];
  text += fmt::format("; rank {} should send it from '{}'", own.peer,
                      program.text(peer.channels[own.partner].label));
  const auto senders = blocks_that(peer, [&](const Op& op) {
    if (!info(op.kind).has(kSignals)) return false;
    const auto dsts = program.dsts(op);
    return std::any_of(dsts.begin(), dsts.end(),
                       [&](const Operand& o) { return o.channel == own.partner; });
  });
  if (senders.empty()) return text + ", but no op does";
  for (size_t i = 0; i < senders.size(); ++i) {
    text += (i == 0 ? ": " : " and ") + doing(task.plan, own.peer, senders[i]);
  }
  return text;
}

std::string HangReport::semaphore_reason(const BlockTask& task) const {
  const uint32_t index = task.machine->waiting().index;
  const Program& program = this->program(task.plan);
  const Rank& rank = program.ranks[task.rank];
  std::string text =
      fmt::format("waits for '{}', which is 0", program.text(rank.semaphores[index].label));
  const auto releasers = blocks_that(rank, [&](const Op& op) {
    const auto dsts = program.dsts(op);
    return op.kind == OpKind::release &&
           std::any_of(dsts.begin(), dsts.end(),
                       [&](const Operand& o) { return o.first == index; });
  });
  if (releasers.empty()) return text + "; no op releases it";
  text += "; it is released by ";
  for (size_t i = 0; i < releasers.size(); ++i) {
    text += (i == 0 ? "" : " and ") + doing(task.plan, task.rank, releasers[i]);
  }
  return text;
}

std::string HangReport::barrier_reason(const BlockTask& task) const {
  const uint32_t index = task.machine->waiting().index;
  std::string text;
  for (const uint32_t block : cluster(task.plan).device().ranks[task.rank].barriers[index].blocks) {
    const BlockTask* other = find(task.plan, task.rank, block);
    const bool here = other != nullptr && !other->ended &&
                      other->machine->waiting().what == Waiting::For::barrier &&
                      other->machine->waiting().index == index;
    if (!here) text += (text.empty() ? "waits for " : " and ") + doing(task.plan, task.rank, block);
  }
  return text;
}

std::string HangReport::flag_reason(const BlockTask& task) const {
  const Waiting& w = task.machine->waiting();
  uint32_t array = 0, flag = w.index;
  const std::vector<FlagArray>& arrays = program(task.plan).flags;
  while (flag >= arrays[array].count) flag -= arrays[array++].count;
  return fmt::format("waits for '{}', which the other side has raised {} of {} times",
                     flag_text(program(task.plan), array, flag), state(task).flags[w.index].raised,
                     w.expected);
}

std::string HangReport::packet_writers(uint32_t plan, uint32_t owner, uint32_t buffer,
                                       uint64_t chunk) const {
  const Program& program = this->program(plan);
  std::string text;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const auto writes = [&](const Op& op) {
      if (!info(op.kind).moves_data()) return false;
      const auto dsts = program.dsts(op);
      return std::any_of(dsts.begin(), dsts.end(), [&](const Operand& o) {
        const bool at_switch =
            o.channel != kNone && program.ranks[r].channels[o.channel].kind == ChannelKind::switch_;
        return (at_switch || program.owner_of(r, o) == owner) && o.buffer == buffer &&
               o.first <= chunk && chunk < uint64_t{o.first} + o.count;
      });
    };
    for (const uint32_t block : blocks_that(program.ranks[r], writes)) {
      text += (text.empty() ? "; written by " : " and ") + doing(plan, r, block);
    }
  }
  return text.empty() ? "; no op writes it" : text;
}

std::string HangReport::packet_reason(const BlockTask& task) const {
  const Waiting& w = task.machine->waiting();
  const Cluster& cluster = this->cluster(task.plan);
  const Program& program = cluster.program();
  const std::vector<BufferLayout>& layout = cluster.device().ranks[task.rank].buffers;
  for (uint32_t b = kFirstScratch; b < layout.size(); ++b) {
    const uint8_t* data = cluster.data(task.rank, b);
    if (w.packet < data || w.packet >= data + layout[b].stride * layout[b].copies) continue;
    const Buffer& buffer = program.ranks[task.rank].buffers[b];
    const uint64_t slot = layout[b].bytes / buffer.chunks;
    const uint64_t at = static_cast<uint64_t>(w.packet - data) % layout[b].stride;
    const uint64_t chunk = at / slot, unit = at % slot / info(buffer.packets).wire;
    std::string text =
        fmt::format("waits for packet {} of '{}[{}]'", unit, program.name_of(buffer.name), chunk);
    if (is_sentinel(buffer.packets)) {
      text += ", which is empty";
    } else {
      uint64_t seen = 0;
      device::with_format(buffer.packets, [&](auto tag) {
        const device::Marks marks = device::Format<decltype(tag)::kFormat>::marks(4);
        std::copy_n(w.packet, marks.bytes, reinterpret_cast<uint8_t*>(&seen));
      });
      text += fmt::format(", flag {}; it holds flag {}", w.expected, seen);
    }
    return text + packet_writers(task.plan, task.rank, b, chunk);
  }
  return "waits for a packet";
}

std::string HangReport::reason(const BlockTask& task) const {
  const Waiting& w = task.machine->waiting();
  switch (w.what) {
    case Waiting::For::signal:
      return signal_reason(task);
    case Waiting::For::semaphore:
      return semaphore_reason(task);
    case Waiting::For::barrier:
      return barrier_reason(task);
    case Waiting::For::packet:
      return packet_reason(task);
    case Waiting::For::queue:
      return "waits for room in the queue of its proxy";
    case Waiting::For::flush:
      return "waits for its proxy to have read its sources";
    case Waiting::For::threads:
      return "waits for the other threads of its block";
    case Waiting::For::flag:
      return flag_reason(task);
    case Waiting::For::nothing:
      break;
  }
  return "waits for the next call";
}

std::string HangReport::describe(const BlockTask& task) const {
  const Op& op = op_of(task);
  const Program& program = this->program(task.plan);
  std::string bindings = print_bindings(program, op);
  if (!bindings.empty()) bindings = fmt::format(" ({})", bindings);
  const uint64_t index = state(task).call;
  const std::string call = index == 0 ? std::string() : fmt::format(", call {}", index);
  return fmt::format("{}{}{}: '{}'{} {}", print_place(program, task.rank, op),
                     cluster(task.plan).of_plan(), call, print_op(program, task.rank, op), bindings,
                     reason(task));
}

void HangReport::add_to(Diagnostics& diagnostics) const {
  std::vector<const BlockTask*> waiting;
  for (const BlockTask* task : blocks_) {
    if (task->machine->waiting().what != Waiting::For::nothing) waiting.push_back(task);
  }
  Diagnostic& d = diagnostics.error(
      "deadlock", {},
      fmt::format("the plan{}: {} of {} thread blocks wait for something that never comes",
                  plans_.size() == 1 ? " hangs" : "s hang", waiting.size(), blocks_.size()));
  for (const OtherSide* other : others_) {
    for (const std::string& flag : other->not_raised()) {
      if (d.notes.size() == kMaxBlocks) break;
      d.notes.push_back(
          {fmt::format("the other side waits for {}, which the plan does not notify "
                       "as often as it is declared",
                       flag)});
    }
  }
  for (size_t i = 0; i < std::min(waiting.size(), kMaxBlocks); ++i) {
    d.notes.push_back(
        op_note(program(waiting[i]->plan), op_of(*waiting[i]), describe(*waiting[i])));
  }
  if (waiting.size() > kMaxBlocks) {
    d.notes.push_back({fmt::format("and {} more thread blocks", waiting.size() - kMaxBlocks)});
  }
}

}  // namespace

void report_hang(std::span<const RunningPlan> plans, const std::deque<BlockTask>& blocks,
                 std::span<const OtherSide* const> others, Diagnostics& diagnostics) {
  HangReport(plans, blocks, others).add_to(diagnostics);
}

}  // namespace mscclc
