// Fuzzes declarations of row functions: any bytes are refused with a diagnostic, or are functions
// that are printed and read again as the same, have source, and give results of the right size for
// any values.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/rows/read_rows.h"
#include "executor/rows/emit.h"
#include "executor/rows/evaluate.h"
#include "ir/rows/print_row.h"
#include "tests/rows/row_inputs.h"

namespace {

using namespace mscclc;

std::optional<std::vector<rows::Function>> read(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  auto functions = rows::read_rows(sources, sources.add("fuzz.mscl", text), diagnostics);
  if (functions.has_value() == diagnostics.has_errors()) std::abort();
  return functions;
}

void require(bool right) {
  if (!right) std::abort();
}

void try_function(const rows::Function& function, Dice& dice) {
  const std::string text = rows::print(function);
  const auto again = read(text);
  require(again && again->size() == 1 && rows::print(again->front()) == text);
  const Dtype t = dice.below(2) == 0 ? Dtype::bf16 : Dtype::f32;
  require(rows::emit(function, t, "row_0") == rows::emit(again->front(), t, "row_0"));
  const uint32_t columns = 1 + dice.below(70);
  const auto inputs = rows::row_inputs(function, t, columns, true, dice);
  const auto results = rows::evaluate(function, t, columns, inputs);
  require(results == rows::evaluate(again->front(), t, columns, inputs));
  require(results.size() == function.outputs.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto functions = read(std::string(reinterpret_cast<const char*>(data), size));
  Dice dice(size);
  if (functions) {
    for (const rows::Function& function : *functions) try_function(function, dice);
  }
  return 0;
}
