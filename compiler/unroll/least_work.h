// How much a statement certainly does, before it is done: a loop that would take minutes, or all
// memory, to find out that it is too long is refused before its first round.
//
// Only what is plain to see counts: loops whose bounds are numbers or known names, in one another,
// and calls of defs; nothing below an `if` or `where`.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/ast/ast.h"
#include "compiler/evaluate/evaluate.h"

namespace mscclc {

/// At least so much.
struct LeastWork {
  uint64_t rounds = 0;  ///< of loops and calls, those of inner ones for each round of an outer one
  uint64_t ops = 0;
  bool may_do_ops = false;  ///< there is one, though perhaps below an `if`
};
/// What is known of defs, by name: it is the same wherever they are called.
using DefWork = std::unordered_map<ast::Symbol, LeastWork>;

class WorkCounter {
 public:
  /// `ops_stay`: no op is left out, as those on empty rows are.
  WorkCounter(Evaluator& evaluator, bool ops_stay, DefWork& defs)
      : evaluator_(evaluator), ops_stay_(ops_stay), defs_(defs) {}
  /// Of a statement that is about to be evaluated. What is declared above it is known.
  LeastWork count(const ast::Stmt& s);

 private:
  LeastWork block(const ast::Block& b);
  LeastWork call(ast::Symbol def);
  LeastWork loop(ast::Array<const ast::Binder> binders, const ast::Block& body, uint32_t at = 0);
  std::optional<uint64_t> length(const ast::Expr& e) const;
  std::optional<int64_t> number(const ast::Expr& e) const;
  bool known(ast::Symbol name) const;

  Evaluator& evaluator_;
  const bool ops_stay_;
  DefWork& defs_;
  int depth_ = 0;                   ///< of calls
  std::vector<ast::Symbol> inner_;  ///< names that get their values inside the statement
};

}  // namespace mscclc
