// Tiny and random plans that are proved, as kernels: the simulator's bits, whatever runs first.
#include <catch2/catch.hpp>
#include <iostream>
#include <map>
#include <set>

#include "ir/support/sanitized.h"
#include "tests/compiled/on_host/kernels.h"
#include "tests/compiled/on_host/trial.h"

namespace mscclc {
namespace {

using testing::if_sanitized;

/// Every `step`-th plan that has kernels; returns how many plans were run by them.
size_t run_proved(const Tries& tries, size_t step = 1) {
  const std::vector<KernelPlan>& plans = proved_plans();
  size_t done = 0;
  for (size_t p = 0; p < plans.size(); p += step) {
    if (tries.mixed && !plans[p].program->functions.empty()) continue;
    if (!why_no_kernels(plans[p]).empty()) continue;
    KernelTrial trial(plans[p], p);
    trial.run(tries);
    CAPTURE(plans[p].name);
    CHECK(trial.kernels().taken() + trial.kernels().left() > 0);
    CHECK((tries.mixed || trial.kernels().taken() > 0));
    done += trial.kernels().taken() > 0 ? 1 : 0;
  }
  return done;
}

TEST_CASE("proved plans: the table holds their kernels, and no others") {
  std::set<std::string> expected;
  for (size_t p = 0; p < proved_plans().size(); ++p) {
    expected.merge(kernel_names(proved_plans()[p], kernel_digest(p)));
  }
  KernelTable table;
  add_all_kernels(table);
  CHECK(table.names() == expected);
}

TEST_CASE("proved plans: which have no kernels, and why") {
  std::map<std::string, size_t> why;
  for (const KernelPlan& plan : proved_plans()) {
    const std::string reason = why_no_kernels(plan);
    if (!reason.empty()) ++why[reason.substr(reason.find(": ") + 2)];
  }
  size_t without = 0;
  for (const auto& [reason, count] : why) {
    std::cout << count << " without kernels: " << reason << '\n';
    without += count;
    const bool known = reason == "it has packets of two formats" ||
                       reason.starts_with("it has ops of switch channels") ||
                       reason.starts_with("it has a reduction that is always");
    CAPTURE(reason);
    CHECK(known);
  }
  std::cout << proved_plans().size() - without << " with kernels\n";
  CHECK(20 * without < proved_plans().size());
}

TEST_CASE("proved plans: the simulator's bits") {
  CHECK(10 * run_proved({.rounds = 2}) > 9 * proved_plans().size());
}

TEST_CASE("proved plans: the simulator's bits whatever runs first") {
  run_proved({.seeds = testing::amount<std::vector<uint64_t>>({1}, {1}, {1, 2, 3})},
             if_sanitized(2, 1));
}

TEST_CASE("proved plans: ranks with kernels and ranks with the interpreter") {
  run_proved({.seeds = {1}, .rounds = 4, .mixed = true}, if_sanitized(4, 2));
}

}  // namespace
}  // namespace mscclc
