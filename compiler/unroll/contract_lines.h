// The contract: the `collective` line and the `ensure` lines of a custom one.
#pragma once

#include "compiler/unroll/option_values.h"

namespace mscclc {

class ContractLines {
 public:
  explicit ContractLines(UnrollScope& scope)
      : scope_(scope),
        ast_(scope.ast),
        evaluator_(scope.evaluator),
        builder_(scope.builder),
        values_(scope) {}

  void collective(const ast::Collective& s);
  void ensure(const ast::Ensure& s);

  /// After all lines; false after a mistake, which is reported.
  bool check_rows();

  bool has_collective() const { return has_collective_; }
  ast::TextRange collective_place() const { return collective_place_; }
  /// False after a mistake that makes all else pointless.
  bool usable() const { return usable_; }
  /// Something in another line makes all else pointless.
  void set_unusable() { usable_ = false; }

 private:
  bool collective_options(const ast::Collective& s, CollectiveSpec& spec);
  bool then_option(const ast::Expr& e, uint32_t& out);
  bool ensure_term(const ast::Term& t, Side side, CallerChunk& out);
  void ensure_inputs(const ast::Ensure& s, Promise& promise);

  UnrollScope& scope_;
  const ast::Ast& ast_;
  Evaluator& evaluator_;
  Builder& builder_;
  OptionValues values_;
  bool has_collective_ = false, usable_ = true;
  ast::TextRange collective_place_, then_;
};

}  // namespace mscclc
