#include "runtime/choice/proofs/plan_digest.h"

#include <sodium.h>

#include <cstdlib>
#include <functional>

#include "plans/format/plan_json.h"

namespace mscclc {
namespace {

static_assert(sizeof(PlanDigest) == crypto_generichash_BYTES);

class Digester {
 public:
  Digester() {
    if (sodium_init() < 0) std::abort();
    crypto_generichash_init(&state_, nullptr, 0, sizeof(PlanDigest));
    // The format's version stands in the plan.
    update("mscclc plan, prover " + std::to_string(kProverVersion) + "\n");
  }
  /// What hands the digester the blocks of a plan; lives no longer than it.
  std::function<bool(std::string_view)> sink() {
    return [this](std::string_view block) {
      update(block);
      any_ = true;
      return true;
    };
  }
  /// Has anything come by sink()?
  bool any() const { return any_; }
  void update(std::string_view bytes) {
    crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
  }
  PlanDigest end() {
    PlanDigest digest;
    crypto_generichash_final(&state_, digest.data(), digest.size());
    return digest;
  }

 private:
  crypto_generichash_state state_;
  bool any_ = false;
};

/// Ends a plan that was read, and keeps its digest. The plan is const from the beginning, so it
/// stays what the digest is of: changing it takes a copy.
struct Keeper {
  PlanDigest digest;
  const Program* plan;
  void operator()(const Program* program) const { delete program; }
};

}  // namespace

std::optional<PlanDigest> plan_digest(const Program& program, Diagnostics& diagnostics) {
  Digester digester;
  if (!write_canonical(program, digester.sink(), diagnostics)) return std::nullopt;
  return digester.end();
}

std::optional<PlanDigest> plan_digest(const std::shared_ptr<const Program>& plan,
                                      Diagnostics& diagnostics) {
  const Keeper* keeper = std::get_deleter<Keeper>(plan);
  const bool kept = keeper != nullptr && keeper->plan == plan.get();  // else: of an owner of it
  return kept ? std::optional(keeper->digest) : plan_digest(*plan, diagnostics);
}

std::shared_ptr<const Program> read_shared_plan(std::string_view json, const std::string& name,
                                                Diagnostics& diagnostics,
                                                std::optional<ProofRecord>* proof) {
  Digester digester;
  const auto canonical = digester.sink();
  std::optional<Program> plan = read_plan(json, name, diagnostics, proof, &canonical);
  if (!plan) return nullptr;
  if (!digester.any()) return std::make_shared<const Program>(*std::move(plan));
  const auto* kept = new const Program(*std::move(plan));
  return {kept, Keeper{digester.end(), kept}};
}

std::shared_ptr<const Program> share_plan(Program program, Diagnostics& diagnostics) {
  const auto digest = plan_digest(program, diagnostics);
  if (!digest) return nullptr;
  const auto* kept = new const Program(std::move(program));
  return {kept, Keeper{*digest, kept}};
}

std::string hex(const PlanDigest& digest) {
  std::string text(2 * digest.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  text.pop_back();
  return text;
}

}  // namespace mscclc
