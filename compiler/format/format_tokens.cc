#include "compiler/format/format_tokens.h"

#include <algorithm>

namespace mscclc {
namespace {

bool arithmetic(Tok kind) { return kind >= Tok::add && kind <= Tok::bit_xor; }
bool binary(Tok kind) { return kind >= kFirstOperator && kind <= kLastOperator; }

/// Ends an operand, so that a '-' after it is no sign.
bool ends_operand(const FormatToken& t) {
  return t.kind == Tok::name || t.kind == Tok::integer || t.kind == Tok::string ||
         t.kind == Tok::rparen || t.kind == Tok::rbracket || t.symbol == ast::w_true ||
         t.symbol == ast::w_false;
}

/// A newline after these does not end a statement.
bool continues(Tok kind) {
  return kind == Tok::comma || kind == Tok::arrow || kind == Tok::assign ||
         (binary(kind) && kind != Tok::range);
}

/// Words of the language that are names here: all but those at the beginning of a statement, `to`
/// after the rank of a channel, `at` after the indices of a promise, and functions that are called.
bool is_name(const std::vector<FormatToken>& tokens, uint32_t i) {
  const FormatToken& t = tokens[i];
  const bool word = t.kind == Tok::keyword || t.kind == Tok::op || t.kind == Tok::function;
  if (!word || ast::is_reserved(t.symbol) || i == 0) return false;
  const FormatToken& before = tokens[i - 1];
  if (t.symbol == ast::w_to && before.kind == Tok::rparen) return false;
  if (t.symbol == ast::w_at && before.kind == Tok::rbracket) return false;
  if (t.kind == Tok::function && tokens[i + 1].kind == Tok::lparen) return false;
  const bool begins = t.separated || before.kind == Tok::lbrace || before.kind == Tok::rbrace ||
                      (t.newlines > 0 && t.brackets == 0 && !continues(before.kind));
  return !begins;
}

/// Decides the space in front of each token of a statement, which is a run of `tokens`.
class Spacing {
 public:
  explicit Spacing(std::vector<FormatToken>& tokens) : t_(tokens) {}

  void set(uint32_t i) {
    const Tok before = t_[i - 1].kind;
    if (before == Tok::lbrace || before == Tok::rbrace || t_[i].kind == Tok::rbrace ||
        t_[i].separated || (t_[i].newlines > 0 && t_[i].brackets == 0)) {
      location_ = false;
    }
    t_[i].spaces = spaces(i);
    // A word of the language would be one at the beginning of a line.
    const bool word = t_[i].kind == Tok::name && t_[i].symbol < ast::w_first_free &&
                      !ast::is_function(t_[i].symbol);
    const bool goes_on = continues(before) && before != Tok::in_;  // `for p in others` is one
    t_[i].breakable = goes_on && !location_ && !sign(i - 1) && !word;
    if (t_[i].kind == Tok::at) location_ = true;
  }

 private:
  bool sign(uint32_t i) const {
    return t_[i].kind == Tok::sub && (i == 0 || !ends_operand(t_[i - 1]));
  }
  /// A name or number that is all there is on the left, or right, of a '..' at `i`.
  bool plain_left(uint32_t i) const {
    return i > 0 && (t_[i - 1].kind == Tok::name || t_[i - 1].kind == Tok::integer) &&
           (i == 1 || !arithmetic(t_[i - 2].kind));
  }
  bool plain_right(uint32_t i) const {
    const Tok next = t_[i + 2].kind;
    return (t_[i + 1].kind == Tok::name || t_[i + 1].kind == Tok::integer) && !arithmetic(next) &&
           next != Tok::lparen && next != Tok::lbracket;
  }
  bool open_range(uint32_t i) const {
    const FormatToken& next = t_[i + 1];
    return next.kind == Tok::comma || next.kind == Tok::rparen || next.kind == Tok::lbrace ||
           next.kind == Tok::rbrace || next.kind == Tok::at || next.kind == Tok::end ||
           next.separated || (next.newlines > 0 && next.brackets == 0);
  }
  uint8_t spaces(uint32_t i) const {
    const FormatToken &a = t_[i - 1], &b = t_[i];
    if (b.kind == Tok::comma || b.kind == Tok::colon || b.kind == Tok::dot) return 0;
    if (b.kind == Tok::rparen || b.kind == Tok::rbracket) return 0;
    if (a.kind == Tok::lparen || a.kind == Tok::lbracket || a.kind == Tok::dot) return 0;
    if (a.kind == Tok::lbrace && b.kind == Tok::rbrace) return 0;
    if (a.kind == Tok::at || sign(i - 1)) return 0;
    if (b.kind == Tok::at) return location_ ? 1 : 2;
    if (location_ && (a.kind == Tok::colon || a.kind == Tok::assign)) return 0;
    if (location_ && (b.kind == Tok::lparen || b.kind == Tok::assign)) return 0;
    if (b.kind == Tok::lparen)
      return a.kind != Tok::name && a.kind != Tok::op && a.kind != Tok::function;
    if (b.kind == Tok::lbracket) return !ends_operand(a);
    if (b.kind == Tok::range) return !plain_left(i) || !(open_range(i) || plain_right(i));
    if (a.kind == Tok::range) return !plain_left(i - 1) || !plain_right(i - 1);
    return 1;
  }

