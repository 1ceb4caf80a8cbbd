// Ops: operands, options, locations. IR text consists of little else, so this is the hot path.
#pragma once

#include "compiler/parser/expr_parser.h"

namespace mscclc {

class OpParser {
 public:
  OpParser(const ast::File& file, ast::Ast& ast, TokenStream& in, ExprParser& exprs)
      : file_(file), ast_(ast), in_(in), exprs_(exprs) {}

  // Each returns nullptr, or false, after it has reported a mistake.
  const ast::Stmt* op();
  const ast::Stmt* barrier();
  /// `name: value, …`, of ops and of other lines.
  bool options(ast::Array<const ast::Option>& out);

 private:
  enum class Of : uint8_t { op, function };  ///< whose operand it is

  bool at_operand();
  bool no_operand(Of what);
  bool operand(Of what);
  bool operands(Of what);
  bool then(ast::OpStmt& s);
  bool then_side(uint32_t& count, uint32_t& place);
  bool option();
  bool locations(ast::Array<const ast::Location>& out);
  bool location();
  bool location_value();
  bool location_number(uint32_t& out);

  const ast::File& file_;
  ast::Ast& ast_;
  TokenStream& in_;
  ExprParser& exprs_;
  Stack<ast::Option> options_;
  Stack<ast::Operand> operands_;
  Stack<ast::Location> locations_;
  Stack<ast::LocationValue> values_;
};

}  // namespace mscclc
