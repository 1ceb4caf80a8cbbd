// A library of programs as a provider of plans: library.json picks the program and its parameters,
// and the plan is compiled and proved when it is first picked.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plans/format/target.h"
#include "runtime/api/proof_policy.h"
#include "runtime/choice/registry/table_provider.h"

namespace mscclc {

/// The text of a file of the library, "allreduce_push.mscl"; nullopt: there is none.
using ReadLibraryFile = std::function<std::optional<std::string>(const std::string& name)>;

class ProgramLibrary : public TableProvider {
 public:
  /// `place` goes before names of files, for messages; `kernels` is a folder of kernels for the
  /// plans (kernel_folder.h), or "". REQUIRES: the table's rows name programs.
  ProgramLibrary(LibraryTable table, ReadLibraryFile read, std::string place, std::string kernels,
                 ProofPolicy policy);

 private:
  /// A plan, or why there is none. Made once, by the first call that picks it.
  struct MadePlan {
    std::once_flag once;
    RowPlan of_row;
    Diagnostics diagnostics;
  };
  /// What makes one plan: program, parameters, and what they are for.
  struct Order;

  RowPlan plan_of(const LibraryRow& row, const PlanRequest& request,
                  Diagnostics& diagnostics) override;
  std::string name_of(const LibraryRow& row, const LibraryCall& call) const override;
  std::shared_ptr<MadePlan> made_plan(const std::string& name);
  void make(MadePlan& made, const Order& order) const;
  std::shared_ptr<const Program> compile_fitting(Order& order, MadePlan& made) const;
  std::optional<Program> compile_once(const Order& order, Diagnostics& diagnostics) const;
  bool finish(MadePlan& made, std::shared_ptr<const Program> plan, const Order& order) const;

  const ReadLibraryFile read_;
  const std::string kernels_;
  const ProofPolicy policy_;
  const Target target_;
  std::mutex mutex_;  ///< of made_, not of what they hold
  std::map<std::string, std::shared_ptr<MadePlan>> made_;
};

}  // namespace mscclc
