// The table of diagnostics' codes (diagnostic_codes.def).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/diagnostic.h"

namespace mscclc {

enum class CodeArea : uint8_t { language, ir, prover, plan, runtime, tools };

struct CodeInfo {
  CodeArea area;
  Severity severity;
  std::string_view name, meaning;
};

/// All rows, in the order of the table.
std::span<const CodeInfo> code_table();
/// docs/diagnostics.md.
std::string code_reference();

}  // namespace mscclc
