// complete_sums: marks the ops whose result is a whole reduction that the contract promises
// (`complete`): there, and only there, `avg` divides. And finds plans that get stuck.
//
// Both come out of one symbolic run of the whole program, see symbolic_run.h.
//
// If the promised reductions have different numbers of inputs (a scan, say), no call can ask for
// `avg`: nothing is marked. One promised sum may then be part of another. If they have equally
// many, none can be: a sum that is one of them is whole wherever it goes.
//
//   reduce_packets output[0] <- input[0], inbox[0]
//       =>  reduce_packets output[0] <- input[0], inbox[0] complete
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ir/report/op_error.h"
#include "passes/framework/passes.h"
#include "passes/symbolic/symbolic_run.h"

namespace mscclc::symbolic {
namespace {

/// The symbols of all reductions that a contract promises.
class PromisedSums {
 public:
  explicit PromisedSums(const Contract& contract) {
    if (contract.contributions() == 0) return;
    if (contract.kind == CollectiveKind::custom) {
      for (const Promise& promise : contract.promises) {
        if (!promise.reduced) continue;
        Symbol sum = 0;
        for (const CallerChunk& place : promise.inputs)
          sum += contribution(place.rank, place.chunk);
        sums_.push_back(sum);
      }
    } else {
      add_rows(contract);
    }
    std::sort(sums_.begin(), sums_.end());
    sums_.erase(std::unique(sums_.begin(), sums_.end()), sums_.end());
  }

  bool contains(Symbol symbol) const {
    return std::binary_search(sums_.begin(), sums_.end(), symbol);
  }

 private:
  /// Chunk c of the input, summed over all ranks, for every c: what allreduce, reduce and
  /// reducescatter promise somewhere.
  void add_rows(const Contract& contract) {
    const uint32_t chunks = contract.shape(Side::input, contract.root).chunks();
    sums_.assign(chunks, 0);
    for (uint32_t rank = 0; rank < contract.ranks; ++rank) {
      for (uint32_t c = 0; c < chunks; ++c) sums_[c] += contribution(rank, c);
    }
  }

  std::vector<Symbol> sums_;
};

/// One run shows for all that no block is stuck, unless blocks compete for the same releases.
void warn_of_competitors(const Program& program, Diagnostics& diagnostics) {
  std::vector<uint32_t> first;  // by semaphore: an op that acquires it
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const Rank& rank = program.ranks[r];
    if (rank.semaphores.empty()) continue;
    first.assign(rank.semaphores.size(), kNone);
    for (uint32_t i = 0; i < rank.ops.size(); ++i) {
      const Op& op = rank.ops[i];
      if (!info(op.kind).has(kAcquires)) continue;
      for (const Operand& o : program.dsts(op)) {
        if (first[o.first] == kNone) first[o.first] = i;
        const Op& other = rank.ops[first[o.first]];
        if (other.block == op.block) continue;
        Diagnostic& d = diagnostics.warning(
            "shared-semaphore", span_of(program, op),
            describe_op(program, r, op) + " competes with another thread block for a semaphore");
        d.notes.push_back({"with " + describe_op(program, r, other) +
                               "; which of them is served first depends on the schedule, and one "
                               "schedule has been tried",
                           span_of(program, other)});
      }
    }
  }
}

/// Reported at an op that touches the largest buffer.
void report_too_many_chunks(const Program& program, Diagnostics& diagnostics) {
  uint32_t most = 0, rank = 0, buffer = 0;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const std::vector<Buffer>& buffers = program.ranks[r].buffers;
    for (uint32_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].chunks > most) most = buffers[b].chunks, rank = r, buffer = b;
    }
  }
  const std::string message =
      fmt::format("the buffers have more than {} chunks, or parts of group ops, together",
                  SymbolicRun::kMaxCells);
  const std::string note =
      fmt::format("the largest is '{}' of rank {}, with {} chunks",
                  program.name_of(program.ranks[rank].buffers[buffer].name), rank, most);
  for (const Op& op : program.ranks[rank].ops) {
    if (!info(op.kind).moves_data() || op.dsts + op.srcs == 0) continue;
    const auto touches = [&](const Operand& o) { return o.channel == kNone && o.buffer == buffer; };
    if (!std::ranges::any_of(program.dsts(op), touches) &&
        !std::ranges::any_of(program.srcs(op), touches)) {
      continue;
    }
    op_error(diagnostics, "too-many-chunks", program, rank, op, message).notes.push_back({note});
    return;
  }
  diagnostics.error("too-many-chunks", {}, message).notes.push_back({note});
}

}  // namespace
}  // namespace mscclc::symbolic

namespace mscclc {

bool run_complete_sums(Program& program, PassContext& context) {
  Diagnostics& diagnostics = context.diagnostics;
  if (!program.split) {
    diagnostics.error("not-split", {}, "'split' must run before 'complete_sums'");
    return false;
  }
  symbolic::SymbolicRun run(program, program.contract.reduces());
  if (!run.fits()) {
    symbolic::report_too_many_chunks(program, diagnostics);
    return false;
  }
  const symbolic::PromisedSums promised(program.contract);
  const bool ended =
      run.run([&](uint32_t rank, uint32_t op, std::span<const symbolic::Symbol> symbols) {
        program.ranks[rank].ops[op].complete =
            !symbols.empty() &&
            std::ranges::all_of(symbols, [&](symbolic::Symbol s) { return promised.contains(s); });
      });
  if (!ended) run.report_stuck(diagnostics);
  if (ended) symbolic::warn_of_competitors(program, diagnostics);
  return ended;
}

}  // namespace mscclc
