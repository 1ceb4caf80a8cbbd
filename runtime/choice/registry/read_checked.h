// Plans from text and files, proved as the policy says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/api/proof_policy.h"
#include "runtime/choice/registry/plan_facts.h"

namespace mscclc {

/// The text of a plan's file or of a table. nullopt: reported as `code`, with a remedy.
[[nodiscard]] std::optional<std::string> read_named(const std::string& path, const char* code,
                                                    const std::string& remedy,
                                                    Diagnostics& diagnostics);

/// Reads and proves a plan. nullptr: reported. Errors: those of read_plan(), not-proved,
/// false-claim (it claims more than is proved). `name` is for messages.
[[nodiscard]] std::shared_ptr<CheckedPlan> read_checked_plan(std::string_view json,
                                                             const std::string& name,
                                                             ProofPolicy policy,
                                                             Diagnostics& diagnostics);

}  // namespace mscclc
