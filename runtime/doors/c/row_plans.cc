// Plans of rows: those of the library by name and shape, and columns that a caller fixes.

#include <fmt/format.h>

#include <algorithm>

#include "ir/verify/row_faults.h"
#include "plans/format/embedded_library.h"
#include "plans/format/plan_json.h"
#include "plans/format/row_table.h"
#include "plans/format/target.h"
#include "runtime/doors/c/errors.h"
#include "runtime/doors/c/handles.h"
#include "runtime/doors/c/orders.h"
#include "runtime/doors/c/plan_text.h"
#include "runtime/support/environment/environment.h"

using namespace mscclc;
using namespace mscclc::capi;

namespace mscclc::capi {
namespace {

/// As many as NVLink joins, which all its programs need. To prove a plan takes time with the cube
/// of the ranks: for many more a caller would wait for hours.
constexpr uint32_t kMostRanks = 72;

std::optional<std::string> read_program_of_rows(const std::string& file) {
  const auto files = embedded_rows();
  const auto found = std::ranges::find(files, file, &LibraryFile::name);
  return found == files.end() ? std::nullopt : std::optional(std::string(found->text));
}

/// nullopt: MSCCLC_ORDER has a value that is none; reported.
std::optional<SumOrder> order_in_force(mscclc_order_t given, Diagnostics& diagnostics) {
  if (const auto order = order_of(given)) return order;
  return Environment::of_process().order(diagnostics);
}

mscclc_result_t give_plan(const RowEntry& entry, const RowCall& call, char** json) {
  const std::string file = entry.program + ".mscl";
  FrontEndOptions options{
      .defines = entry.defines(call), .read_file = read_program_of_rows, .relative_names = true};
  Sources sources;
  Diagnostics said;
  const FileId main = sources.add(file, read_program_of_rows(file).value());
  const auto plan = compile_to_json(sources, main, options, said);
  if (!plan) return fail(MSCCLC_NOT_PROVED, render_text(said, sources));
  *json = copy_text(*plan);
  return MSCCLC_SUCCESS;
}

}  // namespace
}  // namespace mscclc::capi

mscclc_result_t mscclc_row_plan(const char* name, uint32_t ranks, uint64_t columns, uint64_t rows,
                                mscclc_dtype_t dtype, mscclc_order_t order, char** json,
                                char** choice, uint64_t* most_rows) {
  return guarded([&] {
    if (json != nullptr) *json = nullptr;
    if (choice != nullptr) *choice = nullptr;
    const auto type = static_cast<int64_t>(dtype);
    if (name == nullptr || type < 0 || type >= static_cast<int64_t>(dtype_table().size())) {
      return refuse("mscclc_row_plan", "'name' is NULL, or 'dtype' is not a type");
    }
    if (!is_order(order)) return refuse("mscclc_row_plan", "'order' is none");
    if (ranks > kMostRanks) {
      return refuse(
          "mscclc_row_plan",
          fmt::format("plans of rows are for up to {} ranks, not {}", kMostRanks, ranks).c_str());
    }
    Diagnostics diagnostics;
    const auto wanted = order_in_force(order, diagnostics);
    if (!wanted) return fail(diagnostics);
    const RowCall call{name, ranks, columns, rows, static_cast<Dtype>(type), *wanted};
    if (!builtin_row_table().check(call, diagnostics)) return fail(diagnostics);
    const auto [entry, most] = builtin_row_table().choose(call);
    if (most_rows != nullptr) *most_rows = most;
    if (json != nullptr) {
      const auto result = give_plan(*entry, call, json);
      if (result != MSCCLC_SUCCESS) return result;
    }
    if (choice != nullptr) *choice = copy_text(entry->choice_text(call));
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_plan_columns(const char* json, size_t bytes, uint64_t columns,
                                    char** fixed) {
  return guarded([&] {
    if (fixed == nullptr) return refuse("mscclc_plan_columns", "'fixed' is NULL");
    *fixed = nullptr;
    if (json == nullptr) return refuse("mscclc_plan_columns", "'json' is NULL");
    Diagnostics diagnostics;
    auto program = read_plan({json, bytes}, "plan", diagnostics);
    const auto target = program ? find_target("sm_90", diagnostics) : std::nullopt;
    if (!target) return fail(diagnostics);
    if (const auto fault = fix_columns(*program, columns)) {
      return fail(MSCCLC_INVALID_ARGUMENT, fault->message);
    }
    const auto text = write_plan(*program, *target, diagnostics);
    if (!text) return fail(diagnostics);
    *fixed = copy_text(*text);
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}
