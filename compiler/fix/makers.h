// Makers of candidates: from an error, and the text that it is about, to changes that may fix it.
// A maker needs no proof that its change is right (judge.h finds out), only to be few and near.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/fix/edits.h"
#include "compiler/fix/outline.h"
#include "compiler/fix/scope.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc::fix {

/// An error, and where it is in the text.
class Case {
 public:
  Case(const Outline& outline, const std::string& file, const Diagnostic& error,
       std::vector<Candidate>& out);

  const Outline& outline() const { return outline_; }
  const Diagnostic& error() const { return error_; }
  const Scope& scope() const { return scope_; }
  /// The byte that the error is at; kNothing: at none of this file.
  uint32_t at() const { return at_; }
  /// The statements of bodies that the error and its notes are at, the most important ones first.
  const std::vector<uint32_t>& anchors() const { return anchors_; }
  /// They, and what encloses them.
  std::vector<uint32_t> around() const;
  /// The statements of the same blocks, in order, as far out as thread blocks.
  std::vector<uint32_t> neighbours() const;
  /// All statements of bodies.
  std::vector<uint32_t> all() const;

  void add(std::string title, std::vector<TextEdit> edits);
  /// A new statement before, or after, another one, on a line of its own where that has one.
  void insert_before(uint32_t statement, const std::string& text);
  void insert_after(uint32_t statement, const std::string& text);
  void erase(uint32_t statement);
  /// Puts `text` in the place of a word; before it; after it.
  void replace(uint32_t word, const std::string& text);
  void put_before(uint32_t word, const std::string& text);
  void put_after(uint32_t word, const std::string& text);

  std::string_view word(uint32_t i) const { return outline_.text(outline_.words()[i]); }
  Tok kind(uint32_t i) const {
    return i < outline_.words().size() ? outline_.words()[i].kind : Tok::end;
  }

 private:
  uint32_t byte_of(const Span& span, const std::string& file) const;
  void add_anchor(const Span& span, const std::string& file);
  void add_uses(uint32_t declaration);
  std::string line_text(uint32_t byte) const;

  const Outline& outline_;
  const std::string& file_;
  const Diagnostic& error_;
  std::vector<Candidate>& out_;
  Scope scope_;
  uint32_t at_ = kNothing;
  std::vector<uint32_t> anchors_;
};

using Maker = void (*)(Case&);

// make_spelling.cc: words, and the signs between them.
void respell(Case& c);
void rename(Case& c);
void fix_syntax(Case& c);
void close_braces(Case& c);
// make_declarations.cc: options of buffers and channels.
void add_copies(Case& c);
void change_packets(Case& c);
void change_credits(Case& c);
void change_partner(Case& c);
// make_order.cc: what orders ops.
void add_signals(Case& c);
void add_syncs(Case& c);
void change_relaxed(Case& c);
void reorder(Case& c);
void move_declarations(Case& c);
void erase_repeated(Case& c);
void erase_statements(Case& c);
// make_operands.cc: keys, indices, operands.
void add_keys(Case& c);
void change_operands(Case& c);
void change_op(Case& c);
void change_everywhere(Case& c);

}  // namespace mscclc::fix
