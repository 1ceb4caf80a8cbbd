// The compiler's entry: text to IR, text to text, and the options that the command line gives.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/format.h"  // format_program
#include "compiler/proof_gate.h"
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
  /// compile() names the program's files as seen from the folder of the main one: the bytes of a
  /// plan must not depend on where it was compiled.
  bool relative_names = false;
};

/// Parses and unrolls `text` (a program, or IR text that begins with `ir 1`) into IR; runs no pass.
/// `is_ir` says which it was. nullopt after errors, which are in `diagnostics`.
[[nodiscard]] std::optional<Program> parse_program(Sources& sources, FileId file,
                                                   const FrontEndOptions& options,
                                                   Diagnostics& diagnostics, bool* is_ir = nullptr);

/// parse_program and the passes (none for IR text unless `passes.only` names some). With a gate, a
/// plan is proved before it is handed out.
[[nodiscard]] std::optional<Program> compile(Sources& sources, FileId file,
                                             const FrontEndOptions& options,
                                             const PassOptions& passes, Diagnostics& diagnostics,
                                             ProofGate* gate = nullptr);

/// Names the files of a program as seen from the folder of `main`, one of them or a plan's.
void make_names_relative(Program& program, const std::string& main);

}  // namespace mscclc
