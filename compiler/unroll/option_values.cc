#include "compiler/unroll/option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/resolve/options.h"

namespace mscclc {

using ast::Array;
using ast::ExprKind;
using ast::Option;
using ast::Symbol;

bool OptionValues::number(Array<const Option> options, Symbol name, int64_t& out) {
  const Option* o = find_option(options, name);
  return o != nullptr && evaluator_.integer(o->value, out);
}

bool OptionValues::small(Array<const Option> options, Symbol name, uint32_t& out) {
  const Option* o = find_option(options, name);
  int64_t v = 0;
  if (o == nullptr || !evaluator_.integer(o->value, v)) return false;
  if (v < 0 || v > std::numeric_limits<uint32_t>::max()) {
    evaluator_.fail("option-value", o->value,
                    fmt::format("'{}' is {}, {}", ast_.text(name), v,
                                v < 0 ? "a negative number" : "more than 32 bits hold"));
    return false;
  }
  out = static_cast<uint32_t>(v);
  return true;
}

bool OptionValues::flag(Array<const Option> options, Symbol name, bool& out) {
  const Option* o = find_option(options, name);
  return o != nullptr && evaluator_.boolean(o->value, out);
}

/// S of `chunks: S`: a number or a list.
bool OptionValues::dims(Array<const Option> options, Symbol name, std::vector<int64_t>& out) {
  const Option* o = find_option(options, name);
  if (o == nullptr) return true;
  Value v;
  if (!evaluator_.eval(o->value, v)) return false;
  out.clear();
  if (v.kind == ValueKind::integer) {
    out.push_back(v.integer);
  } else if (v.kind == ValueKind::list) {
    for (int64_t i = 0; i < std::min<int64_t>(v.list->count, 3); ++i) out.push_back((*v.list)[i]);
  } else {
    return evaluator_.expected("a number or a list", v.kind, o->value);
  }
  return true;
}

void OptionValues::range(Array<const Option> options, Symbol name, Range& out) {
  const Option* o = find_option(options, name);
  if (o == nullptr) return;
  Value v;
  if (!evaluator_.eval(o->value, v)) return;
  int64_t first = v.integer, last = v.integer;
  if (v.kind == ValueKind::list && !o->open_end) {
    if (v.list->count == 0) {
      evaluator_.fail("empty-range", o->value, "an empty range");
      return;
    }
    if (v.list->data != nullptr || !v.list->consecutive()) {
      evaluator_.fail("wrong-type", o->value, "expected a number or a range, found a list");
      return;
    }
    first = (*v.list)[0];
    last = (*v.list)[v.list->count - 1];
  } else if (v.kind != ValueKind::integer) {
    evaluator_.expected(o->open_end ? "a number" : "a number or a range", v.kind, o->value);
    return;
  }
  if (first < 0) {
    evaluator_.fail("option-value", o->value,
                    fmt::format("'{}' begins at {}", ast_.text(name), first));
    return;
  }
  out.min = static_cast<uint64_t>(first);
  out.max = o->open_end ? ~uint64_t{0} : static_cast<uint64_t>(last);
}

/// A contract's word, or a choice between words.
bool OptionValues::order(const ast::Expr& e, SumOrder& out) {
  if (e.kind == ast::ExprKind::conditional) {
    bool first = false;
    return evaluator_.boolean(e.kids[0], first) && order(e.kids[first ? 1 : 2], out);
  }
  const std::string_view word = ast_.text(e.place);
  const auto order = find_sum_order(word);
  if (!order) {
    evaluator_.fail("option-value", e.place,
                    fmt::format("'order' is {}, not '{}'", sum_order_names(), word));
    return false;
  }
  out = *order;
  return true;
}

void OptionValues::words(Array<const Option> options, Symbol name,
                         const std::function<void(std::string_view, ast::TextRange)>& use) {
  const Option* o = find_option(options, name);
  if (o == nullptr) return;
  if (o->value.kind != ExprKind::list) {
    evaluator_.fail(
        "option-value", o->value.place,
        fmt::format("'{}' takes a list of words: '{}: [...]'", ast_.text(name), ast_.text(name)));
    return;
  }
  if (o->value.children().empty()) {
    evaluator_.fail("empty-list", o->value.place,
                    fmt::format("'{}' lists nothing: leave it out", ast_.text(name)));
  }
  for (const ast::Expr& e : o->value.children()) {
    if (e.kind == ExprKind::name) {
      use(ast_.text(e.name.id), e.place);
    } else if (e.kind == ExprKind::string) {
      use(*e.string, e.place);
    } else {
      evaluator_.fail("option-value", e.place, "expected a word");
    }
  }
}

}  // namespace mscclc
