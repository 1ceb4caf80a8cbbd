// The compiler's front door: text to IR, text to text, and the options the command line gives.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/format.h"  // format_program
#include "ir/diagnostic.h"
#include "ir/program.h"
#include "passes/registry.h"

namespace mscclc {

struct FrontEndOptions {
  /// `-D name=value`, as written.
  std::vector<std::pair<std::string, std::string>> defines;
  /// Reads an imported file (path already relative to the importer's folder); nullopt: not there.
  std::function<std::optional<std::string>(const std::string& path)> read_file;
  uint32_t threads = 0;  ///< see thread_count (ir/rank_parts.h); changes no result
  /// Ops that a program may unroll to before the compiler gives up.
  uint64_t max_ops = 64'000'000;
};

/// Parses and unrolls `text` (a program, or IR text that begins with `ir 1`) into IR; runs no pass.
/// `is_ir` tells which it was. nullopt after errors, which are in `diagnostics`.
[[nodiscard]] std::optional<Program> parse_program(Sources& sources, FileId file,
                                                   const FrontEndOptions& options,
                                                   Diagnostics& diagnostics, bool* is_ir = nullptr);

/// parse_program and the passes (none for IR text unless `passes.only` names some).
[[nodiscard]] std::optional<Program> compile(Sources& sources, FileId file,
                                             const FrontEndOptions& options,
                                             const PipelineOptions& passes,
                                             Diagnostics& diagnostics);

}  // namespace mscclc
