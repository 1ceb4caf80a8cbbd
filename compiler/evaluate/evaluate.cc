// Numbers, conditions, calls. Lists are in evaluate_list.cc.
#include "compiler/evaluate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/ast/ast.h"
#include "ir/support/precondition.h"

namespace mscclc {

using ast::BinaryOp;
using ast::Expr;
using ast::ExprKind;

// ---- expressions -----------------------------------------------------------------------------

bool Evaluator::eval(const Expr& e, Value& out) {
  switch (e.kind) {
    case ExprKind::integer:
      out = Value::of(e.value);
      return true;
    case ExprKind::boolean:
      out = Value::of_bool(e.value != 0);
      return true;
    case ExprKind::name:
      out = names_.of(e.name.id);
      return out.kind != ValueKind::unbound;
    case ExprKind::binary:
      return binary(e, out);
    case ExprKind::negate: {
      int64_t v = 0;
      if (!integer(e.kids[0], v)) return false;
      if (__builtin_sub_overflow(int64_t{0}, v, &v)) return overflow(e);
      out = Value::of(v);
      return true;
    }
    case ExprKind::not_: {
      bool v = false;
      if (!boolean(e.kids[0], v)) return false;
      out = Value::of_bool(!v);
      return true;
    }
    case ExprKind::conditional: {
      bool v = false;
      if (!boolean(e.kids[0], v)) return false;
      return eval(e.kids[v ? 1 : 2], out);
    }
    case ExprKind::index:
      return index(e, out);
    case ExprKind::call:
      return call(e, out);
    case ExprKind::list:
      return elements(e, out);
    case ExprKind::comprehension:
      return comprehension(e, out);
    case ExprKind::string:
      fail("wrong-type", e.place, "expected a value, found a string");
      return false;
    case ExprKind::none:
      break;
  }
  return false;
}

bool Evaluator::integer_slow(const Expr& e, int64_t& out) {
  Value v;
  if (!eval(e, v)) return false;
  if (v.kind != ValueKind::integer) return expected("a number", v.kind, e);
  out = v.integer;
  return true;
}

bool Evaluator::boolean(const Expr& e, bool& out) {
  Value v;
  if (!eval(e, v)) return false;
  if (v.kind != ValueKind::boolean) return expected("a boolean", v.kind, e);
  out = v.integer != 0;
  return true;
}

bool Evaluator::binary(const Expr& e, Value& out) {
  steps_.add(1);
  const Expr& left = e.kids[0];
  const Expr& right = e.kids[1];
  switch (e.op) {
    case BinaryOp::or_:
    case BinaryOp::and_: {
      bool v = false;
      if (!boolean(left, v)) return false;
      if (v != (e.op == BinaryOp::or_) && !boolean(right, v)) return false;
      out = Value::of_bool(v);
      return true;
    }
    case BinaryOp::eq:
    case BinaryOp::ne: {
      bool same = false;
      if (!equal(e, same)) return false;
      out = Value::of_bool(same == (e.op == BinaryOp::eq));
      return true;
    }
    case BinaryOp::in: {
      bool there = false;
      if (!contains(e, there)) return false;
      out = Value::of_bool(there);
      return true;
    }
    case BinaryOp::range:
      return range(e, out);
    case BinaryOp::except:
      return except(e, out);
    default:
      break;
  }
  int64_t a = 0, b = 0;
  if (e.op == BinaryOp::add && !known_integer(left, a)) return add(e, out);
  if (!integer(left, a) || !integer(right, b)) return false;
  switch (e.op) {
    case BinaryOp::lt:
      out = Value::of_bool(a < b);
      return true;
    case BinaryOp::le:
      out = Value::of_bool(a <= b);
      return true;
    case BinaryOp::gt:
      out = Value::of_bool(a > b);
      return true;
    case BinaryOp::ge:
      out = Value::of_bool(a >= b);
      return true;
    default:
      out = Value::of(0);
      return arithmetic(e, a, b, out.integer);
  }
}

namespace {

/// Rounded down; false for the one quotient that does not fit. REQUIRES: b != 0.
bool divide(int64_t a, int64_t b, int64_t& out) {
  precondition(b != 0);
  if (b == -1) return !__builtin_sub_overflow(int64_t{0}, a, &out);
  out = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  return true;
}

/// The remainder has the divisor's sign. REQUIRES: b != 0.
int64_t remainder(int64_t a, int64_t b) {
  precondition(b != 0);
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// REQUIRES: 0 <= b < 64.
bool shift_left(int64_t a, int64_t b, int64_t& out) {
  precondition(b >= 0 && b < 64);
  out = static_cast<int64_t>(static_cast<uint64_t>(a) << b);
  return out >> b == a;
}

/// By squaring. False if it does not fit. REQUIRES: b >= 0.
bool power(int64_t a, int64_t b, int64_t& out) {
  precondition(b >= 0);
  out = 1;
  while (true) {
    if ((b & 1) != 0 && __builtin_mul_overflow(out, a, &out)) return false;
    b >>= 1;
    if (b == 0) return true;
    if (__builtin_mul_overflow(a, a, &a)) return false;
  }
}

/// False if the result does not fit. REQUIRES: an operation of numbers whose right side is good.
bool compute(BinaryOp op, int64_t a, int64_t b, int64_t& out) {
  switch (op) {
    case BinaryOp::add:
      return !__builtin_add_overflow(a, b, &out);
    case BinaryOp::sub:
      return !__builtin_sub_overflow(a, b, &out);
    case BinaryOp::mul:
      return !__builtin_mul_overflow(a, b, &out);
    case BinaryOp::div:
      return divide(a, b, out);
    case BinaryOp::mod:
      out = remainder(a, b);
      return true;
    case BinaryOp::pow:
      return power(a, b, out);
    case BinaryOp::shl:
      return shift_left(a, b, out);
    case BinaryOp::shr:
      out = a >> b;
      return true;
    case BinaryOp::bit_and:
      out = a & b;
      return true;
    case BinaryOp::bit_or:
      out = a | b;
      return true;
    default:
      out = a ^ b;
      return true;
  }
}

}  // namespace

bool Evaluator::overflow(const Expr& e) {
  fail("overflow", e, fmt::format("overflow in '{}'", ast_.text(e.place)));
  return false;
}

bool Evaluator::arithmetic(const Expr& e, int64_t a, int64_t b, int64_t& out) {
  const bool divides = e.op == BinaryOp::div || e.op == BinaryOp::mod;
  const bool shifts = e.op == BinaryOp::shl || e.op == BinaryOp::shr;
  if (divides && b == 0) {
    fail("division-by-zero", e, "division by zero");
    return false;
  }
  if (shifts && (b < 0 || b > 63)) {
    fail("shift", e, fmt::format("a shift by {}, which is outside 0..63", b));
    return false;
  }
  if (e.op == BinaryOp::pow && b < 0) {
    fail("power", e, fmt::format("a power of {}, which is below 0", b));
    return false;
  }
  return compute(e.op, a, b, out) || overflow(e);
}

/// The sum of two numbers, or one list after another. The left side is not a known number.
bool Evaluator::add(const Expr& e, Value& out) {
  Value left, right;
  if (!eval(e.kids[0], left)) return false;
  if (left.kind == ValueKind::integer) {
    int64_t b = 0;
    if (!integer(e.kids[1], b)) return false;
    out = Value::of(0);
    return arithmetic(e, left.integer, b, out.integer);
  }
  if (left.kind != ValueKind::list) {
    return expected("a number or a list", left.kind, e.kids[0]);
  }
  if (!eval(e.kids[1], right)) return false;
  if (right.kind != ValueKind::list) return expected("a list", right.kind, e.kids[1]);
  return join(e, *left.list, *right.list, out);
}

bool Evaluator::equal(const Expr& e, bool& out) {
  Value a, b;
  if (!eval(e.kids[0], a) || !eval(e.kids[1], b)) return false;
  if (a.kind < ValueKind::integer || a.kind > ValueKind::list) {
    return expected("a value", a.kind, e.kids[0]);
  }
  if (a.kind != b.kind) return expected(kind_text(a.kind), b.kind, e.kids[1]);
  if (a.kind != ValueKind::list) {
    out = a.integer == b.integer;
    return true;
  }
  const List &x = *a.list, &y = *b.list;
  out = x.count == y.count;
  if (out && x.data == nullptr && y.data == nullptr) {
    out = x.count == 0 ||
          (x.first == y.first && std::min(x.hole, x.count) == std::min(y.hole, y.count));
    return true;
  }
  for (int64_t i = 0; out && i < x.count; ++i) out = x[i] == y[i] && steps_.take(e.place);
  return !steps_.stopped();
}

bool Evaluator::index(const Expr& e, Value& out) {
  Value of;
  int64_t i = 0;
  if (!eval(e.kids[0], of)) return false;
  if (of.kind != ValueKind::list) return expected("a list", of.kind, e.kids[0]);
  if (!integer(e.kids[1], i)) return false;
  if (i < 0 || i >= of.list->count) {
    fail("index", e.kids[1],
         fmt::format("index {} is outside '{}', which has {} element{}", i,
                     ast_.text(e.kids[0].place), of.list->count, of.list->count == 1 ? "" : "s"));
    return false;
  }
  out = Value::of((*of.list)[i]);
  return true;
}

// ---- calls -----------------------------------------------------------------------------------

bool Evaluator::call(const Expr& e, Value& out) {
  return ast::is_function(e.kids[0].name.id) ? call_builtin(e, out) : call_function(e, out);
}

bool Evaluator::call_function(const Expr& e, Value& out) {
  const ast::Symbol name = e.kids[0].name.id;
  const Value callee = names_.of(name);
  if (callee.kind == ValueKind::unbound) return false;
  if (callee.kind != ValueKind::function) return expected("a function", callee.kind, e.kids[0]);
  const ast::Definition& f = *callee.function;
  if (f.parameters.size() + 1 != e.count) {
    fail("argument-count", e.place,
         fmt::format("'{}' takes {} argument{}; {} given", ast_.text(name), f.parameters.size(),
                     f.parameters.size() == 1 ? "" : "s",
                     e.count == 2 ? "1 is" : fmt::format("{} are", e.count - 1)));
    return false;
  }
  if (!steps_.take(e.place, kStepsOfCall)) return false;
  if (depth_ >= kMaxExpansion) {
    fail("too-deep", e.place, fmt::format("expansion deeper than {}", kMaxExpansion));
    return false;
  }
  const Locals& body_names = names_.locals(name);
  // Arguments are evaluated before the caller's values of the same names are put aside.
  const size_t arguments = names_.mark();
  for (uint32_t i = 1; i < e.count; ++i) {
    Value v;
    if (!eval(e.kids[i], v)) {
      names_.drop(arguments);
      return false;
    }
    names_.push(v);
  }
  const size_t mark = names_.save(body_names);
  for (uint32_t i = 0; i < f.parameters.size(); ++i) {
    names_.of(f.parameters[i].id) = names_.saved(arguments + i);
  }
  ++depth_;
  bool good = true;
  for (const ast::Definition& d : f.locals) {
    Value v;
    good = good && eval(d.value, v);
    names_.of(d.name.id) = v;
  }
  good = good && eval(f.value, out);
  --depth_;
  names_.restore(body_names, mark);
  names_.drop(arguments);
  return good;
}

bool Evaluator::call_builtin(const Expr& e, Value& out) {
  const ast::Symbol f = e.kids[0].name.id;
  if (f == ast::w_min || f == ast::w_max || f == ast::w_sum) return fold(e, out);
  const uint32_t given = e.count - 1, wanted = f == ast::w_ceil_div ? 2 : 1;
  if (given != wanted) {
    fail("argument-count", e.place,
         fmt::format("'{}' takes {} argument{}; {} given", ast_.text(f), wanted,
                     wanted == 1 ? "" : "s", given == 1 ? "1 is" : fmt::format("{} are", given)));
    return false;
  }
  if (f == ast::w_len) {
    Value v;
    if (!eval(e.kids[1], v)) return false;
    if (v.kind != ValueKind::list) return expected("a list", v.kind, e.kids[1]);
    out = Value::of(v.list->count);
    return true;
  }
  int64_t a = 0, b = 0;
  if (!integer(e.kids[1], a)) return false;
  if (f == ast::w_ceil_div) return integer(e.kids[2], b) && ceil_div(e, a, b, out);
  if (a <= 0) {
    fail("logarithm", e, fmt::format("log2 of {}", a));
    return false;
  }
  out = Value::of(std::bit_width(static_cast<uint64_t>(a)) - 1);
  return true;
}

bool Evaluator::ceil_div(const Expr& e, int64_t a, int64_t b, Value& out) {
  if (b == 0) {
    fail("division-by-zero", e, "division by zero");
    return false;
  }
  int64_t quotient = 0;
  if (!divide(a, b, quotient)) return overflow(e);
  out = Value::of(quotient + (remainder(a, b) != 0 ? 1 : 0));
  return true;
}

/// Takes one more number into min, max or sum.
bool Evaluator::fold_one(const Expr& e, int64_t v, bool first, int64_t& out) {
  if (e.kids[0].name.id == ast::w_sum) {
    return !__builtin_add_overflow(first ? 0 : out, v, &out) || overflow(e);
  }
  const bool less = e.kids[0].name.id == ast::w_min;
  if (first || (less ? v < out : v > out)) out = v;
  return true;
}

/// min, max and sum, of numbers or of a list. Only a sum may be of nothing.
bool Evaluator::fold(const Expr& e, Value& out) {
  const std::string_view name = ast_.text(e.kids[0].name.id);
  if (e.count == 1) {
    fail("argument-count", e.place, fmt::format("'{}' of nothing", name));
    return false;
  }
  int64_t result = 0;
  if (e.count == 2) {
    Value v;
    if (!eval(e.kids[1], v)) return false;
    if (v.kind == ValueKind::list) {
      if (v.list->count == 0 && e.kids[0].name.id != ast::w_sum) {
        fail("empty-list", e, fmt::format("'{}' of an empty list", name));
        return false;
      }
      if (!steps_.rounds(v.list->count, e.place)) return false;
      for (int64_t i = 0; i < v.list->count; ++i) {
        if (!steps_.take(e.place) || !fold_one(e, (*v.list)[i], i == 0, result)) return false;
      }
      out = Value::of(result);
      return true;
    }
  }
  for (uint32_t i = 1; i < e.count; ++i) {
    int64_t v = 0;
    if (!integer(e.kids[i], v) || !fold_one(e, v, i == 1, result)) return false;
  }
  out = Value::of(result);
  return true;
}

}  // namespace mscclc
