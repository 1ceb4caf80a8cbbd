#include "runtime/doors/nccl/variables/variables.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostics/first_message.h"
#include "ir/diagnostics/printable.h"
#include "runtime/doors/nccl/variables/config_files.h"
#include "runtime/doors/nccl/variables/translate.h"

namespace mscclc::nccl {
namespace {

constexpr NcclVariable kTable[] = {
#define READ(name) {#name, VariableUse::read, "", "", ""},
#define MAPPED(name, ours, by, remark) {#name, VariableUse::mapped, #ours, "", remark},
#define WARNED(name, usual, why) {#name, VariableUse::warned, "", usual, why},
#define LEFT(name) {#name, VariableUse::left, "", "", ""},
#include "runtime/doors/nccl/variables/nccl_variables.def"
#undef READ
#undef MAPPED
#undef WARNED
#undef LEFT
};

/// Which translation a mapped variable has.
std::string_view translation_name(std::string_view variable) {
  struct Row {
    std::string_view name, by;
  };
  constexpr Row kRows[] = {
#define READ(name)
#define MAPPED(name, ours, by, remark) {#name, #by},
#define WARNED(name, usual, why)
#define LEFT(name)
#include "runtime/doors/nccl/variables/nccl_variables.def"
#undef READ
#undef MAPPED
#undef WARNED
#undef LEFT
  };
  const auto* const row = std::ranges::find(kRows, variable, &Row::name);
  return row == std::end(kRows) ? "" : row->by;
}

const VariableInfo* row_of(std::string_view name) {
  const auto table = variable_table();
  const auto row = std::ranges::find(table, name, &VariableInfo::name);
  return row == table.end() ? nullptr : &*row;
}

/// Why a variable of ours cannot have this value; empty: it can.
std::string refusal(const VariableInfo& ours, const std::string& value) {
  Diagnostics found;
  const Environment environment(Environment::Values{{std::string(ours.name), value}});
  if (ours.kind == VariableKind::count || ours.kind == VariableKind::seconds) {
    (void)environment.number(ours.variable, found);
  } else {
    (void)environment.text(ours.variable, found);
  }
  return found.has_errors() ? first_message(found) : "";
}

/// Why the value of a variable that is read as it is counts as not set; empty: it does not.
std::string refusal(const NcclVariable& row, std::string_view value) {
  const VariableInfo& read = *row_of(row.name);
  if (read.variable == Variable::NCCL_CTA_POLICY) {
    return value.empty() || read_cta_policy(value)
               ? ""
               : "known are DEFAULT, EFFICIENCY and ZERO, which '|' joins, and 0 to 3";
  }
  return read.kind == VariableKind::count ? refusal(read, std::string(value)) : "";
}

struct Mapping {
  std::string value;  ///< of ours; empty: there is none
  std::string wrong;  ///< why a value that is set maps to nothing
};
Mapping mapping(const NcclVariable& row, const Environment::Values& values) {
  const std::string_view set = value_of(values, row.name);
  if (set.empty()) return {};
  const auto made = translation(translation_name(row.name))(set, values);
  if (!made) return {};
  Mapping out{.value = *made, .wrong = refusal(*row_of(row.ours), *made)};
  if (!out.wrong.empty()) out.value.clear();
  return out;
}

/// Whether a variable that others stand for is set: of NCCL's own only a value that it takes
/// counts.
bool is_set(const Environment::Values& values, std::string_view name) {
  const std::string_view value = value_of(values, name);
  const bool of_nccl = name.starts_with("NCCL_");
  return !value.empty() && !(of_nccl && !refusal(*row_of(name), std::string(value)).empty());
}

/// The rows whose variables give a value to one of ours, which is not set itself.
std::vector<const NcclVariable*> rows_in_force(const Environment::Values& values) {
  std::vector<const NcclVariable*> rows;
  for (const NcclVariable& row : kTable) {
    if (row.use != VariableUse::mapped || is_set(values, row.ours)) continue;
    const auto same = [&](const NcclVariable* other) { return other->ours == row.ours; };
    if (std::ranges::none_of(rows, same) && !mapping(row, values).value.empty()) {
      rows.push_back(&row);
    }
  }
  return rows;
}

Environment::Values completed(Environment::Values values) {
  complete(values);
  return values;
}

}  // namespace

std::span<const NcclVariable> nccl_variables() { return kTable; }

Environment::Values set_values() {
  Environment::Values values = Environment::values_of_process();
  take_files(values);
  return values;
}

void complete(Environment::Values& values) {
  take_files(values);
  for (const NcclVariable* row : rows_in_force(values)) {
    values[std::string(row->ours)] = mapping(*row, values).value;
  }
}

std::vector<std::string> warnings_of(const Environment::Values& set) {
  std::vector<std::string> out;
  const bool verbs = value_of(completed(set), "MSCCLC_LANE") == "verbs";
  for (const NcclVariable& row : kTable) {
    const std::string_view value = value_of(set, row.name);
    if (row.use == VariableUse::read) {
      const std::string wrong = refusal(row, value);
      if (wrong.empty()) continue;
      out.push_back(
          fmt::format("{} is {}, which counts as not set: {}", row.name, quoted(value), wrong));
    } else if (row.use == VariableUse::mapped && !is_set(set, row.ours)) {
      const Mapping made = mapping(row, set);
      if (made.wrong.empty()) continue;
      out.push_back(fmt::format("{} is {}, which counts as not set for plans: {}", row.name,
                                quoted(value), made.wrong));
    } else if (row.use == VariableUse::warned && !value.empty() && value != row.usual &&
               (verbs || !row.name.starts_with("NCCL_IB_"))) {
      out.push_back(
          fmt::format("{} has no effect on calls that plans serve: {}", row.name, row.remark));
    }
  }
  return out;
}

std::vector<std::string> origins(const Environment::Values& set) {
  std::vector<std::string> out;
  for (const NcclVariable* row : rows_in_force(set)) {
    out.push_back(fmt::format("{}={} ({})", row->ours, mapping(*row, set).value, row->name));
  }
  return out;
}

std::string origins_in(std::string_view text, const Environment::Values& set) {
  std::string out;
  for (const NcclVariable* row : rows_in_force(set)) {
    if (text.find(row->ours) == std::string_view::npos) continue;
    out += fmt::format(" ({} is {} here)", row->ours, row->name);
  }
  return out;
}

std::optional<int> cta_policy(const Environment& environment) {
  return read_cta_policy(environment.raw(Variable::NCCL_CTA_POLICY));
}

bool forbids_peers(const Environment& environment) {
  return read_number(environment.raw(Variable::NCCL_P2P_DISABLE)) == 1 ||
         is_level_none(environment.raw(Variable::NCCL_P2P_LEVEL));
}

}  // namespace mscclc::nccl
