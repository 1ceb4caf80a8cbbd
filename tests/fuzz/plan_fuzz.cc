// Fuzzes the plan reader: any bytes are either a plan that passes the structural check and is
// written and read again unchanged, or are refused with a diagnostic.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"
#include "ir/print/print.h"
#include "ir/verify/verify.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"

using namespace mscclc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  Diagnostics diagnostics;
  const auto program = read_plan(json, "plan.json", diagnostics);
  if (program.has_value() == diagnostics.has_errors()) std::abort();
  (void)render_text(diagnostics, Sources());
  if (!program) return 0;
  if (!verify_structure(*program, diagnostics)) std::abort();
  const auto written = write_plan(*program, builtin_targets().front(), diagnostics);
  if (!written) return 0;
  const auto back = read_plan(*written, "plan.json", diagnostics);
  if (!back || print_ir(*back) != print_ir(*program)) std::abort();
  return 0;
}
