#include "tests/rows/row_cases.h"

#include "compiler/rows/library.h"
#include "tests/rows/random_row.h"

namespace mscclc::rows {

std::vector<RowCase> row_cases() {
  constexpr Dtype kTypes[] = {Dtype::bf16, Dtype::f16, Dtype::f32};
  std::vector<RowCase> cases;
  for (Function& function : library()) {
    const Dtype t = kTypes[cases.size() % 3];
    cases.push_back({function, t, {1, 4, 8, 32, 256}});
    function.rounding = Rounding::once;
    cases.push_back({std::move(function), t, {8}});
  }
  Dice dice(44);
  for (uint32_t i = 0; i < kRandomRows; ++i) {
    Function function = read_one(random_row(dice, "random_" + std::to_string(i)));
    cases.push_back({std::move(function), kTypes[i % 3], {uint32_t{1} << dice.below(8)}});
  }
  return cases;
}

}  // namespace mscclc::rows
