// Unrolls a program: evaluates its header, then runs the body of each rank twice, first for what
// the rank owns, then for its ops, and hands everything to the builder, which checks and keeps it.
#pragma once

#include <optional>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/resolve/resolve.h"
#include "compiler/unroll/front_end_options.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc {

/// REQUIRES: `items` are those of `main` with imports replaced, without syntax errors; `defines`
/// are those of `options`.
[[nodiscard]] std::optional<Program> unroll(const Sources& sources, const ast::Ast& ast,
                                            const ast::File& main, const std::vector<Item>& items,
                                            const std::vector<Define>& defines,
                                            const FrontEndOptions& options,
                                            Diagnostics& diagnostics);

}  // namespace mscclc
