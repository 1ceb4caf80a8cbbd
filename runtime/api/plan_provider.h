// Which plan for a call: what is asked, what is answered, and by which provider. That may be a
// folder of plans, plans that were registered, or the library that is compiled into the program.
//
//   PlanRequest request{.call = {CollectiveKind::allreduce, 4, bytes, Dtype::f16}};
//   std::vector<PassedOver> passed_over;
//   const auto picked = provider->pick(request, &passed_over, problems);
//   if (picked != nullptr) executable = communicator->load(picked->plan, options, problems);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/proof.h"
#include "plans/format/library_call.h"

namespace mscclc {

struct Program;

/// All that a choice may depend on. Every member REQUIRES the same value on all ranks, or they pick
/// different plans; so nothing here belongs to one rank: no pointer, stream, device or rank.
struct PlanRequest {
  LibraryCall call;  ///< collective, ranks, nodes, bytes, type, reduction, placement, root …
  /// What all ranks' buffers are aligned to, in bytes; 0: they were not compared. Plans take any
  /// alignment, so this is for selectors, as the next two are.
  uint32_t alignment = 0;
  bool registered = false;       ///< all ranks have registered all buffers of the call
  uint32_t architecture = 0;     ///< of all GPUs, 90 for compute capability 9.0; 0: no GPUs, or
                                 ///< not the same ones
  uint32_t multiprocessors = 0;  ///< the fewest of any GPU; 0: no GPUs, so as many as it takes
  uint32_t most_blocks = 0;      ///< thread blocks that the caller allows a plan; 0: any number
  bool multicast = false;        ///< all ranks may use multicast of the NVLink switch
  std::string tag = {};  ///< the caller's; plans with tags serve only calls with one of them
  bool operator==(const PlanRequest&) const = default;
};

/// A plan that serves a request.
struct PickedPlan {
  std::string name;  ///< of the plan, for messages: a file, or a program and its parameters
  std::shared_ptr<const Program> plan;
  /// That the plan was read from, or beside which kernels of a plan of the library would lie, for
  /// LoadOptions::plan_file; empty: none.
  std::string file = {};
  /// The largest message for which this plan is picked; ~0: unlimited. Scratch memory is laid out
  /// for it (LoadOptions::max_bytes): use less if messages are never that large.
  uint64_t max_bytes = 0;
  /// What is proved about the plan, whatever its file says; nullopt: proofs are skipped.
  std::optional<Proof> proof;
  /// Where proofs are skipped: what the record of the file says (without one, that its sums keep
  /// `any`). nullopt: it is of no file, and a row of the library says what they keep.
  std::optional<Proof> claimed = {};
  std::string why;  ///< one line: what made it the choice
  /// Pieces of a call that is too large at once get it, too, as it was registered by itself; false:
  /// they get what is picked for their size.
  bool serves_pieces = false;
  /// What its sums are taken to keep; nullopt: see `claimed`.
  const std::optional<Proof>& sums() const { return proof ? proof : claimed; }
};

/// A plan that was not picked, and why not.
struct PassedOver {
  std::string name;
  std::string why;  ///< "it is for 8 ranks"
};

/// Thread safety: pick() may be called from any threads at once.
class PlanProvider {
 public:
  virtual ~PlanProvider() = default;
  /// The plan for a request; it may be read, compiled and proved at its first call. Ranks that have
  /// the same plans and make the same request get the same plan. While a plan is there, the same
  /// pointer each time; what was picked stays as it is after the plan was removed. nullptr without
  /// an error: no plan serves such a request. nullptr with errors: one should, but cannot be used.
  /// `passed_over`, if any: gets one line for each plan of this collective that was looked at
  /// before the picked one. That takes time: leave it out where the lines are not read.
  [[nodiscard]] virtual std::shared_ptr<const PickedPlan> pick(const PlanRequest& request,
                                                               std::vector<PassedOver>* passed_over,
                                                               Diagnostics& diagnostics) = 0;
};

}  // namespace mscclc
