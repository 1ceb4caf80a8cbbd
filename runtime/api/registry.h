// Picks the plan of each call at run time, from a folder of compiled plans and their table
// (plans/library_table.h): what `mscclc library --ranks 4 -o FOLDER` writes. No compiler is needed.
//
//   auto registry = Registry::open("/opt/plans", problems);
//   const Registry::Choice* choice =
//       registry->choose({CollectiveKind::allreduce, 4, bytes, Dtype::f32}, problems);
//   // loaded once for each plan, on all ranks:
//   auto executable = communicator->load(
//       choice->plan, {.max_bytes = choice->max_bytes, .plan_file = choice->file}, problems);
//
// The choice depends only on the call. Ranks that open the same files and make the same call get
// the same plan; Communicator::load() detects files that differ.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ir/diagnostic.h"
#include "ir/proof.h"
#include "plans/library_call.h"
#include "runtime/api/proof_policy.h"

namespace mscclc {

class LibraryTable;
struct Program;

/// Thread safety: choose() reads plans when they are first picked, so one thread at a time.
class Registry {
 public:
  struct Choice {
    std::string file;  ///< of the plan
    std::shared_ptr<const Program> plan;
    /// The largest message for which the table picks this plan; ~0: unlimited. Scratch memory is
    /// laid out for it (LoadOptions::max_bytes): use less if messages are never that large.
    uint64_t max_bytes = 0;
    /// What is proved about the plan, whatever its file says; nullopt: proofs are skipped.
    std::optional<Proof> proof;
  };

  ~Registry();
  Registry(Registry&&) noexcept;
  Registry& operator=(Registry&&) noexcept;

  /// Reads FOLDER/library.json. Errors: no-registry (there is no such file, it names programs that
  /// are still to be compiled, or a plan that is not there), and those of LibraryTable::parse().
  /// `proof`: whether plans must be proved; nullopt: as MSCCLC_PROOF says.
  [[nodiscard]] static std::optional<Registry> open(
      const std::string& folder, Diagnostics& diagnostics,
      std::optional<ProofPolicy> proof = std::nullopt);

  /// The plan for a call, read when it is first picked; the same pointer for the same plan while
  /// the registry lives. nullptr: reported. Errors: no-plan (the table has none for such calls),
  /// wrong-plan (the file holds a plan for other calls), cannot-read, not-proved, false-claim (the
  /// file claims more than is proved), and those of read_plan().
  [[nodiscard]] const Choice* choose(const LibraryCall& call, Diagnostics& diagnostics);

  const LibraryTable& table() const;

 private:
  struct State;
  explicit Registry(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mscclc
