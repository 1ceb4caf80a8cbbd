// Is a plan right? load() and the registry ask, since they do not trust a file's claim: the plan is
// known to this binary, or was proved before (by this process, or by this user), or is proved now.
#pragma once

#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/program/proof.h"
#include "plans/format/proof_record.h"
#include "runtime/choice/proofs/plan_digest.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {

/// What is proved about a plan. nullopt: it is refused (not-proved), after the prover's findings.
/// From any thread. REQUIRES: the plan's structure is in order; `digest` is its own.
[[nodiscard]] std::optional<Proof> check_proof(const Program& plan, const PlanDigest& digest,
                                               const Environment& environment,
                                               Diagnostics& diagnostics);

/// scratch_in_call() of a plan that is proved; a process finds it out once. False too where that
/// would take long: the plan has more ops than are looked at when it is loaded.
[[nodiscard]] bool keeps_scratch_in_call(const Program& plan, const PlanDigest& digest);

/// False if a plan's claims are not true (false-claim). `file` is for messages.
[[nodiscard]] bool check_claims(const std::string& file, const Program& plan,
                                const ProofRecord& claimed, const Proof& proved,
                                Diagnostics& diagnostics);

/// Warns that a plan is not checked (proof-skipped), and logs it. `what`: the plan, for the
/// message; `rank`: of the communicator that loads it, if one does.
void warn_of_skipped(const std::string& what, std::optional<uint32_t> rank,
                     Diagnostics& diagnostics);

}  // namespace mscclc
