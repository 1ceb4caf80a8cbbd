// Names, before anything is evaluated: every name is declared before it is used, once, hides no
// other that is visible, and is of the kind that its place takes. Also what needs no values: where
// statements may stand, which options there are, what is never used.
#pragma once

#include <deque>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/evaluate/evaluate.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// An item of the program, imports already replaced by what they bring in.
struct Item {
  const ast::Stmt* stmt;
  bool imported = false;
};

/// A `-D name=value`: what it says, and that as an expression.
struct Define {
  std::string name, text;
  ast::Symbol symbol = ast::kNoSymbol;  ///< of the name, if the program has such a word
  ast::Expr value = {};                 ///< not given: it is none
};

/// What the resolver found out for the unroller.
struct Resolution {
  /// By symbol of a function or def: the symbols that its body declares.
  std::deque<Locals> locals;
  std::vector<const Locals*> by_symbol;
  /// Names of far ends that no rank declares: reported, so not to be looked for.
  std::vector<ast::Symbol> unknown_far;
  /// What is declared and never used: values, functions and defs; things that ranks own.
  std::vector<ast::Name> unused, unused_things;
  /// Row functions that something uses.
  std::vector<ast::Symbol> used_rows;
  /// False if evaluation would only repeat the mistakes: names that hide others, bad nesting.
  bool usable = true;
};

/// Warnings, for a program that is right otherwise.
void warn_unused(const ast::Ast& ast, const Resolution& resolution, Diagnostics& diagnostics);

/// Reports all mistakes in names and in what may stand where. `is_ir`: no warnings.
bool resolve(const ast::Ast& ast, const std::vector<Item>& items,
             const std::vector<Define>& defines, bool is_ir, Resolution& resolution,
             Diagnostics& diagnostics);

}  // namespace mscclc
