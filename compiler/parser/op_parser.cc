#include "compiler/parser/op_parser.h"

namespace mscclc {

using ast::Stmt;
using ast::StmtKind;
using ast::TextRange;

const Stmt* OpParser::op() {
  ast::OpStmt* s = in_.start<ast::OpStmt>(StmtKind::op);
  s->op = ast::op_of(in_.tok().symbol);
  const size_t mark = operands_.mark();
  in_.advance();
  const Of what = s->op == OpKind::apply ? Of::function : Of::op;
  if (what == Of::function) {
    if (!in_.at_name()) return in_.no("the name of a row function");
    s->function = in_.take_name();
  }
  const bool bare = in_.fresh() || in_.tok().kind == Tok::arrow || in_.tok().kind == Tok::at ||
                    in_.tok().kind == Tok::semicolon || in_.tok().kind == Tok::rbrace ||
                    in_.tok().kind == Tok::end;
  if (!bare && !operands(what)) return nullptr;
  s->dst_count = static_cast<uint32_t>(operands_.mark() - mark);
  if (in_.here(Tok::arrow)) {
    s->has_arrow = true;
    in_.advance_line();
    if (!operands(what)) return nullptr;
    s->src_count = static_cast<uint32_t>(operands_.mark() - mark) - s->dst_count;
  }
  if (in_.here(ast::w_then) && !then(*s)) return nullptr;
  s->operands = operands_.take(mark, ast_.arena());
  if (in_.here(Tok::name) && !options(s->options)) return nullptr;
  if (in_.here(Tok::at) && !locations(s->locations)) return nullptr;
  return in_.finish(s);
}

/// `then FUNCTION results <- parameters`: externals, and on each side one `_`.
bool OpParser::then(ast::OpStmt& s) {
  s.has_then = true;
  in_.advance();
  if (!in_.at_name()) return in_.expected("the name of a row function");
  s.function = in_.take_name();
  uint32_t params = 0;
  return then_side(s.result_count, s.output) && in_.expect(Tok::arrow, "'<-'") &&
         then_side(params, s.sum);
}

/// `place` is that of `_`, of which `count` leaves out.
bool OpParser::then_side(uint32_t& count, uint32_t& place) {
  bool found = false;
  uint32_t all = 0;
  do {
    if (in_.here(Tok::name) && in_.tok().symbol == ast::w__) {
      if (found) return in_.expected("an external, as one '_' stands for the sum");
      found = true;
      place = all;
      in_.advance();
    } else {
      if (!operand(Of::function)) return false;
      ++count;
    }
    ++all;
  } while (in_.accept_comma());
  return found || in_.expected("', _', which stands for the sum or for its result");
}

/// The blocks are an expression: `barrier 0..4`.
const Stmt* OpParser::barrier() {
  ast::Barrier* s = in_.start<ast::Barrier>(StmtKind::barrier);
  in_.advance();
  if (!exprs_.expr(s->blocks)) return nullptr;
  if (in_.here(Tok::at) && !locations(s->locations)) return nullptr;
  return in_.finish(s);
}

bool OpParser::operands(Of what) {
  do {
    if (!operand(what)) return false;
  } while (in_.accept_comma());
  return true;
}

/// A name; but a word of the language in front of another name is the next statement, which lacks
/// its ';'.
bool OpParser::at_operand() {
  if (!in_.at_name()) return false;
  if (in_.tok().kind == Tok::name || in_.peek().kind != Tok::name || in_.next().newline)
    return true;
  return in_.next().symbol == ast::w_relaxed || in_.next().symbol == ast::w_op ||
         in_.next().symbol == ast::w_part || in_.next().symbol == ast::w_complete;
}

/// A number is taken for an index, or for an argument of a row function: the error says how to
/// write which.
bool OpParser::no_operand(Of what) {
  if (!in_.here(Tok::integer) && !in_.here(Tok::decimal)) return in_.expected("an operand");
  return in_.expected(
      what == Of::function
          ? "an operand (a buffer's chunk or an external; a number stands in the row function, "
            "or comes with the call: 'external g: scalar f32')"
          : "an operand (a buffer, and the number of its chunk in brackets: 'input[0]')");
}

bool OpParser::operand(Of what) {
  if (!at_operand()) return no_operand(what);
  ast::Operand o;
  const uint32_t begin = in_.tok().place.begin;
  o.head = in_.take_name();
  if (in_.here(Tok::lbracket) && !exprs_.index_list(o.index)) return false;
  o.head_end = in_.last_end();
  if (in_.accept(Tok::dot)) {
    if (!in_.at_name()) return in_.expected("the name of a buffer");
    o.member = in_.take_name();
    if (in_.here(Tok::lbracket) && !exprs_.index_list(o.member_index)) return false;
  }
  o.place = in_.since(begin);
  if (in_.here(ast::w_for)) {
    if (file_.is_ir) return in_.not_in_ir(in_.tok().place, "'for'");
    in_.advance();
    ast::Binder* b = ast_.arena().make<ast::Binder>();
    if (!exprs_.binder(*b)) return false;
    o.binder = b;
  }
  operands_.push(o);
  return true;
}

bool OpParser::options(ast::Array<const ast::Option>& out) {
  const size_t mark = options_.mark();
  do {
    if (!option()) return false;
  } while (in_.accept_comma());
  out = options_.take(mark, ast_.arena());
  return true;
}

bool OpParser::option() {
  // `then:` is an option, too, though 'then' is no name.
  const bool named = in_.here(Tok::name) || in_.here(ast::w_then);
  if (!named) return in_.expected("an option");
  ast::Option o;
  const uint32_t begin = in_.tok().place.begin;
  o.name = in_.take_name();
  if (in_.accept(Tok::colon) && !exprs_.value(o)) return false;
  o.place = in_.since(begin);
  options_.push(o);
  return true;
}

bool OpParser::locations(ast::Array<const ast::Location>& out) {
  const size_t mark = locations_.mark();
  while (in_.here(Tok::at)) {
    if (!location()) return false;
  }
  out = locations_.take(mark, ast_.arena());
  return true;
}

/// `@"file":line:column(name=value, …)`
bool OpParser::location() {
  ast::Location l;
  const uint32_t begin = in_.tok().place.begin;
  in_.advance();
  if (in_.here(Tok::string)) {
    TextRange place;
    if (!in_.string_value(l.file, place) || !in_.expect(Tok::colon, "':'")) return false;
  }
  if (!location_number(l.line) || !in_.expect(Tok::colon, "':'") || !location_number(l.column)) {
    return false;
  }
  if (in_.here(Tok::lparen)) {
    const Token opened = in_.tok();
    const size_t mark = values_.mark();
    in_.open_bracket();
    do {
      if (!location_value()) return false;
    } while (in_.accept_comma());
    l.values = values_.take(mark, ast_.arena());
    if (!in_.close(Tok::rparen, opened, "',' or ')'")) return false;
  }
  l.place = in_.since(begin);
  locations_.push(l);
  return true;
}

/// A line or a column, from 1.
bool OpParser::location_number(uint32_t& out) {
  if (!in_.here(Tok::integer)) return in_.expected("a number");
  if (in_.tok().value == 0 || in_.tok().value > UINT32_MAX) {
    in_.error("bad-location", in_.tok().place,
              std::string(ast_.text(in_.tok().place)) + " is not a line or column number");
  }
  out = static_cast<uint32_t>(in_.tok().value);
  in_.advance();
  return true;
}

/// `name=value`, the value a plain number.
bool OpParser::location_value() {
  ast::LocationValue v;
  if (!in_.at_word()) return in_.expected("a name");
  v.name = in_.take_name();
  if (!in_.here(Tok::assign)) return in_.expected("'='");
  in_.advance_line();
  const bool negative = in_.accept(Tok::sub);
  ast::Expr number;
  if (!in_.here(Tok::integer)) return in_.expected("a number");
  if (!exprs_.integer(number, negative)) return false;
  v.value = number.value;
  values_.push(v);
  return true;
}

}  // namespace mscclc
