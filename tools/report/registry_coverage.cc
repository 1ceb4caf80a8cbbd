#include "tools/report/registry_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace mscclc {
namespace {

constexpr const char* kGoesFirst = "goes first";
constexpr const char* kSums = "its sums ";  ///< what begins a reason about the order of sums

/// The same calls, whatever size, type and placement.
bool alike(const LibraryCall& a, const LibraryCall& b) {
  return a.kind == b.kind && a.ranks == b.ranks && a.nodes == b.nodes && a.root == b.root &&
         a.shift == b.shift;
}

/// A size from `min` to `max` that messages of any type and of so many ranks can have; nothing:
/// there is none.
std::optional<uint64_t> some_size(uint64_t min, uint64_t max, uint32_t ranks) {
  const uint64_t unit = uint64_t{16} * ranks;
  if (min == 0) return 0;
  if (min > ~uint64_t{0} - unit) return std::nullopt;
  const uint64_t least = (min + unit - 1) / unit * unit;
  return least <= max ? std::optional(least) : std::nullopt;
}

class Surveyor {
 public:
  Surveyor(PlanProvider& registry, const std::vector<CoveredPlan>& plans, Diagnostics& diagnostics)
      : registry_(registry), plans_(plans), diagnostics_(diagnostics) {}

  Coverage run() {
    std::vector<LibraryCall> seen;
    for (const CoveredPlan& plan : plans_) {
      const auto known = [&](const LibraryCall& c) { return alike(c, plan.call); };
      if (std::ranges::any_of(seen, known)) continue;
      seen.push_back(plan.call);
      survey(plan.call);
    }
    for (const CoveredPlan& plan : plans_) {
      const bool named = std::ranges::find(coverage_.never, plan.name) != coverage_.never.end();
      if (!picked_.contains(plan.name) && !named) coverage_.never.push_back(plan.name);
    }
    return std::move(coverage_);
  }

 private:
  void survey(LibraryCall call) {
    std::set<uint64_t> begins = {0};
    for (const CoveredPlan& plan : plans_) {
      if (alike(plan.call, call)) begins.insert(plan.begins.begin(), plan.begins.end());
    }
    const std::vector<uint64_t> list(begins.begin(), begins.end());
    for (const bool in_place : {false, true}) {
      if (in_place && !info(call.kind).can_alias) continue;
      call.in_place = in_place;
      call = as_jobs_ask(call);
      if (call.in_place != in_place) continue;  // both are asked for at once
      const size_t first = coverage_.calls.size();
      for (const DtypeInfo& type : dtype_table()) {
        call.dtype = type.dtype;
        add(call, sizes(call, list), first);
      }
    }
  }

  /// To the calls of the same kind that are served alike, from `first` on.
  void add(const LibraryCall& call, std::vector<CoveredSizes> sizes, size_t first) {
    const auto twin =
        std::find_if(coverage_.calls.begin() + static_cast<ptrdiff_t>(first), coverage_.calls.end(),
                     [&](const CoveredCalls& c) { return c.sizes == sizes; });
    if (twin != coverage_.calls.end()) {
      twin->dtypes.push_back(call.dtype);
    } else {
      coverage_.calls.push_back({call, {call.dtype}, std::move(sizes)});
    }
  }

  std::vector<CoveredSizes> sizes(LibraryCall call, const std::vector<uint64_t>& begins) {
    std::vector<CoveredSizes> all;
    for (size_t i = 0; i < begins.size(); ++i) {
      CoveredSizes now{begins[i], i + 1 < begins.size() ? begins[i + 1] - 1 : ~uint64_t{0}, {}, {}};
      const auto bytes = some_size(now.min, now.max, call.ranks);
      if (!bytes && all.empty()) continue;
      if (bytes) {
        call.bytes = *bytes;
        ask(call, now);
      }
      if (!bytes || (!all.empty() && now.plan == all.back().plan &&
                     now.others == all.back().others && now.why == all.back().why)) {
        all.back().max = now.max;
      } else {
        all.push_back(std::move(now));
      }
    }
    return all;
  }

