// Picks by a table (plans/format/library_table.h): the first row that fits and whose plan can serve
// the call. Where a row's plan comes from is the derived class's.
#pragma once

#include "plans/format/library_table.h"
#include "runtime/api/plan_provider.h"
#include "runtime/choice/registry/plan_facts.h"

namespace mscclc {

class TableProvider : public PlanProvider {
 public:
  /// `place`: of library.json, with a '/' at its end or "", for messages.
  TableProvider(LibraryTable table, std::string place)
      : table_(std::move(table)), place_(std::move(place)) {}

  std::shared_ptr<const PickedPlan> pick(const PlanRequest& request,
                                         std::vector<PassedOver>* passed_over,
                                         Diagnostics& diagnostics) final;

 protected:
  /// A row's plan, or why this machine cannot have it; neither: errors were reported.
  struct RowPlan {
    std::shared_ptr<const CheckedPlan> plan;
    std::optional<Error> problem = {};
  };

  const LibraryTable& table() const { return table_; }
  const std::string& place() const { return place_; }
  /// The largest message for which the table makes this choice, whatever type and placement.
  uint64_t max_bytes(const LibraryChoice& choice, const LibraryCall& call) const;

 private:
  /// The plan of a row that fits. From any threads at once.
  virtual RowPlan plan_of(const LibraryRow& row, const PlanRequest& request,
                          Diagnostics& diagnostics) = 0;
  /// What messages call a row's plan.
  virtual std::string name_of(const LibraryRow& row, const LibraryCall& call) const = 0;

  const LibraryTable table_;
  const std::string place_;
};

}  // namespace mscclc
