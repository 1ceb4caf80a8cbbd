// Mistakes in expressions: what is wrong, and the values that led there.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/evaluate/evaluate.h"

namespace mscclc {

using ast::Expr;
using ast::ExprKind;

std::string_view kind_text(ValueKind kind) {
  switch (kind) {
    case ValueKind::integer:
      return "a number";
    case ValueKind::boolean:
      return "a boolean";
    case ValueKind::list:
      return "a list";
    case ValueKind::format:
      return "a packet format";
    case ValueKind::function:
      return "a function";
    case ValueKind::def:
      return "a def";
    case ValueKind::buffer:
      return "a buffer";
    case ValueKind::channel:
      return "a channel";
    case ValueKind::semaphore:
      return "a semaphore";
    case ValueKind::unbound:
      break;
  }
  return "nothing";
}

std::string Evaluator::value_text(const Value& v) const {
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

void Evaluator::collect_names(const Expr& e, std::vector<ast::Symbol>& out) const {
  if (e.kind == ExprKind::name) {
    if (std::ranges::find(out, e.name.id) == out.end()) out.push_back(e.name.id);
  } else if (e.kind == ExprKind::comprehension) {
    for (const ast::Binder& b : e.loop->binders) collect_names(b.list, out);
  } else if (e.count > 0) {
    for (const Expr& kid : e.children()) collect_names(kid, out);
  }
}

std::string Evaluator::variables_text(const Expr& e) const {
  std::vector<ast::Symbol> names;
  collect_names(e, names);
  std::string text;
  for (const ast::Symbol s : names) {
    const Value& v = values_[s];
    if (v.kind < ValueKind::integer || v.kind > ValueKind::list) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", ast_.text(s), value_text(v));
  }
  return text;
}

void Evaluator::add_context(Diagnostic& d, const Expr* e) {
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
    const Value& v = values_[s];
    const auto bound = [&](const Binding& b) { return b.name == s; };
    if (v.kind < ValueKind::integer || v.kind > ValueKind::list) continue;
    if (std::ranges::none_of(bindings, bound)) add(s, value_text(v));
  }
  if (!text.empty()) d.notes.push_back({std::move(text), d.span});
  add_expansions(d);
}

/// The chain of defs that led here, the middle of a long one left out.
void Evaluator::add_expansions(Diagnostic& d) const {
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

Diagnostic& Evaluator::fail(std::string code, ast::Place place, std::string message) {
  Diagnostic& d = diagnostics_.error(std::move(code), ast_.span(place), std::move(message));
  add_context(d);
  return d;
}

Diagnostic& Evaluator::fail(std::string code, const Expr& e, std::string message) {
  Diagnostic& d = diagnostics_.error(std::move(code), ast_.span(e.place), std::move(message));
  add_context(d, &e);
  return d;
}

bool Evaluator::expected(std::string_view what, ValueKind found, const Expr& e) {
  if (found == ValueKind::unbound) return false;
  if (found > ValueKind::list && e.kind == ExprKind::name) {
    fail("wrong-kind", e.place,
         fmt::format("'{}' is {}; expected {}", ast_.text(e.name.id), kind_text(found), what));
  } else {
    fail("wrong-type", e, fmt::format("expected {}, found {}", what, kind_text(found)));
  }
  return false;
}

bool Evaluator::too_long(ast::Place place) {
  if (!stopped_) {
    fail("too-many-steps", place,
         fmt::format("the program has not ended after {} steps", max_steps_));
  }
  stopped_ = true;
  return false;
}

bool Evaluator::too_many(uint64_t rounds, const ast::Place& place) {
  if (!stopped_) {
    fail("too-many-steps", place,
         fmt::format("a loop of {} rounds in all, where {} of the program's {} steps are left",
                     rounds, steps_left(), max_steps_));
  }
  stopped_ = true;
  return false;
}

}  // namespace mscclc
