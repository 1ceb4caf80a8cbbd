// Picks the plan of each call at run time, from a folder of compiled plans and their table
// (plans/library_table.h): what `mscclc library --ranks 4 -o FOLDER` writes. No compiler is needed.
//
//   auto registry = Registry::open("/opt/plans", problems);
//   const Registry::Choice* choice =
//       registry->choose({CollectiveKind::allreduce, 4, bytes, Dtype::f32}, problems);
//   // loaded once for each plan, on all ranks:
//   auto executable = communicator->load(choice->plan, {.max_bytes = choice->max_bytes}, problems);
//
// The choice depends on the call alone. Ranks that open the same files and make the same call get
// the same plan; that files differ is found by Communicator::load().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ir/diagnostic.h"
#include "ir/program.h"
#include "plans/library_table.h"
#include "plans/proof_record.h"
#include "runtime/proofs/policy.h"

namespace mscclc {

/// One thread at a time may use it.
/// Thread safety: choose() reads plans when they are first picked, so one thread at a time.
class Registry {
 public:
  struct Choice {
    std::string file;  ///< of the plan
    std::shared_ptr<const Program> plan;
    /// The largest message for which the table picks this plan; ~0: however large. What scratch
    /// memory is laid out for (LoadOptions::max_bytes): take less if messages are never that large.
    uint64_t max_bytes = 0;
    /// What is proved of the plan, whatever its file says; nullopt: proofs are skipped.
    std::optional<Proof> proof;
  };

  /// Reads FOLDER/library.json. Errors: no-registry (there is no such file, it names programs that
  /// are still to be compiled, or a plan that is not there), and those of LibraryTable::parse().
  /// `proof`: whether plans must be proved; nullopt: as MSCCLC_PROOF says.
  [[nodiscard]] static std::optional<Registry> open(
      const std::string& folder, Diagnostics& diagnostics,
      std::optional<ProofPolicy> proof = std::nullopt);

  /// The plan for a call, read when it is first picked; the same pointer for the same plan, as long
  /// as the registry lives. nullptr: reported. Errors: no-plan (the table has none for such calls),
  /// wrong-plan (the file holds a plan for other calls), cannot-read, not-proved, false-claim (the
  /// file claims of the plan what is not proved), and those of read_plan().
  [[nodiscard]] const Choice* choose(const LibraryCall& call, Diagnostics& diagnostics);

  const LibraryTable& table() const { return table_; }

 private:
  Registry(std::string folder, LibraryTable table, ProofPolicy policy)
      : folder_(std::move(folder)), table_(std::move(table)), policy_(policy) {}
  [[nodiscard]] bool check_files(Diagnostics& diagnostics) const;
  const Choice* read(const LibraryChoice& choice, const LibraryCall& call,
                     Diagnostics& diagnostics);
  [[nodiscard]] bool prove(Choice& choice, const std::optional<ProofRecord>& claimed,
                           Diagnostics& diagnostics) const;
  [[nodiscard]] bool check_plan(const Program& plan, const std::string& file,
                                const LibraryCall& call, Diagnostics& diagnostics) const;

  std::string folder_;  ///< with a '/' at its end
  LibraryTable table_;
  ProofPolicy policy_;
  std::map<std::string, Choice> read_;  ///< by name of the file
};

}  // namespace mscclc
