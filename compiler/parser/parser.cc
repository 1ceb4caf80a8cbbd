#include "compiler/parser/parser.h"

#include "compiler/parser/expr_parser.h"
#include "compiler/parser/item_parser.h"

namespace mscclc {

const ast::File* parse_file(const Sources& sources, FileId id, ast::Ast& ast,
                            Diagnostics& diagnostics) {
  ast::File* file = ast.add_file(id);
  if (file == nullptr) {
    diagnostics.error("file-too-large", {.file = id, .line = 1, .column = 1},
                      "the file is larger than 1 GiB");
    return nullptr;
  }
  return ItemParser(*file, ast, diagnostics).file() ? file : nullptr;
}

bool parse_define(FileId id, ast::Ast& ast, ast::Expr& out) {
  ast::File* file = ast.add_file(id);
  Diagnostics unused;
  if (file == nullptr) return false;
  TokenStream in(*file, ast, unused);
  return ExprParser(*file, ast, in).define(out);
}

}  // namespace mscclc
