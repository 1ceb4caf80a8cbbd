// A folder that `mscclc library` wrote: plans and the table that picks among them. Plans are read,
// checked against their row and proved when they are first picked.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "plans/format/proof_record.h"
#include "runtime/api/proof_policy.h"
#include "runtime/choice/registry/table_provider.h"

namespace mscclc {

class FolderTable : public TableProvider {
 public:
  /// Reads FOLDER/library.json and looks whether all files that it names are there. nullptr:
  /// reported (no-registry, those of LibraryTable::parse()).
  [[nodiscard]] static std::unique_ptr<FolderTable> open(const std::string& folder,
                                                         ProofPolicy policy,
                                                         Diagnostics& diagnostics);
  /// True if the folder has a table.
  static bool is_there(const std::string& folder);

 private:
  FolderTable(LibraryTable table, std::string place, ProofPolicy policy)
      : TableProvider(std::move(table), std::move(place)), policy_(policy) {}

  RowPlan plan_of(const LibraryRow& row, const PlanRequest& request,
                  Diagnostics& diagnostics) override;
  std::string name_of(const LibraryRow& row, const LibraryCall& call) const override;
  [[nodiscard]] bool check_files(Diagnostics& diagnostics) const;
  [[nodiscard]] bool check_plan(const CheckedPlan& plan, const PlanRequest& request,
                                Diagnostics& diagnostics) const;

  const ProofPolicy policy_;
  std::mutex mutex_;
  /// By name of the file, and nodes.
  std::map<std::pair<std::string, uint32_t>, std::shared_ptr<const CheckedPlan>> plans_;
};

}  // namespace mscclc
