#include "compiler/proof_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/report/op_error.h"
#include "passes/prove/prove.h"

namespace mscclc {
namespace {

bool rounds(Dtype dtype) { return rounds_on_the_way(dtype, info(dtype).accumulate); }

/// A sum that another one may take, with its rank; nullptr: there are only extrema. Whole sums come
/// last, and which are is found out anew: the plan's own word (Op::complete) does not make them so.
std::pair<uint32_t, const Op*> rounding_sum(const Program& program) {
  Program marked = program;
  Diagnostics unused;
  PassOptions marks;
  marks.only = {"complete_sums"};
  static_cast<void>(run_passes(marked, marks, unused));
  for (const bool whole : {false, true}) {
    for (uint32_t r = 0; r < program.ranks.size(); ++r) {
      const std::vector<Op>& ops = program.ranks[r].ops;
      for (size_t i = 0; i < ops.size(); ++i) {
        const bool adds = info(ops[i].kind).has(kReduces) && !is_extremum(ops[i].reduce);
        if (adds && marked.ranks[r].ops[i].complete == whole) return {r, &ops[i]};
      }
    }
  }
  return {0, nullptr};
}

}  // namespace

bool can_keep_order(const Program& program, const Proof& proof, Diagnostics& diagnostics) {
  const Contract& contract = program.contract;
  const Select& select = program.select;
  if (serves(SumOrder::replicated, contract.order) || proof.rounding != Rounding::each_op ||
      select.dtypes.empty() || !std::ranges::all_of(select.dtypes, rounds) ||
      (!select.ops.empty() && std::ranges::all_of(select.ops, is_extremum))) {
    return true;
  }
  const auto [rank, op] = rounding_sum(program);
  if (op == nullptr) return true;
  Diagnostic& d = op_error(
      diagnostics, "sum-order", program, rank, *op,
      fmt::format("no sum of {} keeps 'order: {}': this one is rounded to that type on the way",
                  info(select.dtypes[0]).name, name(contract.order)));
  d.notes.push_back({"'select dtypes' lists only types that are added up in a wider one"});
  d.notes.push_back(
      {"give one op the contributions of all ranks, as they are; or promise "
       "'replicated'; or list a type that is added up in itself, such as f32"});
  return false;
}

bool ProofGate::pass(const Program& program, Diagnostics& diagnostics) {
  proof.reset();
  if (!program.split) return true;
  const RunClock clock;
  proof = prove(program, diagnostics, {.try_copies = try_copies});
  if (proof->proved) proof->sums = sums_of(program, *proof);  // for the record
  if (records != nullptr) {
    records->emplace_back().pass = "prove";
    clock.stop(records->back());
  }
  if (proof->proved && can_keep_order(program, *proof, diagnostics)) return true;
  diagnostics.error("refused", {},
                    "the plan is not proved right, so nothing is written" +
                        (otherwise.empty() ? otherwise : "; " + otherwise));
  return false;
}

}  // namespace mscclc
