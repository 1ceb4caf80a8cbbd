// The user's cache of plans that were proved before: a folder with a small file for each, named by
// the plan's digest, so that a plan that was changed is another plan. A user who may write there
// can make a plan pass for proved, so it is used only if it is the user's own and no other user
// may. It may be deleted at any time. Without a cache that can be read and written, plans are
// proved.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "ir/program/proof.h"
#include "runtime/choice/proofs/plan_digest.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/settings/cache_folder.h"

namespace mscclc {

class ProofCache {
 public:
  /// The folder that MSCCLC_PROOF_CACHE names, or mscclc/proofs in the user's folder for caches.
  /// Errors (bad-variable). Warns (proof-cache) of a folder that others may write to.
  [[nodiscard]] static std::optional<ProofCache> open(const Environment& environment,
                                                      Diagnostics& diagnostics);
  /// Without a path it finds and keeps nothing. The folder is made when something is kept.
  explicit ProofCache(CacheFolder folder) : folder_(std::move(folder)) {}
  explicit ProofCache(std::string path) : folder_{std::move(path)} {}

  /// nullopt: this plan was not proved before.
  [[nodiscard]] std::optional<Proof> find(const PlanDigest& digest, Diagnostics& diagnostics) const;
  /// REQUIRES: proof.proved.
  void keep(const PlanDigest& digest, const Proof& proof) const;

 private:
  CacheFolder folder_;
};

}  // namespace mscclc
