#include "tests/structure/tokens.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace mscclc::structure {
namespace {

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  std::vector<Token> read() {
    while (at_ < source_.size()) step();
    return std::move(tokens_);
  }

 private:
  bool sees(std::string_view text) const { return source_.substr(at_).starts_with(text); }

  void move_to(size_t end) {
    end = std::min(end, source_.size());
    const std::string_view passed = source_.substr(at_, end - at_);
    const size_t lines = static_cast<size_t>(std::count(passed.begin(), passed.end(), '\n'));
    if (lines > 0) line_begins_ = true;
    line_ += lines;
    at_ = end;
  }

  void add(std::string_view text, size_t end) {
    const size_t begin = at_, line = line_;
    move_to(end);
    tokens_.push_back({text, line, source_.substr(begin, at_ - begin)});
    line_begins_ = false;
  }

  void step() {
    const char c = source_[at_];
    if (std::isspace(static_cast<unsigned char>(c))) return move_to(at_ + 1);
    if (sees("//")) return move_to(source_.find('\n', at_));
    if (sees("/*")) return move_to(after("*/", at_ + 2));
    if (c == '#' && line_begins_) return skip_directive();
    if (sees("R\"")) return add_raw_string();
    if (c == '"') return add("\"", closing_quote('"'));
    if (c == '\'') return add("'", closing_quote('\''));
    if (is_word_character(c)) return add_word();
    if (sees("::") || sees("->")) return add(source_.substr(at_, 2), at_ + 2);
    add(source_.substr(at_, 1), at_ + 1);
  }

  size_t after(std::string_view text, size_t from) const {
    const size_t found = source_.find(text, from);
    return found == source_.npos ? source_.size() : found + text.size();
  }

  void skip_directive() {
    size_t end = source_.find('\n', at_);
    while (end != source_.npos && source_[end - 1] == '\\') end = source_.find('\n', end + 1);
    move_to(end);
  }

  /// A number may have quotes between its digits.
  void add_word() {
    const bool number = std::isdigit(static_cast<unsigned char>(source_[at_]));
    size_t end = at_;
    while (end < source_.size() &&
           (is_word_character(source_[end]) || (number && source_[end] == '\''))) {
      ++end;
    }
    add(source_.substr(at_, end - at_), end);
  }

  size_t closing_quote(char quote) const {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    return end + 1;
  }

  void add_raw_string() {
    const size_t open = source_.find('(', at_);
    const std::string end = ")" + std::string(source_.substr(at_ + 2, open - at_ - 2)) + "\"";
    add("\"", after(end, open));
  }

  std::string_view source_;
  size_t at_ = 0, line_ = 1;
  bool line_begins_ = true;  ///< nothing but spaces since the line began
  std::vector<Token> tokens_;
};

}  // namespace

bool Token::is_word() const { return is_word_character(text.front()); }

std::vector<Token> tokens(std::string_view source) { return Reader(source).read(); }

}  // namespace mscclc::structure
