#include "tools/commands/library/registry_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/report/summary.h"

namespace mscclc {
namespace {

/// Do the rows of a table that pick it, if there is one, say that it keeps an order?
bool has_row(const SummingPlan& plan, SumOrder order) {
  return plan.rows.empty() ||
         std::ranges::any_of(plan.rows, [&](SumOrder kept) { return serves(kept, order); });
}

/// ", passed over", ", passed over for f16 bf16 …, which it rounds on the way", or "", if calls of
/// every type may get it.
std::string passed_over(const SummingPlan& plan, SumOrder order) {
  if (!plan.by_name) return ", of no call by name";
  LibraryCall call = plan.call;
  call.order = order;
  std::vector<Dtype> over;
  size_t floats = 0;
  for (const DtypeInfo& type : dtype_table()) {
    call.dtype = type.dtype;
    if (!order_matters(call)) continue;
    ++floats;
    if (!keeps_order(plan.proof, call)) over.push_back(type.dtype);
  }
  if (floats == 0) return "";
  if (over.size() == floats) return ", passed over";
  if (!has_row(plan, order)) {
    return fmt::format(", passed over, as no row of it says '{}'", name(order));
  }
  return over.empty()
             ? ""
             : fmt::format(", passed over for {}, which it rounds on the way", types_text(over));
}

/// The strongest contract below `order` under which calls get a plan that they get under `any`.
SumOrder served_under(std::span<const SummingPlan> plans, const std::string& file, LibraryCall call,
                      SumOrder order) {
  const auto plan = std::ranges::find(plans, file, &SummingPlan::file);
  while (order != SumOrder::any) {
    call.order = order = static_cast<SumOrder>(static_cast<int>(order) - 1);
    if (plan != plans.end() && has_row(*plan, order) && keeps_order(plan->proof, call)) break;
  }
  return order;
}

/// The same calls, whatever type, size and contract.
bool same_kind(LibraryCall a, const LibraryCall& b) {
  a.dtype = b.dtype;
  a.bytes = b.bytes;
  a.order = b.order;
  return a == b;
}

}  // namespace

std::string sums_table(std::span<const SummingPlan> plans, SumOrder order) {
  std::map<std::string, std::vector<std::string>> classes;  // "sums in rank order, rounded once"
  for (const SummingPlan& plan : plans) {
    const bool once = plan.proof.rounding == Rounding::once || plan.proof.orders.exact;
    classes[sums_text(plan.proof) + (once ? ", rounded once" : "") + passed_over(plan, order)]
        .push_back(plan.file);
  }
  std::string table = fmt::format("sums of {} plan{}, for calls under '{}':\n", plans.size(),
                                  plans.size() == 1 ? "" : "s", name(order));
  for (const auto& [text, files] : classes) {
    table += fmt::format("  {}: {}\n    {}\n", text, files.size(), fmt::join(files, "\n    "));
  }
  return table;
}

std::string expressions_table(std::span<const SummingPlan> plans) {
  std::map<std::string, std::vector<std::string>> classes;
  for (const SummingPlan& plan : plans) {
    const std::string& sums = plan.sums.digest;  // of what has none, each plan is a class
    const std::string what = fmt::format("  {}\n{}", calls_text(plan.call), plan.sums.text("    "));
    classes[what + (sums.empty() ? plan.file : sums)].push_back(plan.file);
  }
  std::string table = fmt::format("what the sums are: {} class{}\n", classes.size(),
                                  classes.size() == 1 ? "" : "es");
  for (const auto& [key, files] : classes) {
    table += fmt::format("{}      {}\n", key.substr(0, key.rfind('\n') + 1),
                         fmt::join(files, "\n      "));
  }
  return table;
}

std::string unserved_text(const Coverage& any, const Coverage& under,
                          std::span<const SummingPlan> sums, SumOrder order) {
  std::map<std::string, std::vector<Dtype>> lines;  // of types that are served alike
  const auto compare = [&](const CoveredCalls& calls, Dtype dtype, const CoveredCalls& strict) {
    for (const CoveredSizes& served : calls.sizes) {
      for (const CoveredSizes& s : strict.sizes) {
        const uint64_t min = std::max(served.min, s.min), max = std::min(served.max, s.max);
        if (served.plan.empty() || !s.plan.empty() || min > max) continue;
        LibraryCall call = calls.call;
        call.dtype = dtype;
        lines[fmt::format("{}, {}: under '{}' {}", calls_text(call), sizes_text(min, max),
                          name(served_under(sums, served.plan, call, order)), served.plan)]
            .push_back(dtype);
      }
    }
  };
  for (const CoveredCalls& calls : any.calls) {
    for (const CoveredCalls& strict : under.calls) {
      if (!same_kind(strict.call, calls.call)) continue;
      for (const Dtype dtype : calls.dtypes) {
        if (std::ranges::count(strict.dtypes, dtype) != 0) compare(calls, dtype, strict);
      }
    }
  }
  std::string text;
  for (const auto& [line, dtypes] : lines) {
    text += fmt::format("  {}, for {}\n", line, types_text(dtypes));
  }
  if (text.empty()) return "";
  return fmt::format("calls that have a plan, but none under '{}':\n{}", name(order), text);
}

}  // namespace mscclc
