#include "passes/describe.h"

#include <fmt/format.h>

#include "ir/print.h"

namespace mscclc {

Span span_of(const Program& program, const Op& op) {
  if (op.locations.count == 0) return {};
  const Site& site = program.sites[program.locations[op.locations.first].site];
  return {.file = site.file, .line = site.line, .column = site.column};
}

std::string describe(const Program& program, uint32_t rank, const Op& op) {
  std::string text = fmt::format("'{}'", print_op(program, rank, op));
  if (op.block != kNone) text += fmt::format(" in tb {}", op.block);
  text += fmt::format(" of rank {}", rank);
  const std::string bindings = print_bindings(program, op);
  if (!bindings.empty()) text += fmt::format(" ({})", bindings);
  return text;
}

}  // namespace mscclc
