#include "compiler/tokens/lexer.h"

#include <array>
#include <cstdio>
#include <string_view>

#include "ir/support/utf8.h"

namespace mscclc {
namespace {

using ast::Symbol;
using ast::TextRange;

enum Class : uint8_t { kOther, kSpace, kNewline, kLetter, kDigit, kSingle, kPunctuation };

/// What the characters that always stand alone mean.
constexpr std::array<Tok, 128> make_singles() {
  std::array<Tok, 128> kinds{};
  kinds['('] = Tok::lparen;
  kinds[')'] = Tok::rparen;
  kinds['['] = Tok::lbracket;
  kinds[']'] = Tok::rbracket;
  kinds['{'] = Tok::lbrace;
  kinds['}'] = Tok::rbrace;
  kinds[','] = Tok::comma;
  kinds[':'] = Tok::colon;
  kinds[';'] = Tok::semicolon;
  kinds['@'] = Tok::at;
  kinds['+'] = Tok::add;
  kinds['/'] = Tok::div;
  kinds['%'] = Tok::mod;
  kinds['&'] = Tok::bit_and;
  kinds['|'] = Tok::bit_or;
  kinds['^'] = Tok::bit_xor;
  return kinds;
}
constexpr std::array<Tok, 128> kSingles = make_singles();

constexpr std::array<Class, 256> make_classes() {
  std::array<Class, 256> table{};
  for (int c = 'a'; c <= 'z'; ++c) table[c] = table[c - 'a' + 'A'] = kLetter;
  for (int c = '0'; c <= '9'; ++c) table[c] = kDigit;
  table['_'] = kLetter;
  table[' '] = table['\t'] = table['\r'] = kSpace;
  table['\n'] = kNewline;
  for (int c = 0; c < 128; ++c) {
    if (kSingles[c] != Tok::end) table[c] = kSingle;
  }
  for (const char c : {'.', '=', '!', '<', '>', '*', '-'}) table[c] = kPunctuation;
  return table;
}
constexpr std::array<Class, 256> kClasses = make_classes();

Class class_of(char c) { return kClasses[static_cast<uint8_t>(c)]; }
bool in_word(char c) { return class_of(c) == kLetter || class_of(c) == kDigit; }

/// The kind of token that a word makes.
constexpr std::array<Tok, ast::w_count> make_word_kinds() {
  std::array<Tok, ast::w_count> kinds{};
  for (Symbol s = 0; s < ast::w_count; ++s) {
    kinds[s] = s < ast::w_first_function ? Tok::keyword
               : s < ast::w_first_op     ? Tok::function
               : s < ast::w_first_free   ? Tok::op
                                         : Tok::name;
  }
  kinds[ast::w_or] = Tok::or_;
  kinds[ast::w_and] = Tok::and_;
  kinds[ast::w_not] = Tok::not_;
  kinds[ast::w_in] = Tok::in_;
  kinds[ast::w_except] = Tok::except;
  return kinds;
}
constexpr std::array<Tok, ast::w_count> kWordKinds = make_word_kinds();

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string hex_byte(char c) {
  char text[5];
  std::snprintf(text, sizeof text, "\\x%02x", static_cast<uint8_t>(c));
  return text;
}

/// True if an odd number of backslashes stands before `at`, inside the string that begins at
/// `begin`.
bool escaped(const char* begin, const char* at) {
  const char* p = at;
  while (p - 1 > begin && p[-1] == '\\') --p;
  return (at - p) % 2 != 0;
}

/// "; did you mean 'KiB'?" for what people write instead of the three units.
std::string unit_remedy(char first) {
  switch (first) {
    case 'k':
    case 'K':
      return "; did you mean 'KiB'?";
    case 'm':
    case 'M':
      return "; did you mean 'MiB'?";
    case 'g':
    case 'G':
      return "; did you mean 'GiB'?";
    default:
      return "";
  }
}

}  // namespace

Lexer::Lexer(const ast::File& file, ast::Ast& ast, Diagnostics& diagnostics, bool comments)
    : ast_(ast),
      diagnostics_(diagnostics),
      base_(file.base),
      begin_(file.text.data()),
      at_(begin_),
      end_(begin_ + file.text.size()),
      comments_(comments) {
  if (file.text.starts_with("\xef\xbb\xbf")) at_ += 3;  // a byte order mark says nothing
}

Diagnostic& Lexer::error(std::string code, TextRange place, std::string message) {
  if (++errors_ == kMaxErrors) {
    at_ = end_;
    diagnostics_.error(std::move(code), ast_.span(place), std::move(message));
    const uint32_t end = base_ + static_cast<uint32_t>(end_ - begin_);
    return diagnostics_.error("too-many-errors", ast_.span(TextRange{end, end}),
                              "too many errors; the rest of the file was not read");
  }
  return diagnostics_.error(std::move(code), ast_.span(place), std::move(message));
}

void Lexer::next(Token& out) {
  out.newline = false;
  out.symbol = ast::kNoSymbol;
  while (true) {
    const char* begin = at_;
    switch (class_of(*begin)) {
      case kNewline:
        out.newline = true;
        [[fallthrough]];
      case kSpace:
        ++at_;
        continue;
      case kLetter:
        return word(out, begin);
      case kDigit:
        return integer(out, begin);
      case kSingle:
        ++at_;
        return finish(out, kSingles[static_cast<size_t>(*begin)], begin);
      case kPunctuation:
        return punctuation(out, begin);
      case kOther:
        break;
    }
    if (*begin == '#') {
      skip_text('\n');
      if (comments_) return finish(out, Tok::comment, begin);
    } else if (*begin == '"') {
      return string(out, begin);
    } else if (begin == end_) {
      return finish(out, Tok::end, begin);
    } else {
      unknown_character(begin);
    }
  }
}

void Lexer::word(Token& out, const char* begin) {
  const char* end = begin + 1;
  while (in_word(*end)) ++end;
  at_ = end;
  out.symbol = ast_.names().intern({begin, static_cast<size_t>(end - begin)});
  finish(out, out.symbol < ast::w_count ? kWordKinds[out.symbol] : Tok::name, begin);
}

void Lexer::integer(Token& out, const char* begin) {
  // Nearly all numbers are short and decimal.
  const char* p = begin;
  uint64_t value = 0;
  while (class_of(*p) == kDigit && p - begin < 18) value = value * 10 + (*p++ - '0');
  at_ = p;
  if (decimal(out, begin)) return;
  if (in_word(*p)) return long_integer(out, begin);
  out.value = value;
  finish(out, Tok::integer, begin);
}

/// A number with a fraction or an exponent, of whose whole part all or the first 18 digits have
/// been passed.
bool Lexer::decimal(Token& out, const char* begin) {
  const char* p = at_;
  while (class_of(*p) == kDigit) ++p;
  const char* const whole = p;
  if (*p == '.' && class_of(p[1]) == kDigit) {
    do ++p;
    while (class_of(*p) == kDigit);
  }
  if (*p == 'e' || *p == 'E') {
    const char* digits = p + (p[1] == '+' || p[1] == '-' ? 2 : 1);
    if (class_of(*digits) == kDigit) {
      while (class_of(*digits) == kDigit) ++digits;
      p = digits;
    }
  }
  if (p == whole || in_word(*p)) return false;
  at_ = p;
  finish(out, Tok::decimal, begin);
  return true;
}

/// Any number: hexadecimal, with '_', with a unit, too large.
void Lexer::long_integer(Token& out, const char* begin) {
  const bool hex = *begin == '0' && (begin[1] == 'x' || begin[1] == 'X');
  const char* digits = begin + (hex ? 2 : 0);
  const auto digit = [hex](char c) { return hex || class_of(c) == kDigit ? hex_digit(c) : -1; };
  uint64_t value = 0;
  bool fits = true;
  for (at_ = digits; digit(*at_) >= 0 || (*at_ == '_' && at_ != digits && digit(at_[1]) >= 0);
       ++at_) {
    if (*at_ == '_') continue;
    fits = fits && !__builtin_mul_overflow(value, hex ? 16u : 10u, &value) &&
           !__builtin_add_overflow(value, static_cast<uint64_t>(digit(*at_)), &value);
  }
  const bool no_digits = at_ == digits;
  const uint64_t scale = in_word(*at_) && !no_digits ? unit(at_) : 1;
  fits = fits && !__builtin_mul_overflow(value, scale, &value) && value <= uint64_t{1} << 63;
  if (no_digits) {
    lexical("bad-number", place(begin), "expected hexadecimal digits after '0x'");
  } else if (!fits) {
    lexical("number-too-large", place(begin), "number does not fit in 64 bits");
  }
  out.value = fits ? value : 0;
  finish(out, Tok::integer, begin);
}

/// The unit after a number: its bytes; 1 after an error.
uint64_t Lexer::unit(const char* begin) {
  while (in_word(*at_)) ++at_;
  const std::string_view name(begin, at_ - begin);
  if (name == "KiB") return uint64_t{1} << 10;
  if (name == "MiB") return uint64_t{1} << 20;
  if (name == "GiB") return uint64_t{1} << 30;
  lexical("unknown-unit", place(begin),
          "unknown unit '" + std::string(name.substr(0, 40)) + "'" + unit_remedy(name[0]));
  return 1;
}

void Lexer::string(Token& out, const char* begin) {
  ++at_;
  skip_text('"');
  while (*at_ == '"' && escaped(begin, at_)) {
    ++at_;
    skip_text('"');
  }
  if (*at_ == '"') {
    ++at_;
  } else {
    lexical("unterminated-string", place(begin), "unterminated string");
  }
  finish(out, Tok::string, begin);
}

/// To the next `stop` or newline, or the end; checks the encoding.
void Lexer::skip_text(char stop) {
  while (*at_ != stop && *at_ != '\n' && at_ != end_) {
    if (static_cast<uint8_t>(*at_) < 0x80) {
      ++at_;
    } else {
      utf8_character();
    }
  }
}

/// Passes a character that is not ASCII, or a byte that is not UTF-8: then reports it, once a file.
bool Lexer::utf8_character() {
  const size_t length = utf8_length({at_, end_});
  const char* begin = at_;
  at_ += length == 0 ? 1 : length;
  if (length == 0 && !bad_encoding_) {
    bad_encoding_ = true;
    lexical("not-utf8", place(begin), "the text is not UTF-8: byte '" + hex_byte(*begin) + "'");
  }
  return length > 0;
}

void Lexer::unknown_character(const char* begin) {
  std::string shown;
  if (static_cast<uint8_t>(*begin) >= 0x80) {
    if (!utf8_character()) return;
    shown.assign(begin, at_);
  } else {
    ++at_;
    shown = *begin < ' ' || *begin == 0x7f ? hex_byte(*begin) : std::string(1, *begin);
  }
  lexical("unknown-character", place(begin), "unknown character '" + shown + "'");
  while (class_of(*at_) == kOther && *at_ != '#' && *at_ != '"' && at_ != end_) ++at_;
}

/// `->` is read as the arrow that it should be.
void Lexer::wrong_arrow(Token& out, const char* begin) {
  at_ += 2;
  finish(out, Tok::arrow, begin);
  lexical("unknown-character", out.place, "the language has no '->'")
      .notes.push_back({"destinations come first: 'put ch.inbox[0] <- input[0]'", {}});
}

void Lexer::punctuation(Token& out, const char* begin) {
  const auto token = [&](Tok kind, int length) {
    at_ += length;
    finish(out, kind, begin);
  };
  const char second = begin[1];
  switch (*begin) {
    case '.':
      return second == '.' ? token(Tok::range, 2) : token(Tok::dot, 1);
    case '*':
      return second == '*' ? token(Tok::pow, 2) : token(Tok::mul, 1);
    case '-':
      return second == '>' ? wrong_arrow(out, begin) : token(Tok::sub, 1);
    case '=':
      return second == '=' ? token(Tok::eq, 2) : token(Tok::assign, 1);
    case '>':
      return second == '>'   ? token(Tok::shr, 2)
             : second == '=' ? token(Tok::ge, 2)
                             : token(Tok::gt, 1);
    case '<':
      return second == '-'   ? token(Tok::arrow, 2)
             : second == '<' ? token(Tok::shl, 2)
             : second == '=' ? token(Tok::le, 2)
                             : token(Tok::lt, 1);
    default:
      break;
  }
  if (second == '=') return token(Tok::ne, 2);
  token(Tok::not_, 1);
  lexical("unknown-character", out.place, "unknown character '!'")
      .notes.push_back({"use 'not'", {}});
}

}  // namespace mscclc
