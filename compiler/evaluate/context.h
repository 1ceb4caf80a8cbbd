// Where an evaluation stands, and what is said of its mistakes: the variables that led there with
// their values, the expansions, and the place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/evaluate/values.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// A variable that distinguishes one execution of a statement from another.
struct Binding {
  ast::Symbol name;
  int64_t value;
};

class EvaluationContext {
 public:
  EvaluationContext(const ast::Ast& ast, Diagnostics& diagnostics, const NameValues& names)
      : ast_(ast), diagnostics_(diagnostics), names_(names) {}

  /// Bindings in force: of statements, and of operands and comprehensions being evaluated.
  std::vector<Binding> bindings;
  /// Set when a tracked binding changes; its user clears it.
  bool bindings_changed = true;
  /// Places of the calls of defs that led here, with the def's name.
  struct Expansion {
    ast::TextRange place;
    ast::Symbol def;
  };
  std::vector<Expansion> expansions;

  Diagnostic& fail(std::string code, ast::TextRange place, std::string message);
  /// The same with the values of the variables in `e`.
  Diagnostic& fail(std::string code, const ast::Expr& e, std::string message);
  /// Reports a value of another kind, unless its mistake has been reported. Always false.
  bool expected(std::string_view what, ValueKind found, const ast::Expr& e);
  /// Counts a mistake, and adds what led there.
  void add_to(Diagnostic& d, const ast::Expr* e = nullptr);
  /// Mistakes so far, repetitions included.
  size_t mistakes() const { return mistakes_; }
  std::string value_text(const Value& v) const;
  /// "world = 17, gpus = 8": the variables of `e`.
  std::string variables_text(const ast::Expr& e) const;

 private:
  void add_expansions(Diagnostic& d) const;
  void collect_names(const ast::Expr& e, std::vector<ast::Symbol>& out) const;

  const ast::Ast& ast_;
  Diagnostics& diagnostics_;
  const NameValues& names_;
  size_t mistakes_ = 0;
};

}  // namespace mscclc
