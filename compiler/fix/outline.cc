#include "compiler/fix/outline.h"

#include <algorithm>
#include <utility>

namespace mscclc::fix {

Outline::Outline(std::string text) : text_(std::move(text)) {
  read_words();
  read_statements();
}

void Outline::read_words() {
  Sources sources;
  const FileId id = sources.add("", text_);
  ast::Ast ast(sources);
  const ast::File* file = ast.add_file(id);
  if (file == nullptr) return;
  Diagnostics unused;
  Lexer lexer(*file, ast, unused);
  for (Token token;;) {
    lexer.next(token);
    if (token.kind == Tok::end) return;
    const bool first = words_.empty() || token.newline;
    words_.push_back({token.kind, token.place.begin, token.place.end, first});
  }
}

/// Does a newline before this word end a statement?
bool Outline::ends_before(uint32_t word) const {
  if (word == 0 || !words_[word].newline) return false;
  const Tok before = words_[word - 1].kind;
  const bool opens = before == Tok::comma || before == Tok::arrow || before == Tok::assign;
  const bool binary = before >= kFirstOperator && before <= kLastOperator && before != Tok::range;
  return !opens && !binary && text(words_[word]) != "then";
}

void Outline::read_statements() {
  std::vector<uint32_t> open;
  uint32_t current = kNothing;
  int brackets = 0;
  const auto end_at = [&](uint32_t word) {
    if (current == kNothing) return;
    Statement& s = statements_[current];
    s.end = word;
    if (!s.block) s.head = word;
    current = kNothing;
    brackets = 0;
  };
  for (uint32_t i = 0; i < words_.size(); ++i) {
    const Tok kind = words_[i].kind;
    if (kind == Tok::rbrace) {
      end_at(i);
      if (open.empty()) continue;
      statements_[open.back()].end = i + 1;
      open.pop_back();
      continue;
    }
    if (brackets == 0 && ends_before(i)) end_at(i);
    if (kind == Tok::semicolon) {
      end_at(i);
      continue;
    }
    if (current == kNothing) {
      current = static_cast<uint32_t>(statements_.size());
      statements_.push_back({i, i, i + 1, open.empty() ? kNothing : open.back()});
    }
    if (kind == Tok::lparen || kind == Tok::lbracket) ++brackets;
    if (kind == Tok::rparen || kind == Tok::rbracket) brackets = std::max(0, brackets - 1);
    if (kind != Tok::lbrace) continue;
    statements_[current].head = i;
    statements_[current].block = true;
    open.push_back(std::exchange(current, kNothing));
    brackets = 0;
  }
  const auto size = static_cast<uint32_t>(words_.size());
  end_at(size);
  for (const uint32_t s : open) statements_[s].end = size;
}

std::string_view Outline::head_text(const Statement& s) const {
  if (s.head == s.first) return {};
  return std::string_view(text_).substr(begin(s), words_[s.head - 1].end - begin(s));
}

bool Outline::ends_line(const Statement& s) const {
  return s.end == words_.size() || words_[s.end].newline;
}

uint32_t Outline::statement_at(uint32_t byte) const {
  uint32_t found = kNothing;
  for (uint32_t i = 0; i < statements_.size(); ++i) {
    const Statement& s = statements_[i];
    if (begin(s) <= byte && byte < end(s)) found = i;  // inner ones come later
  }
  return found;
}

uint32_t Outline::word_at(uint32_t byte) const {
  for (uint32_t i = 0; i < words_.size(); ++i) {
    if (words_[i].begin <= byte && byte < words_[i].end) return i;
  }
  return kNothing;
}

uint32_t Outline::byte_of(uint32_t line, uint32_t column) const {
  size_t at = 0;
  for (uint32_t n = 1; n < line; ++n) {
    at = text_.find('\n', at);
    if (at == std::string::npos) return kNothing;
    ++at;
  }
  return column == 0 || at + column - 1 > text_.size() ? kNothing
                                                       : static_cast<uint32_t>(at + column - 1);
}

std::string Outline::newline() const {
  const size_t first = text_.find('\n');
  const bool both = first != std::string::npos && first > 0 && text_[first - 1] == '\r';
  return both ? "\r\n" : "\n";
}

uint32_t Outline::line_of(uint32_t byte) const {
  return 1 + static_cast<uint32_t>(std::count(text_.begin(), text_.begin() + byte, '\n'));
}

std::vector<uint32_t> Outline::block_of(uint32_t statement) const {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < statements_.size(); ++i) {
    if (statements_[i].parent == statements_[statement].parent) found.push_back(i);
  }
  return found;
}

uint32_t Outline::item_of(uint32_t statement) const {
  while (statements_[statement].parent != kNothing) statement = statements_[statement].parent;
  return statement;
}

bool Outline::in_body(uint32_t statement) const {
  const std::string_view word = keyword(statements_[item_of(statement)]);
  return word == "rank" || word == "def";
}

std::string Outline::promises() const {
  static constexpr std::string_view kItems[] = {"language",   "ir",  "program", "import", "require",
                                                "param",      "let", "ensure",  "select", "launch",
                                                "collective", "row", "external"};
  std::string out;
  for (const Statement& s : statements_) {
    if (s.parent != kNothing || std::ranges::find(kItems, keyword(s)) == std::end(kItems)) continue;
    for (uint32_t i = s.first; i < s.end; ++i) (out += text(words_[i])) += ' ';
    out += '\n';
  }
  return out;
}

}  // namespace mscclc::fix
