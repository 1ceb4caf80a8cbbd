#include "runtime/doors/nccl/variables/variables_doc.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "runtime/doors/nccl/variables/variables.h"

namespace mscclc::nccl {
namespace {

constexpr std::string_view kBegin =
    "<!-- table: bazel run //runtime/doors/nccl/variables:page -->\n";
constexpr std::string_view kEnd = "<!-- end of table -->";

std::string effect(const NcclVariable& row) {
  switch (row.use) {
    case VariableUse::mapped:
      return fmt::format("`{}` | {}", row.ours, row.remark);
    case VariableUse::warned:
      return fmt::format("warned of | {}", row.remark);
    case VariableUse::read:
    case VariableUse::left:
      break;
  }
  return "";
}

/// "`A`, `B`": those that plans use so.
std::string names(VariableUse use) {
  std::vector<std::string> all;
  for (const NcclVariable& row : nccl_variables()) {
    if (row.use == use) all.push_back(fmt::format("`{}`", row.name));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string variables_table() {
  std::string out = "| variable | for plans | |\n|---|---|---|\n";
  for (const NcclVariable& row : nccl_variables()) {
    if (const std::string what = effect(row); !what.empty()) {
      out += fmt::format("| `{}` | {} |\n", row.name, what);
    }
  }
  return fmt::format(
      "Read, as "
      "[environment.md](environment.md#set-by-you-for-nccl-and-read-by-mscclcs-own-libncclso2) "
      "says: {}.\n\n{}",
      names(VariableUse::read), out);
}

std::string variables_left() { return names(VariableUse::left) + ".\n"; }

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
