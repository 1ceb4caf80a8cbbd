// Evaluates expressions of the language: 64-bit integers, booleans, lists of integers.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/evaluate/context.h"
#include "compiler/evaluate/steps.h"
#include "compiler/evaluate/values.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// Calls of functions, or of defs, inside one another.
inline constexpr int kMaxExpansion = 64;

class Evaluator {
 public:
  Evaluator(const ast::Ast& ast, Diagnostics& diagnostics)
      : ast_(ast),
        names_(ast.names().size()),
        context_(ast, diagnostics, names_),
        steps_(context_) {}

  // ---- expressions; false after reporting a mistake ----
  bool eval(const ast::Expr& e, Value& out);
  bool integer(const ast::Expr& e, int64_t& out) {
    return known_integer(e, out) || integer_slow(e, out);
  }
  /// True for a number that is written or named; nothing is evaluated or reported.
  bool known_integer(const ast::Expr& e, int64_t& out) const {
    if (e.kind == ast::ExprKind::name) {
      const Value& v = names_.of(e.name.id);
      if (v.kind != ValueKind::integer) return false;
      out = v.integer;
      return true;
    }
    if (e.kind != ast::ExprKind::integer) return false;
    out = e.value;
    return true;
  }
  bool boolean(const ast::Expr& e, bool& out);
  bool list(const ast::Expr& e, List& out);
  /// Both ends of a range, of which the length fits in 63 bits.
  bool range_ends(const ast::Expr& e, int64_t& from, int64_t& to);

  /// Calls `body` for each combination of values of the binders that their `where` accepts.
  /// `body` returns false to stop; so does this after a mistake. `track`: the binders are part of
  /// the locations of ops inside.
  template <class F>
  bool each(ast::Array<const ast::Binder> binders, bool track, const F& body, uint32_t at = 0) {
    if (at == binders.size()) return body();
    const ast::Binder& b = binders[at];
    return each_value(b, track, [&] { return each(binders, track, body, at + 1); });
  }
  template <class F>
  bool each_value(const ast::Binder& b, bool track, const F& body);

  Value& value(ast::Symbol s) { return names_.of(s); }
  NameValues& names() { return names_; }
  EvaluationContext& context() { return context_; }
  const EvaluationContext& context() const { return context_; }
  Steps& steps() { return steps_; }
  const Steps& steps() const { return steps_; }
  ListArena& lists() { return lists_; }

  // Reports; see EvaluationContext.
  Diagnostic& fail(std::string code, ast::TextRange place, std::string message) {
    return context_.fail(std::move(code), place, std::move(message));
  }
  Diagnostic& fail(std::string code, const ast::Expr& e, std::string message) {
    return context_.fail(std::move(code), e, std::move(message));
  }
  bool expected(std::string_view what, ValueKind found, const ast::Expr& e) {
    return context_.expected(what, found, e);
  }

 private:
  bool integer_slow(const ast::Expr& e, int64_t& out);
  bool binary(const ast::Expr& e, Value& out);
  bool arithmetic(const ast::Expr& e, int64_t a, int64_t b, int64_t& out);
  bool overflow(const ast::Expr& e);
  bool ceil_div(const ast::Expr& e, int64_t a, int64_t b, Value& out);
  bool equal(const ast::Expr& e, bool& out);
  bool index(const ast::Expr& e, Value& out);
  bool call(const ast::Expr& e, Value& out);
  bool call_function(const ast::Expr& e, Value& out);
  bool call_builtin(const ast::Expr& e, Value& out);
  bool fold(const ast::Expr& e, Value& out);
  bool fold_one(const ast::Expr& e, int64_t v, bool first, int64_t& out);
  bool elements(const ast::Expr& e, Value& out);
  bool comprehension(const ast::Expr& e, Value& out);
  bool range(const ast::Expr& e, Value& out);
  bool except(const ast::Expr& e, Value& out);
  bool add(const ast::Expr& e, Value& out);
  bool join(const ast::Expr& e, const List& a, const List& b, Value& out);
  bool contains(const ast::Expr& e, bool& out);
  bool make_list(const ast::Expr& e, const List& list, Value& out);
  bool store_list(const ast::Expr& e, std::span<const int64_t> elements, Value& out);
  bool too_many_elements(const ast::Expr& e);

  const ast::Ast& ast_;
  NameValues names_;
  EvaluationContext context_;
  Steps steps_;
  std::vector<std::vector<int64_t>> pool_;  ///< buffers of comprehensions being evaluated
  size_t pool_used_ = 0;
  ListArena lists_;
  int depth_ = 0;
};

template <class F>
bool Evaluator::each_value(const ast::Binder& b, bool track, const F& body) {
  const ListArena::Mark outer = lists_.mark();
  List values;
  if (!list(b.list, values) || !steps_.rounds(values.count, b.place, track)) return false;
  const ListArena::Mark inner = lists_.mark();
  Value& v = names_.of(b.name.id);
  context_.bindings.push_back({b.name.id, 0});
  bool good = true;
  for (int64_t i = 0; good && i < values.count; ++i) {
    const int64_t element = values[i];
    v = Value::of(element);
    context_.bindings.back().value = element;
    context_.bindings_changed = context_.bindings_changed || track;
    bool accepted = true;
    good = steps_.take(b.place) && (b.where == nullptr || boolean(*b.where, accepted));
    if (good && accepted) good = body();
    lists_.release(inner);
  }
  context_.bindings.pop_back();
  context_.bindings_changed = context_.bindings_changed || track;
  lists_.release(outer);
  return good;
}

}  // namespace mscclc
