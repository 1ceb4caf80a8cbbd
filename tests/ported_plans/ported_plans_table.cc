// The table of docs/design/passes.md.
#include <fmt/format.h>

#include "tests/ported_plans/ported_plans.h"

namespace mscclc {
namespace {

constexpr std::string_view kBegin = "<!-- table: bazel run //tests/ported_plans:update -->\n";
constexpr std::string_view kEnd = "<!-- end of table -->\n";

std::string options_text(const PortedPlan& port) {
  std::string text;
  for (const auto& [name, value] : split_defines(port)) {
    text += fmt::format(" -D {}={}", name, value);
  }
  return text;
}

/// "3 · 2", MSCCL++'s and ours; bold where ours is larger.
template <typename T>
std::string both(T theirs, T ours, std::string_view format = "{}") {
  const std::string number = fmt::format(fmt::runtime(format), ours);
  return fmt::format("{} · {}", fmt::format(fmt::runtime(format), theirs),
                     ours > theirs ? "**" + number + "**" : number);
}

std::string remark(const PortedPlan& port) {
  const std::string_view between = port.excuse.empty() || port.remark.empty() ? "" : "; ";
  return fmt::format("{}{}{}", port.excuse, between, port.remark);
}

}  // namespace

Result<std::string> ported_plans_table() {
  std::string table =
      "| MSCCL++'s plan | our program | blocks | ops | synchronisations | scratch | remark |\n"
      "|---|---|--:|--:|--:|--:|---|\n";
  for (const PortedPlan& port : ported_plans()) {
    const PlanCost theirs = mscclpp_cost(port);
    const auto ours = our_cost(port);
    if (!ours) return ours.error();
    table += fmt::format("| {} | [{}](../../plans/{}.mscl){} | {} · {} | {} | {} | {} | {} |\n",
                         port.plan, port.program, port.program, options_text(port), theirs.blocks,
                         ours->blocks, both(theirs.ops, ours->ops), both(theirs.syncs, ours->syncs),
                         both(theirs.scratch, ours->scratch, "{:.3g}"), remark(port));
  }
  return table;
}

std::string with_table(const std::string& page, const std::string& table) {
  const size_t begin = page.find(kBegin), end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return page.substr(0, begin + kBegin.size()) + table + page.substr(end);
}

}  // namespace mscclc
