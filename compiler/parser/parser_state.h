// The parser's inside: one class over several files, after the grammar: parser.cc (file, blocks,
// recovery), parser_item.cc (file level), parser_stmt.cc, parser_op.cc, parser_expr.cc.
//
// Every parsing function returns false (or nullptr) after it has reported an error; the statement
// loops then continue after the statement. Lists grow on stacks that are shared by the whole parse
// and are copied to the arena when complete, so a parse allocates next to nothing.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/parser/lexer.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// Elements of the lists that are being parsed; inner lists lie above outer ones.
template <class T>
class Stack {
 public:
  size_t mark() const { return items_.size(); }
  void push(const T& item) { items_.push_back(item); }
  /// Moves what lies above `mark` to the arena.
  ast::Array<const T> take(size_t mark, ast::Arena& arena) {
    const size_t count = items_.size() - mark;
    T* copy = static_cast<T*>(arena.allocate(count * sizeof(T)));
    std::copy(items_.begin() + mark, items_.end(), copy);
    items_.resize(mark);
    return {copy, count};
  }

 private:
  std::vector<T> items_;
};

class Parser {
 public:
  Parser(ast::File& file, ast::Ast& ast, Diagnostics& diagnostics)
      : file_(file), ast_(ast), lexer_(file, ast, diagnostics) {}
  /// True if there was no error.
  bool file();
  /// The text is an expression, or some with commas between.
  bool define(ast::Expr& out);

 private:
  using Place = ast::Place;
  using Symbol = ast::Symbol;

  // ---- tokens (parser.cc) ----
  void advance() {
    last_end_ = tok_.place.end;
    last_kind_ = tok_.kind;
    if (peeked_) {
      tok_ = next_;
      peeked_ = false;
    } else {
      lexer_.next(tok_);
    }
    fresh_ = tok_.newline && brackets_ == 0;
  }
  /// Passes a token after which a newline does not end the statement.
  void advance_line() {
    advance();
    fresh_ = false;
  }
  void open_bracket() {
    ++brackets_;
    advance();
  }
  void close_bracket() {
    --brackets_;
    advance();
  }
  const Token& peek() {
    if (!peeked_) lexer_.next(next_);
    peeked_ = true;
    return next_;
  }
  /// The present token is of this kind and belongs to the statement.
  bool here(Tok kind) const { return tok_.kind == kind && !fresh_; }
  bool here(ast::Word word) const { return tok_.symbol == word && !fresh_; }
  bool accept(Tok kind) {
    if (!here(kind)) return false;
    advance();
    return true;
  }
  bool accept_comma() {
    if (!here(Tok::comma)) return false;
    advance_line();
    return true;
  }
  bool expect(Tok kind, std::string_view what);
  bool expect(ast::Word word);
  /// `then` and `else`, which may begin a line.
  bool expect_anywhere(ast::Word word);
  bool close(Tok kind, const Token& opened, std::string_view what);
  bool at_word() const { return tok_.symbol != ast::kNoSymbol && !fresh_; }
  /// A word that may be a name here. At the beginning of a line, words that begin statements are
  /// taken for that: the line before lacks its end.
  bool at_name() const {
    return at_word() && !ast::is_reserved(tok_.symbol) && !(tok_.newline && begins_statement(tok_));
  }
  /// The present token stands at the beginning of a line.
  bool at_margin() const;

  // ---- errors (parser.cc) ----
  Diagnostic& error(std::string code, Place place, std::string message) {
    return lexer_.error(std::move(code), place, std::move(message));
  }
  bool expected(std::string_view what) {
    expected_but(what);
    return false;
  }
  const ast::Stmt* no(std::string_view what) {
    expected_but(what);
    return nullptr;
  }
  Diagnostic& expected_but(std::string_view what);
  std::string shown(const Token& token) const;
  void recover(uint32_t begin);
  void skip_braces();
  void missing_brace(Place open);
  Place unclosed_brace(Place open);
  bool begins_statement(const Token& token) const;
  bool end_statement();

  // ---- file level (parser_item.cc) ----
  const ast::Stmt* item();
  const ast::Stmt* known_item();
  const ast::Stmt* no_item();
  const ast::Stmt* version(ast::StmtKind kind, bool first);
  const ast::Stmt* program_item();
  const ast::Stmt* import();
  const ast::Stmt* require();
  const ast::Stmt* collective();
  const ast::Stmt* ensure();
  const ast::Stmt* options_item(ast::StmtKind kind);
  const ast::Stmt* def();
  const ast::Stmt* let(ast::StmtKind kind);
  bool definition(ast::StmtKind kind);
  bool function_body(ast::Definition& out);
  bool function_values(ast::Definition& out);
  void skip_body();
  bool names_list(ast::Array<const ast::Name>& out);
  bool reduction(ast::Ensure& out);
  bool terms(ast::Ensure& out);
  bool term(ast::Term& out);
  std::string_view description(uint32_t begin);
  bool once(ast::StmtKind kind);

