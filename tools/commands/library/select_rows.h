// What `mscclc select` says of collectives with a function of their rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plans/format/row_table.h"
#include "runtime/api/plan_provider.h"

namespace mscclc {

struct RowSelection {
  RowCall call;                  ///< its rows do not count where there are none
  std::optional<uint64_t> rows;  ///< nullopt: all
  std::string library;           ///< --library
  bool why = false;
};

/// Is it the name of such a collective?
bool is_of_rows(const std::string& name);
/// Prints what is picked; the exit code.
int select_rows(const RowSelection& selection);

/// The plans that were passed over, in groups by the reason: first those that would do, too, then
/// those that are for another size, then the smaller groups.
std::string reasons_text(const std::vector<PassedOver>& passed_over);

}  // namespace mscclc
