// Fuzzes the language and the IR text, which share one parser: any bytes either compile or are
// refused with a diagnostic. What compiles must survive the way to a plan and back, and what can be
// formatted must be stable under formatting.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/compile.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/print/print.h"
#include "ir/verify/verify.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"

namespace {

using namespace mscclc;

/// Fails loudly: the fuzzer reports an abort as a crash.
void require(bool condition) {
  if (!condition) std::abort();
}

std::optional<std::string> format_text(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  return format_program(sources, sources.add("fuzz.mscl", text), diagnostics);
}

void check_plan(const Program& program) {
  Diagnostics diagnostics;
  const auto plan = write_plan(program, builtin_targets().front(), diagnostics);
  if (!plan) return;
  const auto back = read_plan(*plan, "plan.json", diagnostics);
  require(back.has_value());
  require(print_ir(*back) == print_ir(program));
}

void check_ir_text(const Program& program) {
  const std::string text = print_ir(program);
  Sources sources;
  Diagnostics diagnostics;
  const auto back = parse_program(sources, sources.add("fuzz.mscl", text), {}, diagnostics);
  require(back.has_value());
  require(print_ir(*back) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto once = format_text(text)) require(format_text(*once) == once);

  Sources sources;
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.max_ops = 1000;
  const FileId file = sources.add("fuzz.mscl", text);
  PassOptions passes;
  passes.verify_each = true;
  const auto program = compile(sources, file, options, passes, diagnostics);
  require(program.has_value() != diagnostics.has_errors());
  (void)render_text(diagnostics, sources);
  (void)render_json(diagnostics, sources);
  if (!program) return 0;
  check_ir_text(*program);
  if (program->split) check_plan(*program);
  return 0;
}
