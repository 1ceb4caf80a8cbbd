#include "tools/bench/report/between_table.h"

#include <catch2/catch.hpp>

#include "tools/bench/results/sample_results.h"

namespace mscclc::bench {
namespace {

Result between(uint64_t bytes, const std::string& who, Role role, double time, double cost) {
  Result r = sample(bytes, who, role, time);
  r.between = "2 us";
  r.out_of_place->between = cost;
  return r;
}

std::string text_of(const std::vector<Result>& results) {
  const auto tables = tables_of(results);
  return between_text(tables.begin()->second);
}

TEST_CASE("both costs of a call stand side by side, and the plan is the best between kernels") {
  CHECK(
      text_of({between(1024, "hidden", Role::plan, 2, 4), between(1024, "open", Role::plan, 3, 3.5),
               between(1024, "nccl", Role::baseline, 6, 7),
               between(1024, "copy", Role::floor, 1, 2), between(3000, "open", Role::plan, 3, 4),
               sample(3000, "recorded", Role::baseline, 5)}) ==
      "# A call, us, out of place: back to back → between kernels of 2 us\n"
      "\n"
      "| bytes | program | ours | nccl | copy | recorded | fastest baseline / ours |\n"
      "|--:|---|--:|--:|--:|--:|--:|\n"
      "| 1 KiB | `open` | 3.00 → 3.50 | 6.00 → 7.00 | 1.00 → 2.00 |  | 2.00 |\n"
      "| 3000 B | `open` | 3.00 → 4.00 |  |  | 5.00 |  |\n"
      "\n");
}

TEST_CASE("a third cost follows the others where it was measured") {
  Result one = between(1024, "one", Role::plan, 2, 3);
  one.out_of_place->between_early = 2.5;
  CHECK(text_of({one, between(1024, "nccl", Role::baseline, 6, 7)}) ==
        "# A call, us, out of place: back to back → between kernels of 2 us → the same kernels, "
        "which let the next launch begin early\n"
        "\n"
        "| bytes | program | ours | nccl | fastest baseline / ours |\n"
        "|--:|---|--:|--:|--:|\n"
        "| 1 KiB | `one` | 2.00 → 3.00 → 2.50 | 6.00 → 7.00 | 2.33 |\n"
        "\n");
}

TEST_CASE("a wrong contender has no part in it, and without such costs there is no table") {
  CHECK(text_of({sample(1024, "one", Role::plan, 2)}).empty());
  Result wrong = between(1024, "one", Role::plan, 2, 3);
  wrong.out_of_place->wrong = 1;
  CHECK(text_of({wrong}).empty());
}

}  // namespace
}  // namespace mscclc::bench
