// The plans that a rank has loaded. All ranks make the same calls, and so load the same plans, in
// the same order; nothing is ever let go, as graphs may hold calls of it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/communicator.h"
#include "runtime/api/plan_provider.h"

namespace mscclc {

/// Thread safety: one thread at a time.
class LoadedPlans {
 public:
  /// `piece_bytes`: CollectivesOptions.
  LoadedPlans(Communicator& communicator, uint64_t piece_bytes)
      : communicator_(communicator), piece_bytes_(piece_bytes) {}

  /// What a call needs of a plan besides the plan.
  struct Need {
    uint64_t bytes;  ///< of the message
    Dtype dtype;
    bool zero_copy;
  };
  /// The largest message that the plan does at once: more would take too much memory. Depends on
  /// nothing that is not the same on all ranks.
  uint64_t most_at_once(const PickedPlan& picked, const Need& need);
  /// nullptr: it is still to be loaded.
  Executable* find(const PickedPlan& picked, const Need& need);
  /// Collective: makes room for the message, and for larger ones. `call`, `ahead`: LoadOptions.
  /// nullptr: reported.
  [[nodiscard]] Executable* load(const PickedPlan& picked, const Need& need,
                                 const std::string& call, uint64_t ahead, Diagnostics& diagnostics);
  uint64_t count() const { return count_; }

 private:
  /// A plan as it was loaded once.
  struct Variant {
    LoadOptions options;
    std::unique_ptr<Executable> executable;
  };
  struct Plan {
    std::shared_ptr<const Program> program;  ///< its address does not come again
    bool by_width;                           ///< it serves elements of one width only
    bool stages;                             ///< zero copy is another way to load it
    std::optional<uint64_t> most[2] = {};    ///< most_at_once(): staged, zero copy
    std::vector<Variant> variants;
  };
  Plan& plan_of(const PickedPlan& picked);

  Communicator& communicator_;
  const uint64_t piece_bytes_;
  std::map<const Program*, Plan> plans_;
  uint64_t count_ = 0;
};

}  // namespace mscclc
