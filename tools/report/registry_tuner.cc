#include "tools/report/registry_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "ir/support/result.h"

namespace mscclc {
namespace {

/// Calls that a line cannot distinguish.
using Alike = std::vector<const CoveredCalls*>;

bool one_line_is_for(const LibraryCall& a, const LibraryCall& b) {
  return a.kind == b.kind && a.ranks == b.ranks && a.nodes == b.nodes;
}

std::vector<Alike> group(const Coverage& coverage) {
  std::vector<Alike> groups;
  for (const CoveredCalls& calls : coverage.calls) {
    const auto found = std::ranges::find_if(
        groups, [&](const Alike& g) { return one_line_is_for(g[0]->call, calls.call); });
    if (found == groups.end()) {
      groups.push_back({&calls});
    } else {
      found->push_back(&calls);
    }
  }
  return groups;
}

/// Why no line can be for such calls.
std::optional<Error> why_none(CollectiveKind kind) {
  if (has_root(kind)) return Error{"a plan serves one root, and lines name none"};
  const bool known = kind == CollectiveKind::allreduce || kind == CollectiveKind::allgather ||
                     kind == CollectiveKind::reducescatter;
  if (known) return std::nullopt;
  return Error{"NCCL's tuner files do not know it"};
}

const std::string& plan_at(const CoveredCalls& calls, uint64_t bytes) {
  const auto after =
      std::ranges::find_if(calls.sizes, [&](const CoveredSizes& s) { return bytes <= s.max; });
  return after->plan;
}

/// The plan of all of them; nullopt: they have several.
std::optional<std::string> plan_of_all(const Alike& calls, uint64_t bytes) {
  const std::string& first = plan_at(*calls[0], bytes);
  const auto same = [&](const CoveredCalls* c) { return plan_at(*c, bytes) == first; };
  return std::ranges::all_of(calls, same) ? std::optional(first) : std::nullopt;
}

/// Sizes from which on something else is picked for some of them.
std::set<uint64_t> begins(const Alike& calls) {
  std::set<uint64_t> all;
  for (const CoveredCalls* c : calls) {
    for (const CoveredSizes& s : c->sizes) all.insert(s.min);
  }
  return all;
}

class Writer {
 public:
  TunerChoices run(const Coverage& coverage) {
    for (const Alike& calls : group(coverage)) {
      if (const auto why = why_none(calls[0]->call.kind)) {
        leave_out(calls, 0, ~uint64_t{0}, why->text());
      } else {
        add(calls);
      }
    }
    return std::move(made_);
  }

 private:
  void add(const Alike& calls) {
    const std::set<uint64_t> sizes = begins(calls);
    for (auto at = sizes.begin(); at != sizes.end();) {
      const auto plan = plan_of_all(calls, *at);
      auto next = std::next(at);
      while (next != sizes.end() && plan_of_all(calls, *next) == plan) ++next;
      const uint64_t max = next == sizes.end() ? ~uint64_t{0} : *next - 1;
      if (plan && !plan->empty()) {
        add_line(calls, *at, max, *plan);
      } else {
        leave_out(calls, *at, max, plan ? "no plan" : "the plan depends on type or placement");
      }
      at = next;
    }
  }

  void add_line(const Alike& calls, uint64_t min, uint64_t max, const std::string& plan) {
    made_.lines.push_back({.kind = calls[0]->call.kind,
                           .min = min,
                           .max = max,
                           .algorithm = plan,
                           .nodes = calls[0]->call.nodes,
                           .ranks = calls[0]->call.ranks});
  }

  void leave_out(const Alike& calls, uint64_t min, uint64_t max, const std::string& why) {
    const LibraryCall& call = calls[0]->call;
    made_.left_out.push_back(fmt::format("{} over {} ranks on {} node{}, {}: {}", name(call.kind),
                                         call.ranks, call.nodes, call.nodes == 1 ? "" : "s",
                                         sizes_text(min, max), why));
  }

  TunerChoices made_;
};

}  // namespace

TunerChoices tuner_choices(const Coverage& coverage) { return Writer().run(coverage); }

}  // namespace mscclc
