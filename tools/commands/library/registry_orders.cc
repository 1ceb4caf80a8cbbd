#include "tools/commands/library/registry_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/report/summary.h"

namespace mscclc {
namespace {

/// ", passed over", ", passed over for f16 bf16 …", or "", if calls of every type may get it.
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
    const bool in_row = plan.rows.empty() || std::ranges::any_of(plan.rows, [&](SumOrder kept) {
                          return serves(kept, order);
                        });
    if (!in_row || !keeps_order(plan.proof, call)) over.push_back(type.dtype);
  }
  if (over.empty()) return "";
  return over.size() == floats ? ", passed over" : ", passed over for " + types_text(over);
}

/// ", which keeps 'ranks'", or "" of a plan that is not among them.
std::string kept_text(std::span<const SummingPlan> plans, const std::string& file,
                      const LibraryCall& call) {
  const auto plan = std::ranges::find(plans, file, &SummingPlan::file);
  if (plan == plans.end()) return "";
  return fmt::format(", which keeps '{}'", name(strongest_order(plan->proof, call)));
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
    const std::string what = fmt::format("  {} over {} ranks\n{}", name(plan.call.kind),
                                         plan.call.ranks, plan.sums.text("    "));
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
        lines[fmt::format("{}, {}: under 'any' {}{}", calls_text(call), sizes_text(min, max),
                          served.plan, kept_text(sums, served.plan, call))]
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
