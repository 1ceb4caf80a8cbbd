// The table of diagnostics' codes (diagnostic_codes.def).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

enum class CodeArea : uint8_t { language, ir, prover, plan, runtime, tools };

/// What a diagnostic comes from: the program (or plan), or the job that runs it.
enum class CodeCause : uint8_t { program, job };

struct CodeInfo {
  CodeArea area;
  Severity severity;
  std::string_view name, meaning;
  CodeCause cause = CodeCause::program;
};

/// All rows, in the order of the table.
std::span<const CodeInfo> code_table();
/// True if the code is in the table, and says that the job is the cause.
bool is_of_job(std::string_view code);
/// docs/diagnostics.md.
std::string code_reference();

}  // namespace mscclc