  std::vector<FormatToken>& t_;
  bool location_ = false;  // after the first '@' of a statement
};

/// Newlines of `gap` on top of `before`, at most 2.
uint8_t newlines_in(std::string_view gap, uint8_t before) {
  const auto count = std::count(gap.begin(), gap.end(), '\n') + before;
  return static_cast<uint8_t>(std::min<ptrdiff_t>(2, count));
}

std::string_view without_trailing_space(std::string_view text) {
  while (text.ends_with(' ') || text.ends_with('\t') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

/// Fills in what brackets and braces say.
void match_brackets(std::vector<FormatToken>& tokens) {
  std::vector<uint32_t> braces;
  uint16_t brackets = 0;
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    FormatToken& t = tokens[i];
    brackets -= t.kind == Tok::rparen || t.kind == Tok::rbracket;
    t.brackets = brackets;
    brackets += t.kind == Tok::lparen || t.kind == Tok::lbracket;
    if (t.kind == Tok::lbrace) braces.push_back(i);
    if (t.kind == Tok::rbrace) {
      t.match = braces.back();
      tokens[t.match].match = i;
      braces.pop_back();
    }
  }
}

}  // namespace

FormatTokens format_tokens(const ast::File& file, ast::Ast& ast) {
  FormatTokens out;
  Diagnostics none;
  Lexer lexer(file, ast, none, true);
  uint32_t end = 0;
  FormatToken t;  // what stands in front of the next token gathers here
  Token token;
  do {
    lexer.next(token);
    const uint32_t begin = token.place.begin - file.base;
    t.newlines = newlines_in(file.text.substr(end, begin - end), t.newlines);
    end = token.place.end - file.base;
    t.kind = token.kind;
    t.symbol = token.symbol;
    t.text = file.text.substr(begin, end - begin);
    if (token.kind == Tok::semicolon) {
      t.separated = true;
    } else if (token.kind == Tok::comment) {
      const auto before = static_cast<uint32_t>(out.tokens.size());
      out.comments.push_back({before, t.newlines, without_trailing_space(t.text)});
      t.newlines = 0;
    } else {
      out.tokens.push_back(t);
      t = {};
    }
  } while (token.kind != Tok::end);
  match_brackets(out.tokens);
  out.tokens.push_back({});  // so that one may look two tokens ahead
  for (uint32_t i = 0; i + 2 < out.tokens.size(); ++i) {
    if (is_name(out.tokens, i)) out.tokens[i].kind = Tok::name;
  }
  Spacing spacing(out.tokens);
  for (uint32_t i = 1; i + 1 < out.tokens.size(); ++i) spacing.set(i);
  out.tokens.pop_back();
  return out;
}

uint32_t FormatTokens::statement_end(uint32_t at) const {
  for (uint32_t i = at;; ++i) {
    const FormatToken& t = tokens[i];
    if (t.kind == Tok::end || t.kind == Tok::rbrace) return i;
    const bool closes = t.kind == Tok::rparen || t.kind == Tok::rbracket;
    const bool goes_on = t.symbol == ast::w_then || t.symbol == ast::w_else;
    const bool fresh = t.newlines > 0 && t.brackets == 0 && !closes && !goes_on;
    if (i > at && (t.separated || (fresh && !continues(tokens[i - 1].kind)))) return i;
    if (t.kind != Tok::lbrace) continue;
    i = t.match;
    const FormatToken& next = tokens[i + 1];
    if (next.symbol != ast::w_else && next.kind != Tok::comma) return i + 1;
  }
}

}  // namespace mscclc
