#include "runtime/choice/proofs/check_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "passes/prove/prove.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "runtime/choice/proofs/first_use.h"
#include "runtime/choice/proofs/known_plans.h"
#include "runtime/choice/proofs/proof_cache.h"
#include "runtime/support/observe/log.h"
#include "runtime/support/process/per_process.h"

namespace mscclc {
namespace {

/// Plans that this process has proved, or found in the cache. Ranks that are threads of one process
/// load the same plan at once: the first proves it, and the others wait for that.
class ProvedHere {
 public:
  std::optional<Proof> find(const PlanDigest& digest) const {
    const auto found = proved_.find(digest);
    return found == proved_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(const PlanDigest& digest, const Proof& proof) {
    if (proved_.size() == kMax) proved_.clear();
    proved_[digest] = proof;
  }
  std::mutex mutex;

 private:
  static constexpr size_t kMax = 4096;
  std::map<PlanDigest, Proof> proved_;
};

/// What keeps_scratch_in_call() has found.
struct ScratchKnown {
  std::mutex mutex;
  std::map<PlanDigest, bool> in_call;
};

std::optional<Proof> prove_now(const Program& plan, Diagnostics& diagnostics) {
  const FirstUse first;
  const Proof proof = prove(plan, diagnostics);
  if (first.slow())
    first.log(
        "proved", mscclc::quoted(plan.name),
        "where the proof cache can be written (MSCCLC_PROOF_CACHE), later jobs find it there");
  if (proof.proved) return proof;
  diagnostics
      .error("not-proved", {},
             fmt::format("the plan {} is not proved right, so it is not loaded",
                         mscclc::quoted(plan.name)))
      .notes.push_back({.text = "'mscclc verify' shows more; LoadOptions::proof or "
                                "MSCCLC_PROOF=skip loads it anyway"});
  return std::nullopt;
}

/// Plans of the library have fewer at 16 ranks; so many take some tens of milliseconds.
constexpr size_t kMaxOps = 20'000;

bool is_small_with_scratch(const Program& plan) {
  size_t ops = 0;
  bool scratch = false;
  for (const Rank& rank : plan.ranks) {
    ops += rank.ops.size();
    scratch |= rank.buffers.size() > kFirstScratch;
  }
  return scratch && ops <= kMaxOps;
}

/// What is claimed and is not so; "": all is.
std::string false_claim(const Program& plan, const Proof& claimed, const Proof& proved) {
  if (claimed.out_of_place && !proved.out_of_place) return "right out of place";
  if (claimed.in_place && !proved.in_place) return "right in place";
  if (claimed.orders.replicated && !proved.orders.replicated) return "adding up alike on all ranks";
  if (claimed.orders.ranks && !proved.orders.ranks) return "adding in rank order";
  if (claimed.orders.tree && !proved.orders.tree) return "adding along the tree";
  if (claimed.orders.exact && !proved.orders.exact) return "adding exactly";
  if (claimed.keeps_input && !proved.keeps_input) return "said to keep the caller's input";
  if (claimed.rounding != proved.rounding) return "rounded as it says";
  if (claimed.between_calls != proved.between_calls)
    return "kept apart from other calls as it says";
  const std::string sums = claimed.sums.empty() ? "" : sums_of(plan, proved);
  if (claimed.sums == sums) return "";
  return fmt::format("adding up {}, but {}", mscclc::quoted(claimed.sums),
                     sums.empty() ? "otherwise" : mscclc::quoted(sums));
}

}  // namespace

std::optional<Proof> check_proof(const Program& plan, const PlanDigest& digest,
                                 const Environment& environment, Diagnostics& diagnostics) {
  if (const auto known = known_proof(digest)) return known;
  auto& here = process_wide<ProvedHere>();
  const std::lock_guard lock(here.mutex);
  if (const auto proved = here.find(digest)) return proved;
  const auto cache = ProofCache::open(environment, diagnostics);
  if (!cache) return std::nullopt;
  std::optional<Proof> proved = cache->find(digest, diagnostics);
  if (!proved) {
    proved = prove_now(plan, diagnostics);
    if (proved) cache->keep(digest, *proved);
  }
  if (proved) here.keep(digest, *proved);
  return proved;
}

bool keeps_scratch_in_call(const Program& plan, const PlanDigest& digest) {
  constexpr size_t kMax = 4096;
  if (!is_small_with_scratch(plan)) return false;
  auto& [mutex, known] = process_wide<ScratchKnown>();
  const std::lock_guard lock(mutex);  // ranks that are threads: the first finds out for all
  if (const auto found = known.find(digest); found != known.end()) return found->second;
  if (known.size() == kMax) known.clear();
  return known[digest] = scratch_in_call(plan);
}

bool check_claims(const std::string& file, const Program& plan, const ProofRecord& claimed,
                  const Proof& proved, Diagnostics& diagnostics) {
  std::string wrong = false_claim(plan, claimed.proof, proved);
  // Of a target that is not built in only the name is known.
  const auto& targets = builtin_targets();
  const auto target = std::ranges::find(targets, claimed.target, &Target::name);
  if (wrong.empty() && target != targets.end() && claimed.graph_replay &&
      !proof_record(plan, *target, proved).graph_replay) {
    wrong = "right when a graph is replayed";
  }
  if (wrong.empty()) return true;
  diagnostics
      .error("false-claim", {},
             fmt::format("'{}' claims what is not proved of it: it is not {}", file, wrong))
      .notes.push_back({.text = "compile the plan's program again: 'mscclc compile' proves what it "
                                "writes"});
  return false;
}

void warn_of_skipped(const std::string& what, std::optional<uint32_t> rank,
                     Diagnostics& diagnostics) {
  const std::string text = fmt::format(
      "{} has not been checked: proofs are skipped (LoadOptions::proof or "
      "MSCCLC_PROOF)",
      what);
  diagnostics.warning("proof-skipped", {}, text);
  log(LogLevel::warn, LogArea::load, rank, "proof-skipped: " + text);
}

}  // namespace mscclc
