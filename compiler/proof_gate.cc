#include "compiler/proof_gate.h"

#include "passes/prove/prove.h"

namespace mscclc {

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
  if (proof->proved) return true;
  diagnostics.error("refused", {},
                    "the plan is not proved right, so nothing is written" +
                        (otherwise.empty() ? otherwise : "; " + otherwise));
  return false;
}

}  // namespace mscclc
