#include "runtime/choice/registry/read_checked.h"

#include <fmt/format.h>

#include <cerrno>

#include "ir/support/read_file.h"
#include "plans/format/proof_record.h"
#include "runtime/choice/proofs/check_proof.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {

std::optional<std::string> read_named(const std::string& path, const char* code,
                                      const std::string& remedy, Diagnostics& diagnostics) {
  std::optional<std::string> text = read_file(path, std::nullopt);  // without waiting
  if (text) return text;
  diagnostics.error(code, {}, fmt::format("cannot read '{}': {}", path, file_error(errno)))
      .notes.push_back({.text = remedy});
  return std::nullopt;
}

std::shared_ptr<CheckedPlan> read_checked_plan(std::string_view json, const std::string& name,
                                               ProofPolicy policy, Diagnostics& diagnostics) {
  std::optional<ProofRecord> claimed;
  auto plan = read_shared_plan(json, name, diagnostics, &claimed);
  if (plan == nullptr) return nullptr;
  auto made = std::make_shared<CheckedPlan>();
  made->picked.name = name;
  if (policy == ProofPolicy::skip) {
    warn_of_skipped(fmt::format("'{}'", name), std::nullopt, diagnostics);
    made->picked.claimed = claimed ? claimed->proof : Proof();
  } else {
    const auto digest = plan_digest(plan, diagnostics);
    if (!digest) return nullptr;
    made->picked.proof = check_proof(*plan, *digest, Environment::of_process(), diagnostics);
    if (!made->picked.proof) return nullptr;
    if (claimed && !check_claims(name, *plan, *claimed, *made->picked.proof, diagnostics)) {
      return nullptr;
    }
  }
  made->picked.plan = std::move(plan);
  made->facts = PlanFacts(made->picked);
  return made;
}

}  // namespace mscclc
