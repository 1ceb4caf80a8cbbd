#include "compiler/parser/expr_parser.h"

#include <utility>

#include "ir/support/precondition.h"

namespace mscclc {

using ast::Expr;
using ast::ExprKind;
using ast::TextRange;

namespace {

// Levels of binding, loosest first; 0 is no operator. Bit operators bind tightest here, and may
// not stand beside any other operator anyway.
constexpr int kOr = 1, kAnd = 2, kNot = 3, kCompare = 4, kExcept = 5, kRange = 6, kAdd = 7,
              kMultiply = 8, kPower = 9, kBits = 10;

constexpr int level(Tok kind) {
  if (kind < kFirstOperator || kind > kLastOperator) return 0;
  if (kind >= Tok::shl) return kBits;
  if (kind == Tok::pow) return kPower;
  if (kind >= Tok::mul) return kMultiply;
  if (kind >= Tok::add) return kAdd;
  if (kind == Tok::range) return kRange;
  if (kind == Tok::except) return kExcept;
  if (kind >= Tok::eq) return kCompare;
  return kind == Tok::and_ ? kAnd : kOr;
}

ast::BinaryOp binary_op(Tok kind) {
  return static_cast<ast::BinaryOp>(static_cast<int>(kind) - static_cast<int>(kFirstOperator));
}
static_assert(static_cast<int>(ast::BinaryOp::bit_xor) ==
              static_cast<int>(kLastOperator) - static_cast<int>(kFirstOperator));

constexpr uint64_t kMinMagnitude = uint64_t{1} << 63;  // of the least 64-bit integer

}  // namespace

bool ExprParser::expr(Expr& out) {
  return in_.here(ast::w_if) ? conditional(out) : binary(out, kOr, nullptr);
}

bool ExprParser::deeper(TextRange place) {
  if (depth_ < ast::kMaxDepth) {
    ++depth_;
    return true;
  }
  in_.error("nested-too-deep", place,
            "the expression nests deeper than " + std::to_string(ast::kMaxDepth) +
                " levels; name parts of it with 'let'");
  return false;
}

/// Makes a node of `kids`, which are copied to the arena.
bool ExprParser::node(Expr& out, ExprKind kind, std::initializer_list<Expr> kids, TextRange place) {
  const size_t mark = exprs_.mark();
  int depth = 0;
  for (const Expr& kid : kids) {
    depth = std::max<int>(depth, kid.depth);
    exprs_.push(kid);
  }
  out = {};
  out.kind = kind;
  out.place = place;
  out.count = static_cast<uint32_t>(kids.size());
  out.kids = exprs_.take(mark, ast_.arena()).begin();
  return set_depth(out, depth, out.kids[out.count - 1].place);
}

/// `depth` is that of the deepest child; `place` is for the error if that is too deep.
bool ExprParser::set_depth(Expr& out, int depth, TextRange place) {
  const int outer = std::exchange(depth_, depth);
  const bool fits = deeper(place);
  depth_ = outer;
  out.depth = static_cast<uint16_t>(depth + 1);
  return fits;
}

bool ExprParser::conditional(Expr& out) {
  const TextRange begin = in_.tok().place;
  Expr condition, yes, no;
  if (!deeper(begin)) return false;
  in_.advance();
  if (!expr(condition) || !in_.expect_anywhere(ast::w_then) || !expr(yes) ||
      !in_.expect_anywhere(ast::w_else) || !expr(no)) {
    return false;
  }
  --depth_;
  return node(out, ExprKind::conditional, {condition, yes, no}, in_.since(begin.begin));
}

/// Operators of level `least` and tighter. `left` is the operator in front, if any.
bool ExprParser::binary(Expr& out, int least, const Token* left) {
  const uint32_t begin = in_.tok().place.begin;
  bool power = false;  // `out` is one
  if (!(in_.here(Tok::not_) ? negation(out, least, left) : bits(out, left))) return false;
  while (!in_.fresh() && level(in_.tok().kind) >= least && level(in_.tok().kind) != 0) {
    if (in_.tok().kind == Tok::range && open_range()) break;
    const Token op = in_.tok();
    if (op.kind == Tok::pow && !may_be_power(begin, power)) return false;
    power = op.kind == Tok::pow;
    if (op.kind == Tok::range) {
      in_.advance();
    } else {
      in_.advance_line();
    }
    const Expr first = out;
    Expr second;
    if (!binary(second, level(op.kind) + 1, &op)) return false;
    if (!node(out, ExprKind::binary, {first, second}, in_.since(begin))) return false;
    out.op = binary_op(op.kind);
    if (level(op.kind) == kCompare && level(in_.tok().kind) == kCompare && !in_.fresh()) {
      in_.error("chained-comparison", in_.tok().place, "comparisons do not chain; use 'and'");
      return false;
    }
  }
  return true;
}

/// `a ** b ** c` and `-a ** b` mean different things to different readers. The left side begins at
/// `begin`, and may be a power itself.
bool ExprParser::may_be_power(uint32_t begin, bool power) {
  const bool sign = file_.text[begin - file_.base] == '-';
  if (!sign && !power) return true;
  in_.error("needs-parentheses", in_.tok().place,
            sign ? "a sign before '**' needs parentheses" : "'**' beside '**' needs parentheses");
  return false;
}

bool ExprParser::negation(Expr& out, int least, const Token* left) {
  const Token op = in_.tok();
  if (least > kNot) return needs_parentheses(op, *left);
  if (!deeper(op.place)) return false;
  in_.advance();
  Expr operand;
  if (!binary(operand, kNot, &op)) return false;
  --depth_;
  return node(out, ExprKind::not_, {operand}, in_.since(op.place.begin));
}

bool ExprParser::needs_parentheses(const Token& op, const Token& beside) {
  in_.error("needs-parentheses", op.place,
            "'" + std::string(ast_.text(op.place)) + "' beside '" +
                std::string(ast_.text(beside.place)) + "' needs parentheses");
  return false;
}

/// Operands and bit operators, which stand beside no other operator without parentheses.
bool ExprParser::bits(Expr& out, const Token* left) {
  const uint32_t begin = in_.tok().place.begin;
  if (!unary(out)) return false;
  if (level(in_.tok().kind) != kBits || in_.fresh()) return true;
  const Token op = in_.tok();
  if (left != nullptr) return needs_parentheses(op, *left);
  while (!in_.fresh() && level(in_.tok().kind) != 0) {
    if (in_.tok().kind != op.kind) return needs_parentheses(op, in_.tok());
    in_.advance_line();
    const Expr first = out;
    Expr second;
    if (in_.here(Tok::not_)) return needs_parentheses(op, in_.tok());
    if (!unary(second)) return false;
    if (!node(out, ExprKind::binary, {first, second}, in_.since(begin))) return false;
    out.op = binary_op(op.kind);
  }
  return true;
}

/// In the value of an option: true if the present `..` has no end.
bool ExprParser::open_range() {
  return open_level_ == in_.brackets() &&
         (!begins_expression(in_.peek()) || (in_.next().newline && in_.brackets() == 0));
}

bool ExprParser::begins_expression(const Token& token) {
  switch (token.kind) {
    case Tok::name:
    case Tok::function:
    case Tok::op:
    case Tok::integer:
    case Tok::string:
    case Tok::lparen:
    case Tok::lbracket:
    case Tok::sub:
    case Tok::not_:
      return true;
    case Tok::keyword:
      return token.symbol == ast::w_if || token.symbol == ast::w_true ||
             token.symbol == ast::w_false || !ast::is_reserved(token.symbol);
    default:
      return false;
  }
}

/// A minus, a primary and the indexes after it.
bool ExprParser::unary(Expr& out) {
  if (!in_.here(Tok::sub)) return indexed(out);
  const uint32_t begin = in_.tok().place.begin;
  in_.advance();
  if (in_.here(Tok::integer)) {
    if (!integer(out, true)) return false;
    out.place.begin = begin;
    return !in_.here(Tok::lbracket) || in_.expected("an operator");
  }
  Expr operand;
  return indexed(operand) && node(out, ExprKind::negate, {operand}, in_.since(begin));
}

bool ExprParser::indexed(Expr& out) {
  const uint32_t begin = in_.tok().place.begin;
  if (!primary(out)) return false;
  while (in_.here(Tok::lbracket)) {
    const Token opened = in_.tok();
    const Expr list = out;
    Expr at;
    if (!deeper(opened.place)) return false;
    in_.open_bracket();
    if (!expr(at) || !in_.close(Tok::rbracket, opened, "']'")) return false;
    --depth_;
    if (!node(out, ExprKind::index, {list, at}, in_.since(begin))) return false;
  }
  return true;
}

bool ExprParser::primary(Expr& out) {
  if (in_.fresh()) return in_.expected("an expression");
  switch (in_.tok().kind) {
    case Tok::integer:
      return integer(out, false);
    case Tok::decimal:
      in_.error("bad-number", in_.tok().place,
                "'" + std::string(ast_.text(in_.tok().place)) + "' is not a whole number");
      return false;
    case Tok::name:
      return word(out);
    case Tok::keyword:
    case Tok::function:
    case Tok::op:
      if (words_ ? !ast::is_reserved(in_.tok().symbol) : in_.at_name()) return word(out);
      break;
    case Tok::lparen:
      return parenthesis(out);
    case Tok::lbracket:
      return list(out);
    case Tok::string:
      return string(out);
    default:
      break;
  }
  if (in_.tok().symbol != ast::w_true && in_.tok().symbol != ast::w_false)
    return in_.expected("an expression");
  out.kind = ExprKind::boolean;
  out.value = in_.tok().symbol == ast::w_true;
  out.place = in_.tok().place;
  in_.advance();
  return true;
}

/// REQUIRES: at an integer.
bool ExprParser::integer(Expr& out, bool negative) {
  precondition(in_.tok().kind == Tok::integer);
  if (in_.tok().value == kMinMagnitude && !negative) {
    in_.error("number-too-large", in_.tok().place, "number does not fit in 64 bits");
  }
  out.kind = ExprKind::integer;
  out.value = static_cast<int64_t>(negative ? -in_.tok().value : in_.tok().value);
  out.place = in_.tok().place;
  in_.advance();
  return true;
}

/// A string is a value of options only.
bool ExprParser::string(Expr& out) {
  if (!words_) return in_.expected("an expression");
  std::string_view* text = ast_.arena().make<std::string_view>();
  out.kind = ExprKind::string;
  out.string = text;
  out.place = in_.tok().place;
  TextRange content;
  return in_.string_value(*text, content);
}

/// A name, a call, or a word as the value of an option.
bool ExprParser::word(Expr& out) {
  const Token name = in_.tok();
  const bool called = in_.peek().kind == Tok::lparen && (in_.brackets() > 0 || !in_.next().newline);
  const bool callable = name.kind == Tok::name || name.kind == Tok::function;
  if (called && !callable && !words_) return in_.expected("an expression");
  out.kind = ExprKind::name;
  out.name = {name.symbol, 0};
  out.place = name.place;
  in_.advance();
  return !called || call_arguments(out);
}

/// `( expr, … )` after the callee's name `out`, which becomes a call.
bool ExprParser::call_arguments(Expr& out) {
  const Token opened = in_.tok();
  const size_t mark = exprs_.mark();
  const uint32_t begin = out.place.begin;
  exprs_.push(out);
  if (!deeper(opened.place)) return false;
  in_.open_bracket();
  if (in_.tok().kind != Tok::rparen && !expr_list()) return false;
  if (!in_.close(Tok::rparen, opened, "',' or ')'")) return false;
  --depth_;
  return list_node(out, ExprKind::call, mark, in_.since(begin));
}

/// Makes a node of the expressions above `mark` on the stack.
bool ExprParser::list_node(Expr& out, ExprKind kind, size_t mark, TextRange place) {
  const ast::Array<const Expr> kids = exprs_.take(mark, ast_.arena());
  int depth = 0;
  for (const Expr& kid : kids) depth = std::max<int>(depth, kid.depth);
  out = {};
  out.kind = kind;
  out.place = place;
  out.count = kids.size();
  out.kids = kids.begin();
  return set_depth(out, depth, out.place);
}

/// One or more expressions, onto the stack.
bool ExprParser::expr_list() {
  do {
    Expr element;
    if (!expr(element)) return false;
    exprs_.push(element);
  } while (in_.accept_comma());
  return true;
}

bool ExprParser::parenthesis(Expr& out) {
  const Token opened = in_.tok();
  if (!deeper(opened.place)) return false;
  in_.open_bracket();
  if (!expr(out) || !in_.close(Tok::rparen, opened, "')'")) return false;
  --depth_;
  out.place = in_.since(opened.place.begin);
  return true;
}

bool ExprParser::list(Expr& out) {
  const Token opened = in_.tok();
  const size_t mark = exprs_.mark();
  if (!deeper(opened.place)) return false;
  in_.open_bracket();
  if (in_.tok().kind != Tok::rbracket) {
    Expr first;
    if (!expr(first)) return false;
    if (in_.here(ast::w_for)) return comprehension(out, first, opened);
    exprs_.push(first);
    if (in_.accept_comma() && !expr_list()) return false;
  }
  if (!in_.close(Tok::rbracket, opened, "',' or ']'")) return false;
  --depth_;
  return list_node(out, ExprKind::list, mark, in_.since(opened.place.begin));
}

/// After `[ element`, at `for`.
bool ExprParser::comprehension(Expr& out, const Expr& element, const Token& opened) {
  ast::Comprehension* loop = ast_.arena().make<ast::Comprehension>();
  loop->element = element;
  in_.advance();
  if (!binders(loop->binders) || !in_.close(Tok::rbracket, opened, "',' or ']'")) return false;
  --depth_;
  int depth = element.depth;
  for (const ast::Binder& b : loop->binders) {
    depth = std::max<int>({depth, b.list.depth, b.where == nullptr ? 0 : b.where->depth});
  }
  out = {};
  out.kind = ExprKind::comprehension;
  out.loop = loop;
  out.place = in_.since(opened.place.begin);
  return set_depth(out, depth, out.place);
}

bool ExprParser::index_list(ast::Array<const Expr>& out) {
  const Token opened = in_.tok();
  const size_t mark = exprs_.mark();
  if (!in_.here(Tok::lbracket)) return in_.expected("'['");
  in_.open_bracket();
  if (!expr_list()) return false;
  out = exprs_.take(mark, ast_.arena());
  return in_.close(Tok::rbracket, opened, "',' or ']'");
}

bool ExprParser::value(ast::Option& option) {
  const bool words = std::exchange(words_, true);
  const int level = std::exchange(open_level_, in_.brackets());
  if (!expr(option.value)) return false;
  option.open_end = in_.accept(Tok::range);
  words_ = words;
  open_level_ = level;
  return true;
}

bool ExprParser::binder(ast::Binder& out) {
  const uint32_t begin = in_.tok().place.begin;
  // 'for in list' lacks its name; 'for in in list' has a reserved one.
  if (in_.tok().symbol == ast::w_in && in_.peek().symbol != ast::w_in)
    return in_.expected("a name");
  if (!in_.declared_name(out.name)) return false;
  if (!in_.here(ast::w_in)) return in_.expected("'in'");
  in_.advance_line();
  if (!expr(out.list)) return false;
  if (in_.here(ast::w_where)) {
    in_.advance();
    Expr* condition = ast_.arena().make<Expr>();
    if (!expr(*condition)) return false;
    out.where = condition;
  }
  out.place = in_.since(begin);
  return true;
}

bool ExprParser::binders(ast::Array<const ast::Binder>& out) {
  const size_t mark = binders_.mark();
  do {
    if (binders_.mark() - mark == ast::kMaxBinders) {
      in_.error("nested-too-deep", in_.tok().place,
                "more than " + std::to_string(ast::kMaxBinders) + " loop variables");
      return false;
    }
    ast::Binder b;
    if (!binder(b)) return false;
    binders_.push(b);
  } while (in_.accept_comma());
  out = binders_.take(mark, ast_.arena());
  return true;
}

bool ExprParser::binder_or_expr(ast::Binder& out) {
  if (in_.at_word() && in_.peek().symbol == ast::w_in &&
      (in_.brackets() > 0 || !in_.next().newline)) {
    return binder(out);
  }
  if (!expr(out.list)) return false;
  out.place = out.list.place;
  return true;
}

bool ExprParser::define(ast::Expr& out) {
  const size_t mark = exprs_.mark();
  in_.advance();
  if (!expr_list() || in_.tok().kind != Tok::end || in_.errors() > 0) return false;
  if (exprs_.mark() > mark + 1) {
    return list_node(out, ast::ExprKind::list, mark, in_.since(file_.base));
  }
  out = exprs_.take(mark, ast_.arena())[0];
  return true;
}

bool ExprParser::expressions(ast::Array<const Expr>& out, Tok end) {
  const size_t mark = exprs_.mark();
  if (in_.tok().kind != end && !expr_list()) return false;
  out = exprs_.take(mark, ast_.arena());
  return true;
}

}  // namespace mscclc
