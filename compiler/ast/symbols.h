// Words as integers: the lexer interns every word once, everything else compares symbols. Words
// that mean something to the language have fixed symbols, from the tables of words and of ops.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/ops/ops.h"
#include "ir/support/precondition.h"

namespace mscclc::ast {

/// An interned word; index it with Names.
using Symbol = uint32_t;
inline constexpr Symbol kNoSymbol = 0xffffffffu;

/// The words with fixed symbols: keywords, functions, ops (`w_put` …), well-known names.
enum Word : Symbol {
#define KEYWORD(word) w_##word,
#define FUNCTION(word)
#include "ir/ops/words.def"
  w_first_function,
  w_before_functions = w_first_function - 1,
#define KEYWORD(word)
#define FUNCTION(word) w_##word,
#include "ir/ops/words.def"
  w_first_op,
  w_before_ops = w_first_op - 1,
#define OP(name, ...) w_##name,
#include "ir/ops/ops.def"
#undef OP
  w_first_free,  ///< from here on words are not reserved
  w_before_free = w_first_free - 1,
#define WELL_KNOWN(word) w_##word,
#include "compiler/ast/words.def"
#undef WELL_KNOWN
  w_count,
};

/// Words that are no names anywhere: those that an expression, or what follows one, may have.
constexpr bool is_reserved(Symbol s) {
  return s == w_for || s == w_if || s == w_else || s == w_in || s == w_where ||
         (s >= w_then && s < w_first_function);
}
inline bool is_function(Symbol s) { return s >= w_first_function && s < w_first_op; }
/// REQUIRES: `s` is the name of an op.
inline OpKind op_of(Symbol s) {
  precondition(s >= w_first_op && s < w_first_free);
  return static_cast<OpKind>(s - w_first_op);
}

/// Words and their symbols. Texts are owned by the Sources (or are string literals).
class Names {
 public:
  Names();
  Symbol intern(std::string_view word) { return intern(word, hash(word)); }
  Symbol intern(std::string_view word, uint32_t hash);
  std::string_view text(Symbol s) const { return texts_[s]; }
  size_t size() const { return texts_.size(); }
  static uint32_t hash(std::string_view word);

 private:
  struct TableCell {
    uint32_t hash, symbol;  // symbol kNoSymbol: free
  };
  struct FixedWords {};
  explicit Names(FixedWords);
  void grow();
  std::vector<std::string_view> texts_;
  std::vector<TableCell> table_;  // open addressing, size a power of two
};

}  // namespace mscclc::ast
