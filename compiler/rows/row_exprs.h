// Expressions of row functions: names and precedence. Values of f32, no other types.
#pragma once

#include <map>

#include "compiler/rows/row_nodes.h"

namespace mscclc::rows {

/// A name that a row function declares.
struct Known {
  uint32_t node = kNoNode;  ///< kNoNode: its value was a mistake
  ast::TextRange place;
  bool used = false;
};

/// `( columns )` of groups: a power of two; 0 after a mistake. REQUIRES: at the number.
uint32_t read_group_size(TokenStream& in);

class RowExprs {
 public:
  RowExprs(const ast::Ast& ast, TokenStream& in, NodeMaker& nodes)
      : ast_(ast), in_(in), nodes_(nodes) {}

  /// The value, or kNoNode after a mistake, which is reported.
  uint32_t expr();
  /// True unless the name is a word of row functions or declared before, which is reported.
  bool may_declare(const ast::Name& name);
  std::map<ast::Symbol, Known>& names() { return names_; }

 private:
  uint32_t conditional();
  uint32_t sum();
  uint32_t product();
  uint32_t unary();
  uint32_t primary();
  uint32_t number();
  uint32_t parenthesis();
  uint32_t word();
  uint32_t reference(const Token& name);
  uint32_t call(const Token& name);
  uint32_t function_call(const Token& name, Op op, std::array<uint32_t, 4> args, uint32_t count);
  bool deeper();
  std::string remedy(std::string_view text) const;

  const ast::Ast& ast_;
  TokenStream& in_;
  NodeMaker& nodes_;
  std::map<ast::Symbol, Known> names_;
  uint32_t depth_ = 0;
};

}  // namespace mscclc::rows
