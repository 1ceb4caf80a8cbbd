// Names that are given values: `let` and `param`, functions with their bodies.
#pragma once

#include "compiler/parser/expr_parser.h"

namespace mscclc {

class DefinitionParser {
 public:
  DefinitionParser(ast::Ast& ast, TokenStream& in, ExprParser& exprs)
      : ast_(ast), in_(in), exprs_(exprs) {}

  /// nullptr after a mistake, which is reported.
  const ast::Stmt* let(ast::StmtKind kind);
  /// `( names )`, perhaps empty; false after a mistake. REQUIRES: at '('.
  bool names_list(ast::Array<const ast::Name>& out);

  /// Blocks that are open here; in one no function can be defined.
  int blocks() const { return blocks_; }
  void enter_block() { ++blocks_; }
  void leave_block() { --blocks_; }

 private:
  bool definition(ast::StmtKind kind);
  bool function_body(ast::Definition& out);
  bool function_values(ast::Definition& out);
  void skip_body();

  ast::Ast& ast_;
  TokenStream& in_;
  ExprParser& exprs_;
  int blocks_ = 0;
  Stack<ast::Name> names_;
  Stack<ast::Definition> definitions_;
};

}  // namespace mscclc
