#include "tools/commands/library/registry_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/report/summary.h"

namespace mscclc {
namespace {

std::string types_text(const std::vector<Dtype>& dtypes) {
  std::string text;
  for (const Dtype t : dtypes) text += fmt::format("{}{}", text.empty() ? "" : " ", info(t).name);
  return text;
}

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

/// "sums in rank order, rounded once"
std::string class_text(const Proof& proof) {
  const bool once = proof.rounding == Rounding::once || proof.orders.exact;
  return sums_text(proof) + (once ? ", rounded once" : "");
}

/// The same calls, whatever type, size and contract.
bool same_kind(LibraryCall a, const LibraryCall& b) {
  a.dtype = b.dtype;
  a.bytes = b.bytes;
  a.order = b.order;
  return a == b;
}

void add(std::vector<UnservedCalls>& all, const UnservedCalls& one, Dtype dtype) {
  const auto alike = [&](const UnservedCalls& u) {
    return same_kind(u.call, one.call) && u.min == one.min && u.max == one.max &&
           u.plan == one.plan;
  };
  auto found = std::ranges::find_if(all, alike);
  if (found == all.end()) found = all.insert(all.end(), one);
  found->dtypes.push_back(dtype);
}

}  // namespace

std::string sums_table(std::span<const SummingPlan> plans, SumOrder order) {
  struct Class {
    std::string text;
    std::vector<std::string> files;
  };
  std::vector<Class> classes;
  for (const SummingPlan& plan : plans) {
    std::string text = class_text(plan.proof) + passed_over(plan, order);
    auto found = std::ranges::find(classes, text, &Class::text);
    if (found == classes.end()) found = classes.insert(classes.end(), {std::move(text), {}});
    found->files.push_back(plan.file);
  }
  std::string table = fmt::format("sums of {} plan{}, for calls under '{}':\n", plans.size(),
                                  plans.size() == 1 ? "" : "s", name(order));
  for (const Class& c : classes) {
    table += fmt::format("  {}: {}\n", c.text, c.files.size());
    for (const std::string& file : c.files) table += fmt::format("    {}\n", file);
  }
  return table;
}

std::vector<UnservedCalls> unserved(const Coverage& any, const Coverage& under) {
  std::vector<UnservedCalls> all;
  for (const CoveredCalls& calls : any.calls) {
    for (const Dtype dtype : calls.dtypes) {
      const auto strict = std::ranges::find_if(under.calls, [&](const CoveredCalls& c) {
        return same_kind(c.call, calls.call) &&
               std::ranges::find(c.dtypes, dtype) != c.dtypes.end();
      });
      if (strict == under.calls.end()) continue;
      for (const CoveredSizes& served : calls.sizes) {
        for (const CoveredSizes& s : strict->sizes) {
          const uint64_t min = std::max(served.min, s.min), max = std::min(served.max, s.max);
          if (served.plan.empty() || !s.plan.empty() || min > max) continue;
          add(all, {calls.call, {}, min, max, served.plan}, dtype);
        }
      }
    }
  }
  return all;
}

std::string unserved_text(std::span<const UnservedCalls> calls, SumOrder order) {
  if (calls.empty()) {
    return fmt::format("all calls that have a plan have one under '{}'\n", name(order));
  }
  std::string text = fmt::format("calls that have a plan, but none under '{}':\n", name(order));
  for (const UnservedCalls& u : calls) {
    text += fmt::format("  {}: {}, {}: under 'any' {}\n", calls_text(u.call), types_text(u.dtypes),
                        sizes_text(u.min, u.max), u.plan);
  }
  return text;
}

}  // namespace mscclc
