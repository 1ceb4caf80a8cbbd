// What the parts of an unroller share: the text, the values of names, the builder, and the place of
// what is being done.
#pragma once

#include <vector>

#include "compiler/builder/builder.h"
#include "compiler/builder/builder_state.h"
#include "compiler/evaluate/evaluate.h"
#include "compiler/resolve/resolve.h"
#include "compiler/unroll/front_end_options.h"

namespace mscclc {

/// What an unroller is made from.
struct UnrollInput {
  const Sources& sources;
  const ast::Ast& ast;
  const ast::File& main;
  const std::vector<Define>& defines;
  const FrontEndOptions& options;
  const Resolution& resolution;
};

class UnrollScope : public Origin {
 public:
  UnrollScope(const UnrollInput& input, Diagnostics& diagnostics_in);

  const Sources& sources;
  const ast::Ast& ast;
  const ast::File& main;
  const std::vector<Define>& defines;
  const FrontEndOptions& options;
  const Resolution& resolution;
  Diagnostics& diagnostics;
  Evaluator evaluator;
  Builder builder;

  /// Steps that an op allows for.
  static constexpr uint64_t kStepsPerOp = 16;

  // Origin: places are the syntax tree's.
  Span span(Mark mark) override;
  std::string_view text(Mark mark) override;
  void add_context(Diagnostic& diagnostic) override;
  /// Of what is being done, for mistakes without a place of their own.
  void set_place(ast::TextRange place) { place_ = place; }
  ast::TextRange place() const { return place_; }

  static Mark mark_of(ast::TextRange p) { return {p.begin, p.end}; }
  Mark mark_of(const ast::Name& n) const { return mark_of(ast.place(n)); }
  static Mark mark_of(const ast::Option* o) {
    return o == nullptr ? Mark{} : mark_of(o->value.given() ? o->value.place : o->place);
  }
  NameId name_id(ast::Symbol s) {
    NameId& id = name_ids_[s];
    if (id == kNone) id = builder.intern(ast.text(s));
    return id;
  }
  /// True when going on is of no use: too many ops, steps or mistakes.
  bool halted() const {
    return evaluator.steps().stopped() || builder.gave_up() ||
           evaluator.context().mistakes() > kMaxMistakes;
  }

  /// Gives the names of a `let` their values.
  void let(const ast::Let& s);
  /// From here on the names that a declaration declares stand for things.
  void bind_names(const ast::Stmt& s);

 private:
  /// Mistakes (repetitions in loops count) after which more would show nothing new.
  static constexpr size_t kMaxMistakes = 5000;

  ast::TextRange place_, last_place_;
  Span last_span_;                ///< of last_place_
  std::vector<NameId> name_ids_;  ///< by symbol
};

}  // namespace mscclc
