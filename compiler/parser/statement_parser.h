// Blocks and statements, and the way on after a mistake in one.
#pragma once

#include <string>

#include "compiler/parser/definition_parser.h"
#include "compiler/parser/op_parser.h"

namespace mscclc {

class ItemParser;

class StatementParser {
 public:
  /// `items` parses what stands at file level, where it stands in a block by mistake.
  StatementParser(const ast::File& file, ast::Ast& ast, TokenStream& in, ExprParser& exprs,
                  OpParser& ops, DefinitionParser& definitions, ItemParser& items)
      : file_(file),
        ast_(ast),
        in_(in),
        exprs_(exprs),
        ops_(ops),
        definitions_(definitions),
        items_(items) {}

  // Each returns nullptr, or false, after it has reported a mistake.
  const ast::Stmt* statement();
  bool block(ast::Block& out);
  /// rank, tb
  const ast::Stmt* placed(ast::StmtKind kind);

  /// Goes on after the statement at hand, which begins at `begin`.
  void recover(uint32_t begin);
  /// A missing '}' was reported: all blocks are left.
  bool unwinding() const { return unwinding_; }
  void stop_unwinding() { unwinding_ = false; }

 private:
  using TextRange = ast::TextRange;

  bool statements(TextRange open);
  const ast::Stmt* keyword_statement();
  const ast::Stmt* not_a_statement();
  const ast::Stmt* unknown_op();
  std::string called_op() const;
  const ast::Stmt* buffer();
  const ast::Stmt* channel();
  const ast::Stmt* semaphores();
  const ast::Stmt* group();
  const ast::Stmt* for_loop();
  const ast::Stmt* pipeline();
  const ast::Stmt* if_chain();
  const ast::Stmt* call();
  bool keys(ast::Array<const ast::Binder>& out);
  bool dimensions(ast::BufferDecl& out);

  void missing_brace(TextRange open);
  TextRange unclosed_brace(TextRange open);

  const ast::File& file_;
  ast::Ast& ast_;
  TokenStream& in_;
  ExprParser& exprs_;
  OpParser& ops_;
  DefinitionParser& definitions_;
  ItemParser& items_;
  bool unwinding_ = false;
  Stack<const ast::Stmt*> statements_;
  Stack<ast::Binder> binders_;
  Stack<ast::SemaphoreDecl> semaphores_;
  Stack<ast::If::Arm> arms_;
};

}  // namespace mscclc
