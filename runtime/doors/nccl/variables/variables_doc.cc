#include "runtime/doors/nccl/variables/variables_doc.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "runtime/doors/nccl/variables/variables.h"

namespace mscclc::nccl {
namespace {

constexpr std::string_view kBegin =
    "<!-- table: bazel run //runtime/doors/nccl/variables:page -->\n";
constexpr std::string_view kEnd = "<!-- end of table -->";

std::string_view help_of(std::string_view name) {
  const auto table = variable_table();
  const auto row = std::ranges::find(table, name, &VariableInfo::name);
  return row == table.end() ? "" : row->help;
}

std::string effect(const NcclVariable& row) {
  switch (row.use) {
    case VariableUse::read:
      return fmt::format("read | {}", help_of(row.name));
    case VariableUse::mapped:
      return fmt::format("`{}` | {}", row.ours, row.remark);
    case VariableUse::warned:
      return fmt::format("warned of | {}", row.remark);
    case VariableUse::left:
      break;
  }
  return "";
}

std::string variables_table() {
  std::string out = "| variable | for plans | |\n|---|---|---|\n";
  for (const NcclVariable& row : nccl_variables()) {
    if (row.use == VariableUse::left) continue;
    out += fmt::format("| `{}` | {} |\n", row.name, effect(row));
  }
  return out;
}

std::string variables_left() {
  std::vector<std::string> left;
  for (const NcclVariable& row : nccl_variables()) {
    if (row.use == VariableUse::left) left.push_back(fmt::format("`{}`", row.name));
  }
  return fmt::format("{}.\n", fmt::join(left, ", "));
}

}  // namespace

std::span<const GeneratedPart> generated_parts() {
  static constexpr GeneratedPart kParts[] = {{"docs/nccl.md", variables_table},
                                             {"docs/design/nccl.md", variables_left}};
  return kParts;
}

std::string with_generated(const std::string& page, const GeneratedPart& part) {
  const size_t begin = page.find(kBegin), end = page.find(kEnd, begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  return page.substr(0, begin + kBegin.size()) + part.text() + page.substr(end);
}

}  // namespace mscclc::nccl
