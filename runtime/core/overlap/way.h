// One way to make an object's runs: a choice, its GEMMs and its backend. An object of `auto` has
// two where captured runs are served best by another choice.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "runtime/core/overlap/backend.h"

namespace mscclc::overlap {

/// What the ways of an object have in common; all outlives them.
struct WayOf {
  const OverlapConfig& config;
  const OverlapOptions& options;
  const OverlapOwner& owner;
  GemmStreams& streams;
  GemmProvider& provider;
  uint32_t rank = 0, ranks = 1;
  std::function<void(const Diagnostics&)> failed;  ///< of GEMMs, from streams' threads
};

/// Thread safety: the communicator's.
class Way {
 public:
  /// `choice` outlives it.
  Way(const WayOf& of, const OverlapChoice& choice);
  /// What needs no other rank. False: reported.
  [[nodiscard]] bool prepare(Diagnostics& diagnostics) {
    // First what is freed again.
    return products_.prepare(backend_->tiles(), diagnostics) && backend_->prepare(diagnostics);
  }
  Backend& backend() { return *backend_; }
  const Backend& backend() const { return *backend_; }
  /// Does a plan with flags run beside the GEMMs?
  bool by_plan() const { return runs_beside(job_.choice.backend) && job_.ranks > 1; }

 private:
  Products products_;
  Job job_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace mscclc::overlap
