#include "tools/report/rows_text.h"

#include <fmt/format.h>

#include <vector>

#include "ir/program/applied.h"

namespace mscclc {
namespace {

/// As many contributions are all written; of more the first two and the last.
constexpr uint32_t kMaxWritten = 4;

std::string sum_text(const Program& program, const SumOrders& orders) {
  const uint32_t ranks = program.contract.ranks;
  std::vector<std::string> terms;
  for (uint32_t r = 0; r < ranks; ++r) {
    if (ranks > kMaxWritten && r >= 2 && r + 1 < ranks) continue;
    if (ranks > kMaxWritten && r + 1 == ranks) terms.emplace_back("…");
    terms.push_back(fmt::format("x{}", r));
  }
  if (orders.ranks) return fmt::format("{}", fmt::join(terms, " + "));
  const char* const how = orders.exact        ? "exact"
                          : orders.tree       ? "tree"
                          : orders.replicated ? "sum"
                                              : "some sum";
  return fmt::format("{}({})", how, fmt::join(terms, ", "));
}

}  // namespace

std::string rows_text(const Program& program, const Proof& proof) {
  const auto then = bind_then(program);
  if (!then) return "";
  const rows::Function& function = program.functions[then->function];
  std::vector<std::string> arguments, results;
  for (const uint32_t e : then->params) {
    arguments.push_back(e == kNone ? sum_text(program, proof.orders) : program.externals[e].name);
  }
  const std::string call = fmt::format("{}({})", function.name, fmt::join(arguments, ", "));
  results.push_back(fmt::format("output = {} of {}", function.outputs[then->output].name, call));
  for (size_t k = 0; k < then->results.size(); ++k) {
    const uint32_t e = then->results[k];
    if (e == kNone) continue;
    results.push_back(
        fmt::format("{} = {} of it", program.externals[e].name, function.outputs[k].name));
  }
  return fmt::format("{}", fmt::join(results, ", "));
}

}  // namespace mscclc
