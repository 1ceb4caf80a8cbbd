// Is a plan right? What load() and the registry ask, who do not take a file's word for it: the plan
// is known to this binary, or it was proved before (by this process, or by this user), or it is
// proved now.
#pragma once

#include <optional>
#include <string>

#include "ir/diagnostic.h"
#include "ir/program.h"
#include "ir/proof.h"
#include "plans/proof_record.h"
#include "runtime/base/environment.h"
#include "runtime/proofs/plan_digest.h"

namespace mscclc {

/// What is proved of a plan. nullopt: it is refused (not-proved), behind what the prover says is
/// wrong with it. From any thread. REQUIRES: the plan's structure is in order; `digest` is its own.
[[nodiscard]] std::optional<Proof> check_proof(const Program& plan, const PlanDigest& digest,
                                               const Environment& environment,
                                               Diagnostics& diagnostics);

/// False if a plan claims what is not so (false-claim). `file` is for messages.
[[nodiscard]] bool check_claims(const std::string& file, const Program& plan,
                                const ProofRecord& claimed, const Proof& proved,
                                Diagnostics& diagnostics);

/// Says that a plan is not looked at (proof-skipped), and logs it. `what`: the plan, for the
/// message; `rank`: of the communicator that loads it, if one does.
void warn_of_skipped(const std::string& what, std::optional<uint32_t> rank,
                     Diagnostics& diagnostics);

}  // namespace mscclc
