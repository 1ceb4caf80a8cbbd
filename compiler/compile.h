// The compiler's entry: text to IR, text to text.
#pragma once

#include <optional>
#include <string>

#include "compiler/format/format.h"  // format_program
#include "compiler/proof_gate.h"
#include "compiler/unroll/front_end_options.h"  // FrontEndOptions
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "passes/registry.h"

namespace mscclc {

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
