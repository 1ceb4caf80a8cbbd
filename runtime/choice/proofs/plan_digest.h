// A plan's name that no other plan can be given: BLAKE2b-256 over its canonical bytes, claims
// left out, and over the version of the prover's rules. (The content hash of plans is quick and
// shows mistakes; it can be forged.)
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "plans/format/proof_record.h"

namespace mscclc {

using PlanDigest = std::array<uint8_t, 32>;

/// Equal for equal plans, wherever they were compiled or read, whatever their target. nullopt:
/// reported (a plan that cannot be written). REQUIRES: what write_plan() does.
[[nodiscard]] std::optional<PlanDigest> plan_digest(const Program& program,
                                                    Diagnostics& diagnostics);
/// The same. What read_shared_plan() has read need not be written to find it.
[[nodiscard]] std::optional<PlanDigest> plan_digest(const std::shared_ptr<const Program>& plan,
                                                    Diagnostics& diagnostics);

/// load_plan(), and what the file says of its proof: the plan keeps the digest that reading has
/// found. nullptr: reported.
[[nodiscard]] std::shared_ptr<const Program> read_shared_plan(
    std::string_view json, const std::string& name, Diagnostics& diagnostics,
    std::optional<ProofRecord>* proof = nullptr);

/// A plan that was compiled here, with its digest kept, as read_shared_plan() keeps it. nullptr:
/// reported. REQUIRES: what write_plan() does.
[[nodiscard]] std::shared_ptr<const Program> share_plan(Program program, Diagnostics& diagnostics);

/// 64 lower-case hex digits.
std::string hex(const PlanDigest& digest);

}  // namespace mscclc
