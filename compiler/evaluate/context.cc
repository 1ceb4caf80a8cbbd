#include "compiler/evaluate/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mscclc {

using ast::Expr;
using ast::ExprKind;

std::string EvaluationContext::value_text(const Value& v) const {
  if (v.kind == ValueKind::boolean) return v.integer != 0 ? "true" : "false";
  if (v.kind != ValueKind::list) return std::to_string(v.integer);
  std::string text = "[";
  constexpr int64_t kShown = 8;
  for (int64_t i = 0; i < std::min(v.list->count, kShown); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string((*v.list)[i]);
  }
  if (v.list->count > kShown) text += fmt::format(", ... {} in all", v.list->count);
  return text + "]";
}

void EvaluationContext::collect_names(const Expr& e, std::vector<ast::Symbol>& out) const {
  if (e.kind == ExprKind::name) {
    if (std::ranges::find(out, e.name.id) == out.end()) out.push_back(e.name.id);
  } else if (e.kind == ExprKind::comprehension) {
    for (const ast::Binder& b : e.loop->binders) collect_names(b.list, out);
  } else if (e.count > 0) {
    for (const Expr& kid : e.children()) collect_names(kid, out);
  }
}

std::string EvaluationContext::variables_text(const Expr& e) const {
  std::vector<ast::Symbol> names;
  collect_names(e, names);
  std::string text;
  for (const ast::Symbol s : names) {
    const Value& v = names_.of(s);
    if (v.kind < ValueKind::integer || v.kind > ValueKind::list) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", ast_.text(s), value_text(v));
  }
  return text;
}

void EvaluationContext::add_to(Diagnostic& d, const Expr* e) {
  ++mistakes_;
  std::string text;
  const auto add = [&](ast::Symbol s, const std::string& value) {
    text += fmt::format("{}{} = {}", text.empty() ? "when " : ", ", ast_.text(s), value);
  };
  for (const Binding& b : bindings) {
    add(b.name, std::to_string(b.value));
    d.loop.push_back({std::string(ast_.text(b.name)), b.value});
  }
  std::vector<ast::Symbol> names;
  if (e != nullptr) collect_names(*e, names);
  for (const ast::Symbol s : names) {
    const Value& v = names_.of(s);
    const auto bound = [&](const Binding& b) { return b.name == s; };
    if (v.kind < ValueKind::integer || v.kind > ValueKind::list) continue;
    if (std::ranges::none_of(bindings, bound)) add(s, value_text(v));
  }
  if (!text.empty()) d.notes.push_back({std::move(text), d.span});
  add_expansions(d);
}

/// The chain of defs that led here, the middle of a long one left out.
void EvaluationContext::add_expansions(Diagnostic& d) const {
  constexpr size_t kShown = 4;
  const size_t n = expansions.size();
  for (size_t i = n; i-- > 0;) {
    const bool shown = n <= kShown + 1 || i == 0 || i + kShown > n;
    if (!shown) {
      d.notes.push_back({fmt::format("{} more expansions", i), {}});
      i = 1;
      continue;
    }
    d.notes.push_back({fmt::format("in '{}', expanded here", ast_.text(expansions[i].def)),
                       ast_.span(expansions[i].place)});
  }
}

Diagnostic& EvaluationContext::fail(std::string code, ast::TextRange place, std::string message) {
  Diagnostic& d = diagnostics_.error(std::move(code), ast_.span(place), std::move(message));
  add_to(d);
  return d;
}

Diagnostic& EvaluationContext::fail(std::string code, const Expr& e, std::string message) {
  Diagnostic& d = diagnostics_.error(std::move(code), ast_.span(e.place), std::move(message));
  add_to(d, &e);
  return d;
}

bool EvaluationContext::expected(std::string_view what, ValueKind found, const Expr& e) {
  if (found == ValueKind::unbound) return false;
  if (found > ValueKind::list && e.kind == ExprKind::name) {
    fail("wrong-kind", e.place,
         fmt::format("'{}' is {}; expected {}", ast_.text(e.name.id), kind_text(found), what));
  } else {
    fail("wrong-type", e, fmt::format("expected {}, found {}", what, kind_text(found)));
  }
  return false;
}

}  // namespace mscclc
