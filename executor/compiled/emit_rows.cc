#include "executor/compiled/emit_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "executor/rows/emit.h"

namespace mscclc {
namespace {

std::string function_name(uint32_t function, Dtype dtype) {
  return fmt::format("f{}_{}", function, info(dtype).name);
}

/// "{true, 2, 256}": a device::RowForm.
std::string form_text(const rows::Stored& stored, uint32_t columns, Dtype dtype) {
  const uint32_t bytes = rows::bytes_of(stored.type, dtype);
  const bool wide = stored.kind == rows::Kind::row || stored.kind == rows::Kind::columns;
  const uint64_t apart =
      rows::is_per_row(stored.kind) ? rows::bytes_of_row(stored, dtype, columns) : 0;
  return fmt::format("{{{}, {}, {}}}", wide, bytes, apart);
}

/// Columns of a thread where a function has no value for each column, and threads need not meet:
/// those of a group, or all; 0 of other functions.
uint32_t columns_apart(const rows::Function& function, uint32_t columns) {
  if (rows::meets_before_results(function)) return 0;
  uint32_t group = 0;
  for (const rows::Node& node : function.nodes) {
    if (node.spread == rows::Spread::columns || rows::is_reduction(node.op)) return 0;
    group = std::max(group, node.group);
  }
  for (const rows::Stored& output : function.outputs) {
    if (rows::spread_of(output.kind) == rows::Spread::columns) return 0;
    group = std::max(group, output.group);
  }
  return group == 0 ? columns : group;
}

/// What RowRegisters asks of a function.
std::string traits_text(const rows::Function& function, uint32_t number, uint32_t columns,
                        Dtype dtype) {
  std::string forms;
  const auto add = [&](const std::vector<rows::Stored>& all) {
    for (const rows::Stored& stored : all) {
      forms += (forms.empty() ? "" : ", ") + form_text(stored, columns, dtype);
    }
  };
  add(function.outputs);
  add(function.params);
  return fmt::format(
      "\ntemplate <>\n"
      "struct RowFunction{0}<Dtype::{1}> {{\n"
      "  static constexpr uint32_t kColumns = {2}, kResults = {3}, kValues = {4}, kApart = {7};\n"
      "  __device__ static constexpr RowForm form(uint32_t v) {{\n"
      "    constexpr RowForm all[] = {{{5}}};\n"
      "    return all[v];\n"
      "  }}\n"
      "  template <uint32_t kChunk, class Threads, class Row>\n"
      "  __device__ __forceinline__ static void run(Threads& threads, const Row& row) {{\n"
      "    row_functions::{6}<kChunk>(threads, row, kColumns);\n"
      "  }}\n"
      "}};\n",
      number, info(dtype).name, columns, function.outputs.size(),
      function.outputs.size() + function.params.size(), forms, function_name(number, dtype),
      columns_apart(function, columns));
}

std::set<uint32_t> functions_of(std::span<const CompiledShape> shapes) {
  std::set<uint32_t> functions;
  for (const CompiledShape& shape : shapes) {
    for (const CompiledCode& code : shape.codes()) {
      for (const CompiledStep& step : code.steps) {
        if (has_row_function(step)) functions.insert(step.function);
      }
    }
  }
  return functions;
}

}  // namespace

bool has_rows_of(const Program& program, Dtype dtype) {
  return rows::can_be_t(dtype) && program.granule(dtype) % 16 == 0;
}

std::string row_functions_text(const Program& program, std::span<const CompiledShape> shapes,
                               std::span<const Dtype> dtypes) {
  const std::set<uint32_t> functions = functions_of(shapes);
  if (functions.empty()) return "";
  std::string bodies, traits;
  for (const uint32_t f : functions) {
    traits += fmt::format("\ntemplate <Dtype T>\nstruct RowFunction{};\n", f);
    for (const Dtype dtype : dtypes) {
      if (!has_rows_of(program, dtype)) continue;
      bodies += "\n" + rows::emit(program.functions[f], dtype, function_name(f, dtype));
      traits += traits_text(program.functions[f], f, program.contract.columns, dtype);
    }
  }
  return "\nnamespace row_functions {\n\nusing namespace mscclc;\nusing namespace mscclc::rows;\n" +
         bodies +
         "\n}  // namespace row_functions\n\nnamespace {\n\nusing namespace mscclc;\n"
         "using namespace mscclc::device;\n" +
         traits + "\n}  // namespace\n";
}

bool has_row_function(const CompiledStep& step) {
  return info(step.kind).family == device::StepFamily::rows;
}

std::string row_step_text(const CompiledStep& step, uint32_t threads) {
  const std::string begins =
      step.kind == device::StepKind::apply
          ? "apply<"
          : fmt::format("sum_and_apply<StepKind::{}, ", info(step.kind).name);
  return fmt::format("{}RowFunction{}<Block::Sums::kType>, {}, ", begins, step.function, threads);
}

}  // namespace mscclc
