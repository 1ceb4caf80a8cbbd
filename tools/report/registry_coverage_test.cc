// What a provider serves, found by asking it: gaps, overlaps, plans that no call gets.
#include "tools/report/registry_coverage.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

/// Plans by size alone: the first that fits is picked.
struct ByRange : PlanProvider {
  struct SizedPlan {
    const char* name;
    uint64_t min, max;
  };
  std::vector<SizedPlan> entries;

  std::shared_ptr<const PickedPlan> pick(const PlanRequest& request,
                                         std::vector<PassedOver>* passed_over,
                                         Diagnostics&) override {
    std::shared_ptr<PickedPlan> picked;
    for (const SizedPlan& e : entries) {
      const bool fits = e.min <= request.call.bytes && request.call.bytes <= e.max &&
                        request.call.dtype != Dtype::u8;
      if (fits && picked == nullptr) {
        picked = std::make_shared<PickedPlan>();
        picked->name = e.name;
      } else {
        passed_over->push_back({e.name, fits ? "'x' goes first" : "it is for other sizes"});
      }
    }
    return picked;
  }
};

constexpr uint64_t kNoEnd = ~uint64_t{0};

Coverage coverage(std::vector<ByRange::SizedPlan> entries) {
  ByRange provider;
  provider.entries = std::move(entries);
  std::vector<CoveredPlan> plans;
  for (const auto& e : provider.entries) {
    CoveredPlan plan{e.name, {CollectiveKind::sendrecv, 2}, {e.min}};
    if (e.max != kNoEnd) plan.begins.push_back(e.max + 1);
    plans.push_back(plan);
  }
  Diagnostics diagnostics;
  return coverage_of(provider, plans, diagnostics);
}

}  // namespace

TEST_CASE("gaps, overlaps, and plans that are never picked") {
  const Coverage found = coverage(
      {{"small", 0, 1023}, {"wide", 512, 4095}, {"large", 8192, kNoEnd}, {"hidden", 10000, 20000}});
  REQUIRE(found.calls.size() == 2);  // nothing serves u8
  CHECK(found.calls[0].sizes == std::vector<CoveredSizes>{{0, 511, "small", {}},
                                                          {512, 1023, "small", {"wide"}},
                                                          {1024, 4095, "wide", {}},
                                                          {4096, 8191, "", {}},
                                                          {8192, 9999, "large", {}},
                                                          {10000, 20000, "large", {"hidden"}},
                                                          {20001, kNoEnd, "large", {}}});
  CHECK(found.calls[1].dtypes == std::vector{Dtype::u8});
  CHECK(found.calls[1].sizes == std::vector<CoveredSizes>{{0, kNoEnd, "", {}}});
  CHECK(found.never == std::vector<std::string>{"hidden"});
  CHECK(found.gaps() == 2);
  CHECK(found.overlaps() == 2);
  const std::string table = coverage_table(found);
  CHECK_THAT(table, Catch::Contains("  4096 to 8191 bytes              GAP: no plan\n"));
  CHECK_THAT(table, Catch::Contains("                                  also wide\n"));
  CHECK_THAT(table, Catch::EndsWith("never picked: hidden\ngaps: 2, overlaps: 2, never picked: "
                                    "1\n"));
}

TEST_CASE("sizes that no message can have are no gap") {
  // Between 33 and 63 there is no multiple of 16 bytes for each of two ranks.
  const Coverage found = coverage({{"a", 0, 32}, {"b", 64, kNoEnd}});
  CHECK(found.calls[0].sizes == std::vector<CoveredSizes>{{0, 63, "a", {}}, {64, kNoEnd, "b", {}}});
  CHECK(found.never.empty());
}

TEST_CASE("the drawing has a bar for each stretch, and hatches gaps") {
  const Coverage found = coverage({{"a<b", 0, 1023}, {"large", 8192, kNoEnd}});
  const std::string svg = coverage_drawing(found, "plans & more");
  const auto count = [&](const std::string& what) {
    size_t n = 0;
    for (size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++n;
    return n;
  };
  CHECK(count("<title>") == 4);
  CHECK(count("fill=\"url(#gap)\"") == 2);
  CHECK(count("a&lt;b") == 1);
  CHECK(count("plans &amp; more") == 1);
  CHECK_THAT(svg, Catch::EndsWith("</svg>\n"));
}

}  // namespace mscclc