  void ask(const LibraryCall& call, CoveredSizes& now) {
    std::vector<PassedOver> passed_over;
    const auto picked = registry_.pick({.call = call}, &passed_over, diagnostics_);
    if (picked != nullptr) {
      now.plan = picked->name;
      picked_.insert(picked->name);
    }
    // In registered buffers, calls need not be made of pieces.
    std::vector<PassedOver> ignored;
    const auto at_once = registry_.pick({.call = call, .registered = true}, &ignored, diagnostics_);
    if (at_once != nullptr) picked_.insert(at_once->name);
    for (const PassedOver& p : passed_over) {
      const bool known =
          p.name == now.plan || std::ranges::find(now.others, p.name) != now.others.end();
      if (p.why.ends_with(kGoesFirst) && !known) now.others.push_back(p.name);
      const bool first = picked == nullptr && now.why.empty();
      if (first && p.why.starts_with(kSums)) now.why = p.name + ": " + p.why;
    }
  }

  PlanProvider& registry_;
  const std::vector<CoveredPlan>& plans_;
  Diagnostics& diagnostics_;
  Coverage coverage_;
  std::set<std::string> picked_;
};

template <class F>
size_t count_sizes(const Coverage& coverage, const F& is_such) {
  size_t count = 0;
  for (const CoveredCalls& calls : coverage.calls) {
    count += static_cast<size_t>(std::ranges::count_if(calls.sizes, is_such));
  }
  return count;
}

}  // namespace

std::string types_text(const std::vector<Dtype>& dtypes) {
  if (dtypes.size() == dtype_table().size()) return "all types";
  std::string text;
  for (const Dtype t : dtypes) text += fmt::format("{}{}", text.empty() ? "" : " ", info(t).name);
  return text;
}

size_t Coverage::gaps() const {
  return count_sizes(*this, [](const CoveredSizes& s) { return s.plan.empty(); });
}

size_t Coverage::overlaps() const {
  return count_sizes(*this, [](const CoveredSizes& s) { return !s.others.empty(); });
}

Coverage coverage_of(PlanProvider& registry, const std::vector<CoveredPlan>& plans,
                     Diagnostics& diagnostics) {
  return Surveyor(registry, plans, diagnostics).run();
}

std::string calls_text(const LibraryCall& call) {
  std::string text = fmt::format("{} over {} ranks", name(call.kind), call.ranks);
  if (call.nodes > 1) text += fmt::format(" on {} nodes", call.nodes);
  if (has_root(call.kind)) text += fmt::format(", root {}", call.root);
  if (call.kind == CollectiveKind::sendrecv) text += fmt::format(", shift {}", call.shift);
  return text + placement_text(call);
}

std::string sizes_text(uint64_t min, uint64_t max) {
  return max == ~uint64_t{0} ? fmt::format("{} bytes and more", min)
                             : fmt::format("{} to {} bytes", min, max);
}

std::string coverage_table(const Coverage& coverage) {
  std::string text;
  for (const CoveredCalls& calls : coverage.calls) {
    text += fmt::format("{}: {}\n", calls_text(calls.call), types_text(calls.dtypes));
    for (const CoveredSizes& s : calls.sizes) {
      text += fmt::format("  {:<32}{}\n", sizes_text(s.min, s.max),
                          s.plan.empty() ? "GAP: no plan" : s.plan);
      if (!s.why.empty()) text += fmt::format("{:34}{}\n", "", s.why);
      for (const std::string& other : s.others) text += fmt::format("{:34}also {}\n", "", other);
    }
  }
  for (const std::string& plan : coverage.never) text += fmt::format("never picked: {}\n", plan);
  text += fmt::format("gaps: {}, overlaps: {}, never picked: {}\n", coverage.gaps(),
                      coverage.overlaps(), coverage.never.size());
  return text;
}

}  // namespace mscclc
