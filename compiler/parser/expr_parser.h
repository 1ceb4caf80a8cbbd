// Expressions, by precedence climbing, and binders.
#pragma once

#include <initializer_list>

#include "compiler/parser/stack.h"
#include "compiler/tokens/token_stream.h"

namespace mscclc {

class ExprParser {
 public:
  ExprParser(const ast::File& file, ast::Ast& ast, TokenStream& in)
      : file_(file), ast_(ast), in_(in) {}

  // Each returns false after it has reported a mistake.
  bool expr(ast::Expr& out);
  /// The value of an option, where any word may be one.
  bool value(ast::Option& option);
  /// REQUIRES: at an integer.
  bool integer(ast::Expr& out, bool negative);
  /// `[ expr, … ]`, never empty.
  bool index_list(ast::Array<const ast::Expr>& out);
  /// `expr, …` up to the token `end`, perhaps none.
  bool expressions(ast::Array<const ast::Expr>& out, Tok end);
  bool binder(ast::Binder& out);
  bool binders(ast::Array<const ast::Binder>& out);
  /// A binder, or an expression alone.
  bool binder_or_expr(ast::Binder& out);
  /// The whole text: an expression, or some with commas between.
  bool define(ast::Expr& out);

  /// After a mistake: no expression is being parsed.
  void reset() {
    depth_ = 0;
    words_ = false;
    open_level_ = -1;
  }
  void reset_depth() { depth_ = 0; }

 private:
  using TextRange = ast::TextRange;

  bool conditional(ast::Expr& out);
  bool binary(ast::Expr& out, int least, const Token* left);
  bool may_be_power(uint32_t begin, bool power);
  bool negation(ast::Expr& out, int least, const Token* left);
  bool bits(ast::Expr& out, const Token* left);
  bool unary(ast::Expr& out);
  bool indexed(ast::Expr& out);
  bool primary(ast::Expr& out);
  bool word(ast::Expr& out);
  bool string(ast::Expr& out);
  bool parenthesis(ast::Expr& out);
  bool list(ast::Expr& out);
  bool comprehension(ast::Expr& out, const ast::Expr& element, const Token& opened);
  bool call_arguments(ast::Expr& out);
  bool expr_list();
  bool node(ast::Expr& out, ast::ExprKind kind, std::initializer_list<ast::Expr> kids,
            TextRange place);
  bool list_node(ast::Expr& out, ast::ExprKind kind, size_t mark, TextRange place);
  bool set_depth(ast::Expr& out, int depth, TextRange place);
  bool needs_parentheses(const Token& op, const Token& beside);
  bool open_range();
  bool deeper(TextRange place);
  static bool begins_expression(const Token& token);

  const ast::File& file_;
  ast::Ast& ast_;
  TokenStream& in_;
  int depth_ = 0;
  bool words_ = false;   // in the value of an option: any word may be a value
  int open_level_ = -1;  // brackets at which `a..` may lack its end
  Stack<ast::Expr> exprs_;
  Stack<ast::Binder> binders_;
};

}  // namespace mscclc
