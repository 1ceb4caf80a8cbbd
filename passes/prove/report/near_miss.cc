#include "passes/prove/report/near_miss.h"

#include <fmt/format.h>

#include <vector>

#include "ir/print/print.h"
#include "ir/report/op_error.h"
#include "ir/support/precondition.h"

namespace mscclc::proof {
namespace {

class Search {
 public:
  Search(const System& system, const Event& first, const Event& second)
      : program_(system.program()),
        first_(first),
        second_(second),
        from_(system.processes()[first.process]),
        to_(system.processes()[second.process]) {}

  std::optional<NearMiss> run() {
    std::optional<NearMiss> relaxed, early, late;
    const std::vector<Op>& ops = program_.ranks[from_.rank].ops;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (ops[i].block != from_.index || !info(ops[i].kind).has(kSignals)) continue;
      for (const Operand& o : program_.dsts(ops[i])) {
        if (!leads_there(o)) continue;
        if (i < first_.op) {
          if (!ops[i].relaxed && first_.call == second_.call) early = of_early(i);
        } else if (ops[i].relaxed) {
          relaxed = of_relaxed(from_.rank, i);
        } else if (const auto wait = look_at_waits(o.channel)) {
          if (!is_late(*wait)) return wait;
          late = wait;
        }
      }
    }
    // That a caller may go on is what signals at the end say, not those of the beginning.
    return relaxed || to_caller() ? relaxed : early ? early : late;
  }

 private:
  bool to_caller() const { return to_.kind == ProcessKind::caller; }
  bool leads_there(const Operand& o) const {
    const Channel& channel = program_.ranks[from_.rank].channels[o.channel];
    return channel.kind == ChannelKind::memory && channel.peer == to_.rank &&
           channel.partner != kNone;
  }

  /// A signal is sent where it should be: who takes it?
  std::optional<NearMiss> look_at_waits(uint32_t channel) const {
    const uint32_t end = program_.ranks[from_.rank].channels[channel].partner;
    const std::vector<Op>& ops = program_.ranks[to_.rank].ops;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (!info(ops[i].kind).has(kWaits)) continue;
      for (const Operand& o : program_.dsts(ops[i])) {
        if (o.channel != end) continue;
        if (ops[i].relaxed) return of_relaxed(to_.rank, i);
        if (to_caller() || first_.call != second_.call)
          return std::nullopt;  // the end of the call publishes all
        if (ops[i].block != to_.index) return of_other_block(i);
        if (i > second_.op) return of_late_wait(i);
      }
    }
    return std::nullopt;
  }

  /// A wait of the block itself, that stands after its op.
  bool is_late(const NearMiss& wait) const {
    const Op& op = program_.ranks[wait.rank].ops[wait.op];
    return !op.relaxed && op.block == to_.index;
  }

  std::string text(uint32_t rank, uint32_t i) const {
    const Op& op = program_.ranks[rank].ops[i];
    return fmt::format("'{}' ({})", print_op(program_, rank, op), print_place(program_, rank, op));
  }
  NearMiss of_relaxed(uint32_t rank, uint32_t i) const {
    return {rank, i, text(rank, i) + " is relaxed, and so orders no data"};
  }
  NearMiss of_early(uint32_t i) const {
    return {from_.rank, i, text(from_.rank, i) + " is sent before that op"};
  }
  NearMiss of_late_wait(uint32_t i) const {
    return {to_.rank, i, text(to_.rank, i) + " takes such a signal, but only after that op"};
  }
  NearMiss of_other_block(uint32_t i) const {
    const uint32_t waits = program_.ranks[to_.rank].ops[i].block;
    return {to_.rank, i,
            fmt::format("{} takes such a signal, and nothing orders tb {} after that: it must "
                        "'acquire' what tb {} releases after the wait",
                        text(to_.rank, i), to_.index, waits)};
  }

  const Program& program_;
  const Event &first_, &second_;
  const Process &from_, &to_;
};

}  // namespace

std::optional<NearMiss> near_miss(const System& system, const Event& first, const Event& second) {
  precondition(!system.joint());
  const auto kind = [&](const Event& e) { return system.processes()[e.process].kind; };
  if (kind(first) != ProcessKind::block) return std::nullopt;
  if (kind(second) != ProcessKind::block && kind(second) != ProcessKind::caller) {
    return std::nullopt;
  }
  const auto rank = [&](const Event& e) { return system.processes()[e.process].rank; };
  if (rank(first) == rank(second)) return std::nullopt;
  return Search(system, first, second).run();
}

}  // namespace mscclc::proof
