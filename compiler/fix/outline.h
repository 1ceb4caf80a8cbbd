// The text of a program as words and statements, whether or not it parses: where a patch can put,
// move or change something. It knows what begins and ends a statement, and no more of the grammar.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/tokens/lexer.h"

namespace mscclc::fix {

inline constexpr uint32_t kNothing = 0xffffffffu;

/// A token: bytes [begin, end) of the text.
struct Word {
  Tok kind = Tok::end;
  uint32_t begin = 0, end = 0;
  bool newline = false;  ///< the first one of its line
  bool is_word() const { return kind <= Tok::op && kind != Tok::end; }
};

/// An item or statement: words [first, end), of which [first, head) come before its block.
struct Statement {
  uint32_t first = 0, head = 0, end = 0;
  uint32_t parent = kNothing;  ///< the statement whose block it is in
  bool block = false;
};

class Outline {
 public:
  explicit Outline(std::string text);

  const std::string& text() const { return text_; }
  const std::vector<Word>& words() const { return words_; }
  const std::vector<Statement>& statements() const { return statements_; }

  std::string_view text(const Word& word) const {
    return std::string_view(text_).substr(word.begin, word.end - word.begin);
  }
  std::string_view text(const Statement& s) const {
    return std::string_view(text_).substr(begin(s), end(s) - begin(s));
  }
  /// The words before its block.
  std::string_view head_text(const Statement& s) const;
  /// The word that it begins with.
  std::string_view keyword(const Statement& s) const { return text(words_[s.first]); }
  uint32_t begin(const Statement& s) const { return words_[s.first].begin; }
  uint32_t end(const Statement& s) const { return words_[s.end - 1].end; }
  /// Does nothing stand before it, or after it, on its line (except for a comment)?
  bool begins_line(const Statement& s) const { return words_[s.first].newline; }
  bool ends_line(const Statement& s) const;

  /// The innermost statement at a byte; kNothing: none.
  uint32_t statement_at(uint32_t byte) const;
  /// The word at a byte; kNothing: none.
  uint32_t word_at(uint32_t byte) const;
  /// The byte of a line and column, both from 1; kNothing if there is none.
  uint32_t byte_of(uint32_t line, uint32_t column) const;
  /// The line of a byte, from 1.
  uint32_t line_of(uint32_t byte) const;
  /// What ends its lines: "\n", or "\r\n" as at the first.
  std::string newline() const;
  /// Is it IR text, whose first word is 'ir'?
  bool is_ir() const { return !words_.empty() && text(words_[0]) == "ir"; }
  /// The statements in the same block, itself included, in order.
  std::vector<uint32_t> block_of(uint32_t statement) const;
  /// The item that a statement is in.
  uint32_t item_of(uint32_t statement) const;
  /// Is it in the body of a rank or of a definition? Only there patches change something.
  bool in_body(uint32_t statement) const;
  /// The words of all other items: what the program promises, and its parameters.
  std::string promises() const;

 private:
  void read_words();
  void read_statements();
  bool ends_before(uint32_t word) const;

  std::string text_;
  std::vector<Word> words_;
  std::vector<Statement> statements_;
};

}  // namespace mscclc::fix
