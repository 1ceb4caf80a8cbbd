// Declarations of row functions:
//
//   row NAME(x: row T, eps: scalar f32) round: once {
//     let squares = mean(x * x)
//     out y: row T = x * rsqrt(squares + eps)
//   }
#pragma once

#include <optional>

#include "compiler/rows/row_exprs.h"

namespace mscclc::rows {

/// `: kind type`, as in `: groups(128) f32`. `input`: of an argument, or of a result; else of
/// either. False after a mistake, which is reported.
bool read_stored(const ast::Ast& ast, TokenStream& in, Stored& into, std::optional<bool> input);

class RowParser {
 public:
  RowParser(const ast::Ast& ast, TokenStream& in, Diagnostics& diagnostics)
      : ast_(ast),
        in_(in),
        diagnostics_(diagnostics),
        nodes_(function_, in),
        exprs_(ast, in, nodes_) {}
  RowParser(const RowParser&) = delete;
  RowParser& operator=(const RowParser&) = delete;

  /// One declaration, up to its '}'; nullopt after mistakes, which are reported, once the '}' is
  /// passed. Once only. REQUIRES: at the word 'row'.
  std::optional<Function> declaration();
  /// As it is written; not given after a mistake in front of it.
  const ast::Name& name() const { return name_; }

 private:
  bool head();
  bool parameters();
  bool parameter();
  bool rounding();
  bool body();
  bool end_statement();
  bool statement();
  bool let();
  bool out();
  bool at_text(std::string_view text) const;
  void skip_statement(uint32_t begin);
  bool skip_body();
  void warn_of_unused();

  const ast::Ast& ast_;
  TokenStream& in_;
  Diagnostics& diagnostics_;
  Function function_;
  NodeMaker nodes_;
  RowExprs exprs_;
  ast::Name name_;
  std::map<ast::Symbol, ast::TextRange> outputs_;
};

}  // namespace mscclc::rows
