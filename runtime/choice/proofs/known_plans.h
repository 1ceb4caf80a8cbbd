// The plans of the library that this binary knows: they were compiled and proved when it was built.
#pragma once

#include <optional>

#include "ir/program/proof.h"
#include "runtime/choice/proofs/plan_digest.h"

namespace mscclc {

/// What was proved of a plan of the library; nullopt: it is unknown.
[[nodiscard]] std::optional<Proof> known_proof(const PlanDigest& digest);

}  // namespace mscclc
