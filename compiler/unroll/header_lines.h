// The lines above the ranks: names, parameters, conditions, `select`, `launch`; the contract's go
// to ContractLines.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/unroll/contract_lines.h"

namespace mscclc {

class HeaderLines {
 public:
  HeaderLines(UnrollScope& scope, ContractLines& contract)
      : scope_(scope),
        ast_(scope.ast),
        evaluator_(scope.evaluator),
        builder_(scope.builder),
        contract_(contract),
        values_(scope),
        used_defines_(scope.defines.size(), false) {}

  void line(const Item& item);
  /// After all lines: are the arrays of flags as they can be with this contract?
  bool check_flags();
  /// After all lines: reports what -D defines without need.
  void unknown_defines();
  bool is_param(std::string_view name) const;

 private:
  void row(const ast::RowItem& s);
  void externals(const ast::Externals& s);
  void flags(const ast::FlagsDecl& s);
  bool flag_words(const ast::FlagsDecl& s, FlagArray& out);
  void param(const ast::Let& s);
  bool override_param(const ast::Definition& d, const Define& define, Value& v);
  void require(const ast::Require& s);
  void select(const ast::Options& s);
  void launch(const ast::Options& s);

  UnrollScope& scope_;
  const ast::Ast& ast_;
  Evaluator& evaluator_;
  Builder& builder_;
  ContractLines& contract_;
  OptionValues values_;
  std::vector<bool> used_defines_;
  std::vector<std::string_view> params_;
  std::vector<Mark> flag_marks_;  ///< by array of flags
};

}  // namespace mscclc
