// The plans of a process: folders, files and plans in memory, and the library that is asked last.
// It picks the plan of each call, and plans may be added and removed while calls are made.
//
//   const auto registry =
//       PlanRegistry::create({.library = builtin_library({}, problems)}, problems);
//   const auto id = registry->register_plan(json, "my_allreduce", problems);
//   const auto picked = registry->pick({.call = call}, nullptr, problems);
//
// What a plan serves is what it says itself: its collective, ranks and root, and its `select`
// options. Among plans that serve a call, the one goes first that has, in this order,
//
//   1. the higher `priority`;
//   2. tags, one of which is the call's;
//   3. `nodes`, then `gpus_per_node`, then `sizes` that cover less;
//   4. fewer `dtypes`, then fewer `ops`;
//   5. a placement of its own (in place, or out of place);
//   6. the smaller content hash.
//
// The order in which plans were added does not matter. After them come the folders that
// `mscclc library` wrote, by their tables, in the order in which they were added; then the library.
//
// The choice depends on the request and on the plans, both of which must be the same on all ranks:
// add and remove plans at the same point between calls on all of them. Communicator::load() detects
// plans that differ.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/plan_provider.h"
#include "runtime/api/proof_policy.h"

namespace mscclc {

struct MeasuredTables;

/// What a caller's selector wants for a call.
struct Selection {
  enum class Kind : uint8_t {
    usual,  ///< what the registry would pick
    plan,   ///< the registered plan of this name or content hash
    none    ///< no plan: the call is for another library
  };
  Kind kind = Kind::usual;
  std::string plan = {};
};

/// Asked once for each request, and again when plans or the selector change; the answer is kept. It
/// must depend only on the request, and be the same on all ranks. It must not ask the registry,
/// which would ask it again, and is refused then (bad-selection); it may be called from any threads
/// at once.
using PlanSelector = std::function<Selection(const PlanRequest&)>;

struct RegistryOptions {
  /// Asked last; nullptr: there is none. See builtin_library().
  std::shared_ptr<PlanProvider> library = nullptr;
  /// Whether plans must be proved; nullopt: as MSCCLC_PROOF says.
  std::optional<ProofPolicy> proof = {};
  /// Whether MSCCLC_PLAN_PATH, MSCCLC_TUNER_FILE and MSCCLC_REQUIRE_PLAN are followed.
  bool follow_environment = true;
};

/// A plan that is registered.
struct RegisteredPlan {
  std::string id;  ///< the content hash, 64 hexadecimal digits; the same for equal plans
  PickedPlan plan;
};

/// Thread safety: all of it, from any threads at once.
class PlanRegistry : public PlanProvider {
 public:
  /// Adds what MSCCLC_PLAN_PATH names, and selects as MSCCLC_TUNER_FILE says (tuner_csv.h).
  /// MSCCLC_REQUIRE_PLAN: see pick(). nullptr: reported. Errors: bad-variable, and those of
  /// add_path() and read_tuner_csv().
  [[nodiscard]] static std::shared_ptr<PlanRegistry> create(const RegistryOptions& options,
                                                            Diagnostics& diagnostics);
  ~PlanRegistry() override;

  /// Adds a plan's file, or all plans of a folder: by its table if there is a library.json, else
  /// each by what it says itself; and the rows of its overlap.json, if there is one. All or none.
  /// Errors: cannot-read, no-registry (a folder without either, or whose table names files that are
  /// not there), not-a-library, those of register_plan().
  [[nodiscard]] bool add_path(const std::string& path, Diagnostics& diagnostics);
  /// Adds a plan and gives its content hash. One that is there already stays, under its first name.
  /// nullopt: reported. Errors: those of read_plan(), not-proved, false-claim, name-taken (another
  /// plan has this name).
  [[nodiscard]] std::optional<std::string> register_plan(std::string_view json,
                                                         const std::string& name,
                                                         Diagnostics& diagnostics);
  /// Takes out the plan with this name or content hash. What was picked goes on. False: there is
  /// none.
  bool remove(std::string_view plan);
  /// Before the order above; an empty function: none. Plans of folders with tables and of
  /// the library have no names here.
  void set_selector(PlanSelector selector);

  /// What the overlap.json of folders says of GEMMs that overlap, in the order in which these were
  /// added, for OverlapOptions. Never nullptr.
  std::shared_ptr<const MeasuredTables> measured() const;
  /// The registered plans, in the order above.
  std::vector<RegisteredPlan> plans() const;

  /// As PlanProvider says. Errors: bad-selection (the selector names a plan that is not there, or
  /// does not serve the call), those of the folders and of the library, and, with
  /// MSCCLC_REQUIRE_PLAN=1, no-plan: nothing serves the call; its notes say why not.
  [[nodiscard]] std::shared_ptr<const PickedPlan> pick(const PlanRequest& request,
                                                       std::vector<PassedOver>* passed_over,
                                                       Diagnostics& diagnostics) override;

 private:
  struct State;
  explicit PlanRegistry(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mscclc
