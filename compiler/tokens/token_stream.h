// The tokens of a file as the parser goes through them: which belong to the statement at hand, what
// is said where another was expected, names, strings, and the places of what they make up.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "compiler/ast/ast.h"
#include "compiler/tokens/lexer.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/support/precondition.h"

namespace mscclc {

class TokenStream {
 public:
  using TextRange = ast::TextRange;

  TokenStream(const ast::File& file, ast::Ast& ast, Diagnostics& diagnostics)
      : file_(file), ast_(ast), lexer_(file, ast, diagnostics) {}

  const Token& tok() const { return tok_; }
  /// The token after it. REQUIRES: peek() has been called since the last advance.
  const Token& next() const {
    precondition(peeked_);
    return next_;
  }
  /// Of the token before tok().
  uint32_t last_end() const { return last_end_; }
  /// A newline before tok() has ended the statement.
  bool fresh() const { return fresh_; }
  void set_fresh(bool fresh) { fresh_ = fresh; }
  /// Open ( and [.
  int brackets() const { return brackets_; }
  /// After a mistake: there are no open brackets; gives how many there were.
  int forget_brackets() { return std::exchange(brackets_, 0); }
  int errors() const { return lexer_.errors(); }

  // ---- tokens ----
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

  // ---- errors ----
  Diagnostic& error(std::string code, TextRange place, std::string message) {
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
  bool begins_statement(const Token& token) const;
  /// Passes the end of a statement; false, and an error, if it goes on.
  bool end_statement();
  /// Passes a block without looking at it. REQUIRES: at '{'.
  void skip_braces();
  bool not_in_ir(TextRange place, const std::string& what);

  // ---- names, strings, nodes ----
  bool declared_name(ast::Name& out);
  void callable_name(const Token& name);
  ast::Name take_name() {
    const ast::Name name{tok_.symbol, tok_.place.begin};
    advance();
    return name;
  }
  bool string_value(std::string_view& out, TextRange& place);
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
  TextRange since(uint32_t begin) const { return {begin, last_end_}; }

 private:
  std::string shown(const Token& token) const;

  const ast::File& file_;
  ast::Ast& ast_;
  Lexer lexer_;
  Diagnostic unused_;  // of mistakes that follow from others
  Token tok_, next_;
  uint32_t last_end_ = 0;
  Tok last_kind_ = Tok::end;
  bool peeked_ = false;
  bool fresh_ = false;
  int brackets_ = 0;
};

}  // namespace mscclc
