// How much a statement certainly does, before it is done: a loop that would take minutes, or all
// memory, to find out that it is too long is refused before its first round.
//
// Only what is plain to see counts: loops whose bounds are numbers or known names, in one another;
// nothing below an `if` or `where`, and nothing of a `def`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/evaluate/evaluate.h"

namespace mscclc {

/// At least so much.
struct LeastWork {
  uint64_t rounds = 0;  ///< of loops, those of inner ones for each round of an outer one
  uint64_t ops = 0;
};

class WorkCounter {
 public:
  /// `ops_stay`: no op is left out, as those on empty rows are.
  WorkCounter(Evaluator& evaluator, bool ops_stay) : evaluator_(evaluator), ops_stay_(ops_stay) {}
  /// Of a statement that is about to be evaluated. What is declared above it is known.
  LeastWork count(const ast::Stmt& s);

 private:
  LeastWork block(const ast::Block& b);
  LeastWork loop(ast::Array<const ast::Binder> binders, const ast::Block& body, uint32_t at = 0);
  std::optional<uint64_t> length(const ast::Expr& e) const;
  std::optional<int64_t> number(const ast::Expr& e) const;
  bool known(ast::Symbol name) const;

  Evaluator& evaluator_;
  const bool ops_stay_;
  std::vector<ast::Symbol> inner_;  ///< names that get their values inside the statement
};

}  // namespace mscclc
