// Items: what stands at file level; and a file, which is a list of them.
#pragma once

#include <array>
#include <string_view>

#include "compiler/parser/statement_parser.h"

namespace mscclc {

class ItemParser {
 public:
  ItemParser(ast::File& file, ast::Ast& ast, Diagnostics& diagnostics)
      : file_(file),
        ast_(ast),
        diagnostics_(diagnostics),
        in_(file, ast, diagnostics),
        exprs_(file, ast, in_),
        ops_(file, ast, in_, exprs_),
        definitions_(ast, in_, exprs_),
        statements_(file, ast, in_, exprs_, ops_, definitions_, *this) {}

  /// Parses the whole file; true if there was no error.
  bool file();
  /// An item, or nullptr after a mistake, which is reported.
  const ast::Stmt* known_item();

 private:
  using TextRange = ast::TextRange;

  const ast::Stmt* item();
  const ast::Stmt* no_item();
  const ast::Stmt* version(ast::StmtKind kind, bool first);
  const ast::Stmt* program_item();
  const ast::Stmt* import();
  const ast::Stmt* require();
  const ast::Stmt* collective();
  const ast::Stmt* ensure();
  const ast::Stmt* options_item(ast::StmtKind kind);
  const ast::Stmt* def();
  const ast::Stmt* row();
  const ast::Stmt* externals();
  bool flags(ast::FlagsDecl& out);
  bool external(ast::ExternalDecl& out);
  bool reduction(ast::Ensure& out);
  bool terms(ast::Ensure& out);
  bool term(ast::Term& out);
  std::string_view description(uint32_t begin);
  bool once(ast::StmtKind kind);

  ast::File& file_;
  ast::Ast& ast_;
  Diagnostics& diagnostics_;
  TokenStream in_;
  ExprParser exprs_;
  OpParser ops_;
  DefinitionParser definitions_;
  StatementParser statements_;
  /// By StmtKind, of items that may stand once.
  std::array<TextRange, static_cast<size_t>(ast::StmtKind::op) + 1> seen_{};
  Stack<const ast::Stmt*> items_;
  Stack<ast::Term> terms_;
  Stack<ast::ExternalDecl> externals_;
};

}  // namespace mscclc
