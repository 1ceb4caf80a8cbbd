// Text to syntax tree: recursive descent over docs/design/grammar.md, programs and IR
// text alike. Reports all mistakes of a file at once; after each it resumes at the next statement.
#pragma once

#include "compiler/ast/ast.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// Parses the file `id` of `sources` (the Sources that `ast` was made with) and adds it to `ast`.
/// nullptr after errors, which are in `diagnostics`; do not use the tree then.
const ast::File* parse_file(const Sources& sources, FileId id, ast::Ast& ast,
                            Diagnostics& diagnostics);

/// Parses what `-D` says of a parameter: an expression, or several with commas, which are a list.
/// False (and nothing reported) if the file is none.
bool parse_define(FileId id, ast::Ast& ast, ast::Expr& out);

}  // namespace mscclc
