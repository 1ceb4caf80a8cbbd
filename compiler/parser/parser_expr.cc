// Expressions, by precedence climbing; binders; names and strings.
#include "compiler/parser/parser_state.h"

namespace mscclc {

using ast::Expr;
using ast::ExprKind;
using ast::Place;

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

bool Parser::expr(Expr& out) {
  return here(ast::w_if) ? conditional(out) : binary(out, kOr, nullptr);
}

bool Parser::deeper(Place place) {
  if (depth_ < ast::kMaxDepth) {
    ++depth_;
    return true;
  }
  error("nested-too-deep", place,
        "the expression nests deeper than " + std::to_string(ast::kMaxDepth) +
            " levels; name parts of it with 'let'");
  return false;
}

/// Makes a node of `kids`, which are copied to the arena.
bool Parser::node(Expr& out, ExprKind kind, std::initializer_list<Expr> kids, Place place) {
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
bool Parser::set_depth(Expr& out, int depth, Place place) {
  const int outer = std::exchange(depth_, depth);
  const bool fits = deeper(place);
  depth_ = outer;
  out.depth = static_cast<uint16_t>(depth + 1);
  return fits;
}

bool Parser::conditional(Expr& out) {
  const Place begin = tok_.place;
  Expr condition, yes, no;
  if (!deeper(begin)) return false;
  advance();
  if (!expr(condition) || !expect_anywhere(ast::w_then) || !expr(yes) ||
      !expect_anywhere(ast::w_else) || !expr(no)) {
    return false;
  }
  --depth_;
  return node(out, ExprKind::conditional, {condition, yes, no}, since(begin.begin));
}

/// Operators of level `least` and tighter. `left` is the operator in front, if any.
bool Parser::binary(Expr& out, int least, const Token* left) {
  const uint32_t begin = tok_.place.begin;
  bool power = false;  // `out` is one
  if (!(here(Tok::not_) ? negation(out, least, left) : bits(out, left))) return false;
  while (!fresh_ && level(tok_.kind) >= least && level(tok_.kind) != 0) {
    if (tok_.kind == Tok::range && open_range()) break;
    const Token op = tok_;
    if (op.kind == Tok::pow && !may_be_power(begin, power)) return false;
    power = op.kind == Tok::pow;
    if (op.kind == Tok::range) {
      advance();
    } else {
      advance_line();
    }
    const Expr first = out;
    Expr second;
    if (!binary(second, level(op.kind) + 1, &op)) return false;
    if (!node(out, ExprKind::binary, {first, second}, since(begin))) return false;
    out.op = binary_op(op.kind);
    if (level(op.kind) == kCompare && level(tok_.kind) == kCompare && !fresh_) {
      error("chained-comparison", tok_.place, "comparisons do not chain; use 'and'");
      return false;
    }
  }
  return true;
}

/// `a ** b ** c` and `-a ** b` mean different things to different readers. The left side begins at
/// `begin`, and may be a power itself.
bool Parser::may_be_power(uint32_t begin, bool power) {
  const bool sign = file_.text[begin - file_.base] == '-';
  if (!sign && !power) return true;
  error("needs-parentheses", tok_.place,
        sign ? "a sign before '**' needs parentheses" : "'**' beside '**' needs parentheses");
  return false;
}

bool Parser::negation(Expr& out, int least, const Token* left) {
  const Token op = tok_;
  if (least > kNot) return needs_parentheses(op, *left);
  if (!deeper(op.place)) return false;
  advance();
  Expr operand;
  if (!binary(operand, kNot, &op)) return false;
  --depth_;
  return node(out, ExprKind::not_, {operand}, since(op.place.begin));
}

bool Parser::needs_parentheses(const Token& op, const Token& beside) {
  error("needs-parentheses", op.place,
        "'" + std::string(ast_.text(op.place)) + "' beside '" +
            std::string(ast_.text(beside.place)) + "' needs parentheses");
  return false;
}

/// Operands and bit operators, which stand beside no other operator without parentheses.
bool Parser::bits(Expr& out, const Token* left) {
  const uint32_t begin = tok_.place.begin;
  if (!unary(out)) return false;
  if (level(tok_.kind) != kBits || fresh_) return true;
  const Token op = tok_;
  if (left != nullptr) return needs_parentheses(op, *left);
  while (!fresh_ && level(tok_.kind) != 0) {
    if (tok_.kind != op.kind) return needs_parentheses(op, tok_);
    advance_line();
    const Expr first = out;
    Expr second;
    if (here(Tok::not_)) return needs_parentheses(op, tok_);
    if (!unary(second)) return false;
    if (!node(out, ExprKind::binary, {first, second}, since(begin))) return false;
    out.op = binary_op(op.kind);
  }
  return true;
}

/// In the value of an option: true if the present `..` has no end.
bool Parser::open_range() {
  return open_level_ == brackets_ &&
         (!begins_expression(peek()) || (next_.newline && brackets_ == 0));
}

bool Parser::begins_expression(const Token& token) {
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
bool Parser::unary(Expr& out) {
  if (!here(Tok::sub)) return indexed(out);
  const uint32_t begin = tok_.place.begin;
  advance();
  if (here(Tok::integer)) {
    if (!integer(out, true)) return false;
    out.place.begin = begin;
    return !here(Tok::lbracket) || expected("an operator");
  }
  Expr operand;
  return indexed(operand) && node(out, ExprKind::negate, {operand}, since(begin));
}

bool Parser::indexed(Expr& out) {
  const uint32_t begin = tok_.place.begin;
  if (!primary(out)) return false;
  while (here(Tok::lbracket)) {
    const Token opened = tok_;
    const Expr list = out;
    Expr at;
    if (!deeper(opened.place)) return false;
    open_bracket();
    if (!expr(at) || !close(Tok::rbracket, opened, "']'")) return false;
    --depth_;
    if (!node(out, ExprKind::index, {list, at}, since(begin))) return false;
  }
  return true;
}

bool Parser::primary(Expr& out) {
  if (fresh_) return expected("an expression");
  switch (tok_.kind) {
    case Tok::integer:
      return integer(out, false);
    case Tok::name:
      return word(out);
    case Tok::keyword:
    case Tok::function:
    case Tok::op:
      if (words_ ? !ast::is_reserved(tok_.symbol) : at_name()) return word(out);
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
  if (tok_.symbol != ast::w_true && tok_.symbol != ast::w_false) return expected("an expression");
  out.kind = ExprKind::boolean;
  out.value = tok_.symbol == ast::w_true;
  out.place = tok_.place;
  advance();
  return true;
}

/// REQUIRES: at an integer.
bool Parser::integer(Expr& out, bool negative) {
  if (tok_.value == kMinMagnitude && !negative) {
    error("number-too-large", tok_.place, "number does not fit in 64 bits");
  }
  out.kind = ExprKind::integer;
  out.value = static_cast<int64_t>(negative ? -tok_.value : tok_.value);
  out.place = tok_.place;
  advance();
  return true;
}

/// A string is a value of options only.
bool Parser::string(Expr& out) {
  if (!words_) return expected("an expression");
  std::string_view* text = ast_.arena().make<std::string_view>();
  out.kind = ExprKind::string;
  out.string = text;
  out.place = tok_.place;
  Place content;
  return string_value(*text, content);
}

/// A name, a call, or a word as the value of an option.
bool Parser::word(Expr& out) {
  const Token name = tok_;
  const bool called = peek().kind == Tok::lparen && (brackets_ > 0 || !next_.newline);
  const bool callable = name.kind == Tok::name || name.kind == Tok::function;
  if (called && !callable && !words_) return expected("an expression");
  out.kind = ExprKind::name;
  out.name = {name.symbol, 0};
  out.place = name.place;
  advance();
  return !called || call_arguments(out);
}

/// `( expr, … )` after the callee's name `out`, which becomes a call.
bool Parser::call_arguments(Expr& out) {
  const Token opened = tok_;
  const size_t mark = exprs_.mark();
  const uint32_t begin = out.place.begin;
  exprs_.push(out);
  if (!deeper(opened.place)) return false;
  open_bracket();
  if (tok_.kind != Tok::rparen && !expr_list()) return false;
  if (!close(Tok::rparen, opened, "',' or ')'")) return false;
  --depth_;
  return list_node(out, ExprKind::call, mark, since(begin));
}

/// Makes a node of the expressions above `mark` on the stack.
bool Parser::list_node(Expr& out, ExprKind kind, size_t mark, Place place) {
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
bool Parser::expr_list() {
  do {
    Expr element;
    if (!expr(element)) return false;
    exprs_.push(element);
  } while (accept_comma());
  return true;
}

bool Parser::parenthesis(Expr& out) {
  const Token opened = tok_;
  if (!deeper(opened.place)) return false;
  open_bracket();
  if (!expr(out) || !close(Tok::rparen, opened, "')'")) return false;
  --depth_;
  out.place = since(opened.place.begin);
  return true;
}

bool Parser::list(Expr& out) {
  const Token opened = tok_;
  const size_t mark = exprs_.mark();
  if (!deeper(opened.place)) return false;
  open_bracket();
  if (tok_.kind != Tok::rbracket) {
    Expr first;
    if (!expr(first)) return false;
    if (here(ast::w_for)) return comprehension(out, first, opened);
    exprs_.push(first);
    if (accept_comma() && !expr_list()) return false;
  }
  if (!close(Tok::rbracket, opened, "',' or ']'")) return false;
  --depth_;
  return list_node(out, ExprKind::list, mark, since(opened.place.begin));
}

/// After `[ element`, at `for`.
bool Parser::comprehension(Expr& out, const Expr& element, const Token& opened) {
  ast::Comprehension* loop = ast_.arena().make<ast::Comprehension>();
  loop->element = element;
  advance();
  if (!binders(loop->binders) || !close(Tok::rbracket, opened, "',' or ']'")) return false;
  --depth_;
  int depth = element.depth;
  for (const ast::Binder& b : loop->binders) {
    depth = std::max<int>({depth, b.list.depth, b.where == nullptr ? 0 : b.where->depth});
  }
  out = {};
  out.kind = ExprKind::comprehension;
  out.loop = loop;
  out.place = since(opened.place.begin);
  return set_depth(out, depth, out.place);
}

bool Parser::index_list(ast::Array<const Expr>& out) {
  const Token opened = tok_;
  const size_t mark = exprs_.mark();
  if (!here(Tok::lbracket)) return expected("'['");
  open_bracket();
  if (!expr_list()) return false;
  out = exprs_.take(mark, ast_.arena());
  return close(Tok::rbracket, opened, "',' or ']'");
}

bool Parser::value(ast::Option& option) {
  const bool words = std::exchange(words_, true);
  const int level = std::exchange(open_level_, brackets_);
  if (!expr(option.value)) return false;
  option.open_end = accept(Tok::range);
  words_ = words;
  open_level_ = level;
  return true;
}

// ---- binders and names ---------------------------------------------------------------------

bool Parser::binder(ast::Binder& out) {
  const uint32_t begin = tok_.place.begin;
  // 'for in list' lacks its name; 'for in in list' has a reserved one.
  if (tok_.symbol == ast::w_in && peek().symbol != ast::w_in) return expected("a name");
  if (!declared_name(out.name)) return false;
  if (!here(ast::w_in)) return expected("'in'");
  advance_line();
  if (!expr(out.list)) return false;
  if (here(ast::w_where)) {
    advance();
    Expr* condition = ast_.arena().make<Expr>();
    if (!expr(*condition)) return false;
    out.where = condition;
  }
  out.place = since(begin);
  return true;
}

bool Parser::binders(ast::Array<const ast::Binder>& out) {
  const size_t mark = binders_.mark();
  do {
    if (binders_.mark() - mark == ast::kMaxBinders) {
      error("nested-too-deep", tok_.place,
            "more than " + std::to_string(ast::kMaxBinders) + " loop variables");
      return false;
    }
    ast::Binder b;
    if (!binder(b)) return false;
    binders_.push(b);
  } while (accept_comma());
  out = binders_.take(mark, ast_.arena());
  return true;
}

bool Parser::binder_or_expr(ast::Binder& out) {
  if (at_word() && peek().symbol == ast::w_in && (brackets_ > 0 || !next_.newline)) {
    return binder(out);
  }
  if (!expr(out.list)) return false;
  out.place = out.list.place;
  return true;
}

/// A name that is being declared. A reserved word is reported and taken all the same.
bool Parser::declared_name(ast::Name& out) {
  if (!at_word()) return expected("a name");
  if (ast::is_reserved(tok_.symbol)) {
    error("reserved-name", tok_.place,
          "'" + std::string(ast_.text(tok_.place)) +
              "' is a word of the language; choose another name");
  }
  out = take_name();
  return true;
}

/// What is called stands where words of the language do, so it may not have their names.
void Parser::callable_name(const Token& name) {
  if (name.symbol == ast::kNoSymbol || name.kind == Tok::name) return;
  if (ast::is_reserved(name.symbol)) return;  // reported as a declared name
  const char* what = name.kind == Tok::op         ? "an op"
                     : name.kind == Tok::function ? "a function"
                                                  : "a word of the language";
  error("reserved-name", name.place,
        "'" + std::string(ast_.text(name.place)) + "' is " + what + "; choose another name");
}

/// The content of a string, escapes resolved; `place` is what stands between the quotes.
bool Parser::string_value(std::string_view& out, Place& place) {
  if (!here(Tok::string)) return expected("a string");
  place = tok_.place;
  ++place.begin;
  out = ast_.text(place);
  if (out.ends_with('"')) {  // else it is unterminated, as reported
    out.remove_suffix(1);
    --place.end;
  }
  advance();
  if (out.find('\\') == std::string_view::npos) return true;
  char* copy = static_cast<char*>(ast_.arena().allocate(out.size()));
  size_t length = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const char next = i + 1 < out.size() ? out[i + 1] : ' ';
    copy[length++] = out[i] == '\\' && next == 'n' ? '\n' : out[i] == '\\' ? next : out[i];
    if (out[i] != '\\') continue;
    if (next != 'n' && next != '"' && next != '\\') {
      const uint32_t at = place.begin + static_cast<uint32_t>(i);
      error("bad-escape", {at, at + 1}, "strings know \\\", \\\\ and \\n only");
    }
    ++i;
  }
  out = {copy, length};
  return true;
}

}  // namespace mscclc
