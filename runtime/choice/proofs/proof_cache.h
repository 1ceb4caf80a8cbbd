// The user's cache of plans that were proved before: a folder with a small file for each, named by
// the plan's digest, so that a plan that was changed is another plan. A user who may write there
// can make a plan pass for proved, so it is used only if it is the user's own and no other user
// may. It may be deleted at any time. Without a cache that can be read and written, plans are
// proved.
#pragma once

#include <optional>
#include <string>

#include "ir/program/proof.h"
#include "runtime/choice/proofs/plan_digest.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {

class ProofCache {
 public:
  /// The folder that MSCCLC_PROOF_CACHE names, or mscclc/proofs in the user's folder for caches.
  /// Errors (bad-variable). Warns (proof-cache) of a folder that others may write to.
  [[nodiscard]] static std::optional<ProofCache> open(const Environment& environment,
                                                      Diagnostics& diagnostics);
  /// "": finds and keeps nothing. The folder is made when something is kept, but not below a `root`
  /// that is not there: the user's home is not for us to make.
  explicit ProofCache(std::string folder, std::string root = "")
      : folder_(std::move(folder)), root_(std::move(root)) {}

  /// nullopt: this plan was not proved before.
  [[nodiscard]] std::optional<Proof> find(const PlanDigest& digest, Diagnostics& diagnostics) const;
  /// REQUIRES: proof.proved.
  void keep(const PlanDigest& digest, const Proof& proof) const;

 private:
  std::string folder_, root_;
};

}  // namespace mscclc
