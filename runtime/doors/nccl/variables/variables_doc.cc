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

}  // namespace

std::string variables_table() {
  std::string out = "| variable | for plans | |\n|---|---|---|\n";
  std::vector<std::string> left;
  for (const NcclVariable& row : nccl_variables()) {
    if (row.use == VariableUse::left) {
      left.push_back(fmt::format("`{}`", row.name));
    } else {
      out += fmt::format("| `{}` | {} |\n", row.name, effect(row));
    }
  }
  return fmt::format("{}\nLeft to NVIDIA's library: {}.\n", out, fmt::join(left, ", "));
}

std::string with_variables_table(const std::string& page) {
  const size_t begin = page.find(kBegin), end = page.find(kEnd, begin);
  if (begin == std::string::npos || end == std::string::npos) return "";
  return page.substr(0, begin + kBegin.size()) + variables_table() + page.substr(end);
}

}  // namespace mscclc::nccl
