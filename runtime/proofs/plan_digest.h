// A plan's name that nobody can give to another plan: BLAKE2b-256 over what write_plan() writes of
// it, claims left out, and over the version of the prover's rules. (The content hash of plans is
// quick and tells mistakes; it can be forged.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "ir/diagnostic.h"
#include "ir/program.h"

namespace mscclc {

using PlanDigest = std::array<uint8_t, 32>;

/// Equal for equal plans, wherever they were compiled or read, whatever their target. nullopt:
/// reported (a plan that cannot be written). REQUIRES: what write_plan() does.
[[nodiscard]] std::optional<PlanDigest> plan_digest(const Program& program,
                                                    Diagnostics& diagnostics);

/// 64 lower-case hex digits.
std::string hex(const PlanDigest& digest);

}  // namespace mscclc
