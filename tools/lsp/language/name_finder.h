// Walks over a syntax tree and finds out what each name stands for (names.h).
#pragma once

#include <vector>

#include "tools/lsp/language/names.h"

namespace mscclc::lsp {

class NameFinder {
 public:
  NameFinder(const Tree& tree, Names& out);
  void run();

 private:
  template <class T>
  using Array = ast::Array<T>;

  // ---- declaring and using ----
  /// It is visible from `begin` on; 0: from its name on.
  uint32_t declare(const ast::Name& name, Declared what, uint32_t begin = 0);
  void declare_value(const ast::Definition& definition, const ast::Stmt& statement, Kind kind);
  void declare_binder(const ast::Binder& binder, const ast::Stmt* statement, uint32_t begin);
  void declare_arguments(Array<const ast::Name> names, const ast::Stmt& statement);
  void declare_thing(const ast::Name& name, const ast::Stmt& statement, Kind kind);
  void use(const ast::Name& name);
  void use_far(const ast::Name& name);
  void enter(Around around);
  /// Leaves a scope, which began when `mark` names were visible and ends at `end`.
  void leave(size_t mark, uint32_t end);
  size_t mark() const { return visible_.size(); }

  // ---- expressions and options ----
  void expr(const ast::Expr& e);
  void exprs(Array<const ast::Expr> list);
  /// It is visible from `begin` on, if that comes before its name.
  void binder(const ast::Binder& b, const ast::Stmt* statement, uint32_t begin = 0xffffffffu);
  void binders(Array<const ast::Binder> list, const ast::Stmt* statement);
  void options(Array<const ast::Option> list);
  void order_option(const ast::Expr& e);

  // ---- items and statements ----
  void item(const ast::Stmt& s);
  void definitions(const ast::Let& s, Kind kind);
  void function(const ast::Definition& d, const ast::Let& s);
  void def(const ast::Def& s);
  void ensure(const ast::Ensure& s);
  void externals(const ast::Externals& s);
  void flags(const ast::FlagsDecl& s);
  void placed(const ast::Placed& s);
  void block(const ast::Block& b);
  void statement(const ast::Stmt& s);
  void if_chain(const ast::If& s);
  void for_loop(const ast::For& s);
  void buffer(const ast::BufferDecl& s);
  void channel(const ast::ChannelDecl& s);
  void semaphores(const ast::Semaphores& s);
  void op(const ast::OpStmt& s);
  void operand(const ast::Operand& o);

  const Tree& tree_;
  const ast::Ast& ast_;
  Names& out_;
  std::vector<uint32_t> meaning_;  ///< by symbol: what it stands for here, or kNothing
  std::vector<uint32_t> things_;   ///< by symbol: what ranks own by that name, or kNothing
  std::vector<uint32_t> visible_;  ///< in order of declaration
  std::vector<ast::Name> far_;     ///< looked at when all bodies are known
  uint32_t around_ = kNothing;     ///< the innermost, in Names::around()
  int arguments_ = 0;              ///< that are visible
};

}  // namespace mscclc::lsp