  // ---- statements (parser_stmt.cc) ----
  bool block(ast::Block& out);
  bool statements(Place open);
  const ast::Stmt* statement();
  const ast::Stmt* keyword_statement();
  const ast::Stmt* not_a_statement();
  const ast::Stmt* unknown_op();
  std::string called_op() const;
  const ast::Stmt* placed(ast::StmtKind kind);
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
  bool not_in_ir(Place place, const std::string& what);

  // ---- ops (parser_op.cc) ----
  const ast::Stmt* op();
  const ast::Stmt* barrier();
  bool at_operand();
  bool operand();
  bool operands();
  bool options(ast::Array<const ast::Option>& out);
  bool option();
  bool locations(ast::Array<const ast::Location>& out);
  bool location();
  bool location_value();
  bool location_number(uint32_t& out);

  // ---- expressions (parser_expr.cc) ----
  bool expr(ast::Expr& out);
  bool value(ast::Option& option);
  bool conditional(ast::Expr& out);
  bool binary(ast::Expr& out, int least, const Token* left);
  bool may_be_power(uint32_t begin, bool power);
  bool negation(ast::Expr& out, int least, const Token* left);
  bool bits(ast::Expr& out, const Token* left);
  bool unary(ast::Expr& out);
  bool indexed(ast::Expr& out);
  bool primary(ast::Expr& out);
  bool word(ast::Expr& out);
  bool integer(ast::Expr& out, bool negative);
  bool string(ast::Expr& out);
  bool parenthesis(ast::Expr& out);
  bool list(ast::Expr& out);
  bool comprehension(ast::Expr& out, const ast::Expr& element, const Token& opened);
  bool call_arguments(ast::Expr& out);
  bool expr_list();
  /// `[ expr, … ]`, never empty.
  bool index_list(ast::Array<const ast::Expr>& out);
  bool binder(ast::Binder& out);
  bool binders(ast::Array<const ast::Binder>& out);
  /// A binder, or an expression alone.
  bool binder_or_expr(ast::Binder& out);
  bool node(ast::Expr& out, ast::ExprKind kind, std::initializer_list<ast::Expr> kids, Place place);
  bool list_node(ast::Expr& out, ast::ExprKind kind, size_t mark, Place place);
  bool set_depth(ast::Expr& out, int depth, Place place);
  bool needs_parentheses(const Token& op, const Token& beside);
  bool open_range();
  bool deeper(Place place);
  static bool begins_expression(const Token& token);

  // ---- names, strings, nodes ----
  bool declared_name(ast::Name& out);
  void callable_name(const Token& name);
  ast::Name take_name() {
    const ast::Name name{tok_.symbol, tok_.place.begin};
    advance();
    return name;
  }
  bool string_value(std::string_view& out, Place& place);
  template <class T>
  T* start(ast::StmtKind kind) {
    T* stmt = ast_.arena().make<T>();
    stmt->kind = kind;
    stmt->keyword = tok_.place;
    return stmt;
  }
  template <class T>
  const T* finish(T* stmt) {
    stmt->place = {stmt->keyword.begin, last_end_};
    return stmt;
  }
  Place since(uint32_t begin) const { return {begin, last_end_}; }

  ast::File& file_;
  ast::Ast& ast_;
  Lexer lexer_;
  Diagnostic unused_;  // of mistakes that follow from others
  Token tok_, next_;
  uint32_t last_end_ = 0;  // of the token before tok_
  Tok last_kind_ = Tok::end;
  bool peeked_ = false;
  bool fresh_ = false;      // a newline before tok_ has ended the statement
  bool unwinding_ = false;  // a missing '}' was reported; leave all blocks
  bool words_ = false;      // in the value of an option: any word may be a value
  int brackets_ = 0;        // open ( and [
  int open_level_ = -1;     // brackets_ at which `a..` may lack its end
  int depth_ = 0, blocks_ = 0;
  /// By StmtKind, of items that may stand once.
  std::array<Place, static_cast<size_t>(ast::StmtKind::op) + 1> seen_{};

  Stack<const ast::Stmt*> statements_;
  Stack<ast::Expr> exprs_;
  Stack<ast::Binder> binders_;
  Stack<ast::Option> options_;
  Stack<ast::Operand> operands_;
  Stack<ast::Location> locations_;
  Stack<ast::LocationValue> values_;
  Stack<ast::Name> names_;
  Stack<ast::Definition> definitions_;
  Stack<ast::SemaphoreDecl> semaphores_;
  Stack<ast::Term> terms_;
  Stack<ast::If::Arm> arms_;
};

}  // namespace mscclc
