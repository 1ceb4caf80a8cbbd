#include "runtime/proofs/plan_digest.h"

#include <sodium.h>

#include <cstdlib>
#include <string_view>

#include "plans/plan_json.h"

namespace mscclc {
namespace {

static_assert(sizeof(PlanDigest) == crypto_generichash_BYTES);

class Digester {
 public:
  Digester() {
    if (sodium_init() < 0) std::abort();
    crypto_generichash_init(&state_, nullptr, 0, sizeof(PlanDigest));
  }
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
};

}  // namespace

std::optional<PlanDigest> plan_digest(const Program& program, Diagnostics& diagnostics) {
  Digester digester;
  // The format's version stands in the plan.
  digester.update("mscclc plan, prover " + std::to_string(kProverVersion) + "\n");
  const auto add = [&](std::string_view block) {
    digester.update(block);
    return true;
  };
  if (!write_plan(program, Target{}, add, diagnostics)) return std::nullopt;
  return digester.end();
}

std::string hex(const PlanDigest& digest) {
  std::string text(2 * digest.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), digest.data(), digest.size());
  text.pop_back();
  return text;
}

}  // namespace mscclc
