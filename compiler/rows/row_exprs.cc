#include "compiler/rows/row_exprs.h"

#include <bit>
#include <charconv>
#include <optional>

#include "compiler/rows/row_types.h"

namespace mscclc::rows {

using ast::TextRange;

namespace {

constexpr std::array<uint32_t, 4> kNoArguments = {kNoNode, kNoNode, kNoNode, kNoNode};

std::optional<Op> find_call(std::string_view text) {
#define ROW_OP(name, ...) \
  if (text == #name) return Op::call_##name;
#include "ir/rows/row_words.def"
#undef ROW_OP
  return {};
}

std::optional<Op> find_reduction(std::string_view text) {
#define ROW_REDUCTION(name, ...) \
  if (text == #name) return Op::reduce_##name;
#include "ir/rows/row_words.def"
#undef ROW_REDUCTION
  return {};
}

bool is_function(std::string_view text) {
  return find_call(text) || find_reduction(text) || find_type(text) || text == "mean";
}

bool is_word(std::string_view text) {
  return is_function(text) || find_kind(text) || text == "out" || text == "let";
}

/// Levels deeper for as long as it lives.
class Deeper {
 public:
  explicit Deeper(uint32_t& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  uint32_t& depth_;
};

}  // namespace

uint32_t RowExprs::expr() { return conditional(); }

/// Reports an expression that nests too deep.
bool RowExprs::deeper() {
  if (depth_ < kMaxExprDepth) return true;
  in_.error("nested-too-deep", in_.tok().place,
            "the expression nests deeper than " + std::to_string(kMaxExprDepth) +
                " levels; name parts of it with 'let'");
  return false;
}

/// `if a < b then x else y`, or a sum.
uint32_t RowExprs::conditional() {
  if (!deeper()) return kNoNode;
  const Deeper level(depth_);
  if (!in_.here(ast::w_if)) return sum();
  const uint32_t begin = in_.tok().place.begin;
  in_.advance_line();
  uint32_t left = sum();
  if (left == kNoNode) return kNoNode;
  const Tok compare = in_.fresh() ? Tok::end : in_.tok().kind;
  if (compare < Tok::eq || compare > Tok::ge) {
    in_.expected("'<', '<=', '>', '>=', '==' or '!='");
    return kNoNode;
  }
  in_.advance_line();
  uint32_t right = sum();
  if (right == kNoNode || !in_.expect_anywhere(ast::w_then)) return kNoNode;
  in_.set_fresh(false);
  uint32_t yes = conditional();
  if (yes == kNoNode || !in_.expect_anywhere(ast::w_else)) return kNoNode;
  in_.set_fresh(false);
  uint32_t no = conditional();
  if (compare == Tok::gt || compare == Tok::ge) std::swap(left, right);
  if (compare == Tok::ne) std::swap(yes, no);
  const Op op = compare == Tok::eq || compare == Tok::ne   ? Op::if_equal
                : compare == Tok::lt || compare == Tok::gt ? Op::if_less
                                                           : Op::if_most;
  return nodes_.make(op, {left, right, yes, no}, in_.since(begin));
}

uint32_t RowExprs::sum() {
  const uint32_t begin = in_.tok().place.begin;
  uint32_t value = product();
  while (value != kNoNode && (in_.here(Tok::add) || in_.here(Tok::sub))) {
    const Op op = in_.tok().kind == Tok::add ? Op::add : Op::sub;
    in_.advance_line();
    const uint32_t right = product();
    value = nodes_.make(op, {value, right, kNoNode, kNoNode}, in_.since(begin));
  }
  return value;
}

uint32_t RowExprs::product() {
  const uint32_t begin = in_.tok().place.begin;
  uint32_t value = unary();
  while (value != kNoNode && (in_.here(Tok::mul) || in_.here(Tok::div))) {
    const Op op = in_.tok().kind == Tok::mul ? Op::mul : Op::div;
    in_.advance_line();
    const uint32_t right = unary();
    value = nodes_.make(op, {value, right, kNoNode, kNoNode}, in_.since(begin));
  }
  return value;
}

uint32_t RowExprs::unary() {
  if (!in_.here(Tok::sub)) return primary();
  if (!deeper()) return kNoNode;
  const Deeper level(depth_);
  const uint32_t begin = in_.tok().place.begin;
  in_.advance_line();
  const uint32_t value = unary();
  return nodes_.make(Op::negate, {value, kNoNode, kNoNode, kNoNode}, in_.since(begin));
}

uint32_t RowExprs::primary() {
  if (in_.here(Tok::integer) || in_.here(Tok::decimal)) return number();
  if (in_.here(Tok::lparen)) return parenthesis();
  if (in_.at_name()) return word();
  in_.expected("a value");
  return kNoNode;
}

uint32_t RowExprs::number() {
  const TextRange place = in_.tok().place;
  const std::string_view text = ast_.text(place);
  float value = static_cast<float>(in_.tok().value);
  if (in_.tok().kind == Tok::decimal) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) {
      in_.error("number-too-large", place, "the number does not fit in f32; write a nearer one");
      return kNoNode;
    }
  }
  in_.advance();
  return nodes_.constant(value, place);
}

uint32_t RowExprs::parenthesis() {
  const Token opened = in_.tok();
  in_.open_bracket();
  const uint32_t value = conditional();
  if (value == kNoNode || !in_.close(Tok::rparen, opened, "')'")) return kNoNode;
  return value;
}

uint32_t RowExprs::word() {
  const Token name = in_.tok();
  in_.advance();
  return in_.here(Tok::lparen) ? call(name) : reference(name);
}

/// "; did you mean 'weight'?", or what else helps.
std::string RowExprs::remedy(std::string_view text) const {
  std::vector<std::string_view> all;
  for (const auto& [symbol, known] : names_) all.push_back(ast_.text(symbol));
  const std::string near = nearest(text, all);
  if (!near.empty()) return "; did you mean '" + near + "'?";
  return "; declare it as a parameter or with 'let', above";
}

uint32_t RowExprs::reference(const Token& name) {
  const auto found = names_.find(name.symbol);
  if (found != names_.end()) {
    found->second.used = true;
    return found->second.node;
  }
  const std::string_view text = ast_.text(name.symbol);
  if (text == "columns") return nodes_.leaf({.op = Op::columns}, name.place);
  if (is_function(text)) {
    in_.error("wrong-kind", name.place,
              "'" + std::string(text) + "' is a function; write its arguments in parentheses");
  } else {
    in_.error("unknown-name", name.place,
              "unknown name '" + std::string(text) + "'" + remedy(text));
  }
  return kNoNode;
}

uint32_t RowExprs::call(const Token& name) {
  const std::string text(ast_.text(name.symbol));
  if (!is_function(text)) {
    in_.error("unknown-name", name.place,
              "row functions know no function '" + text + "'; they know " + function_words());
    return kNoNode;
  }
  const Token opened = in_.tok();
  in_.open_bracket();
  std::array<uint32_t, 4> args = kNoArguments;
  uint32_t count = 0, over = 0;
  do {
    const uint32_t value = conditional();
    if (value == kNoNode) return kNoNode;
    if (count < args.size()) args[count] = value;
    ++count;
  } while (in_.accept_comma());
  if (in_.here(ast::w_for) && (find_reduction(text) || text == "mean")) {
    in_.advance();
    over = read_group_size(in_);
    if (over == 0) return kNoNode;
  }
  if (!in_.close(Tok::rparen, opened, "',' or ')'")) return kNoNode;
  const TextRange place = in_.since(name.place.begin);
  if (count == 1 && find_reduction(text)) {
    return nodes_.reduce(*find_reduction(text), args[0], over, place);
  }
  if (count == 1 && text == "mean") return nodes_.mean(args[0], over, place);
  if (count == 1 && find_type(text)) {
    return nodes_.make(Op::round, args, place, *find_type(text));
  }
  return function_call(name, find_call(text).value_or(Op::round), args, count);
}

/// A call with arguments that no reduction has. Op::round: of a function that takes one argument.
uint32_t RowExprs::function_call(const Token& name, Op op, std::array<uint32_t, 4> args,
                                 uint32_t count) {
  const uint32_t wanted = argument_count(op);
  if (count == wanted) return nodes_.make(op, args, in_.since(name.place.begin));
  in_.error("argument-count", name.place,
            "'" + std::string(ast_.text(name.symbol)) + "' takes " + std::to_string(wanted) +
                (wanted == 1 ? " argument, not " : " arguments, not ") + std::to_string(count) +
                (find_reduction(ast_.text(name.symbol))
                     ? "; over groups of columns write '(value for 128)'"
                     : ""));
  return kNoNode;
}

uint32_t read_group_size(TokenStream& in) {
  const uint64_t value = in.tok().value;
  if (!in.here(Tok::integer)) return in.expected("how many columns a group has"), 0;
  if (value < 2 || value > kMaxGroup || !std::has_single_bit(value)) {
    in.error("option-value", in.tok().place,
             "a group has a power of two columns, from 2 to " + std::to_string(kMaxGroup));
    return 0;
  }
  in.advance();
  return static_cast<uint32_t>(value);
}

bool RowExprs::may_declare(const ast::Name& name) {
  const std::string text(ast_.text(name));
  if (is_word(text)) {
    in_.error("reserved-name", ast_.place(name),
              "'" + text + "' is a word of row functions; choose another name");
    return false;
  }
  const auto found = names_.find(name.id);
  if (found == names_.end()) return true;
  in_.error("redeclared", ast_.place(name), "'" + text + "' is declared twice")
      .notes.push_back({"the first is here", ast_.span(found->second.place)});
  return false;
}

}  // namespace mscclc::rows
