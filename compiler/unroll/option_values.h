// The values of options. Each call fills `out` if the option is written; false if it is not, or
// after a mistake, which is reported.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "compiler/unroll/unroll_scope.h"

namespace mscclc {

class OptionValues {
 public:
  using Options = ast::Array<const ast::Option>;

  explicit OptionValues(UnrollScope& scope) : ast_(scope.ast), evaluator_(scope.evaluator) {}

  bool number(Options options, ast::Symbol name, int64_t& out);
  bool small(Options options, ast::Symbol name, uint32_t& out);
  bool flag(Options options, ast::Symbol name, bool& out);
  /// A number or a list; true also if it is not written.
  bool dims(Options options, ast::Symbol name, std::vector<int64_t>& out);
  void range(Options options, ast::Symbol name, Range& out);
  /// Gives the words of a list to `use`, with their places.
  void words(Options options, ast::Symbol name,
             const std::function<void(std::string_view, ast::TextRange)>& use);
  /// A contract's word for the order of sums, or a choice between words.
  bool order(const ast::Expr& e, SumOrder& out);

 private:
  const ast::Ast& ast_;
  Evaluator& evaluator_;
};

}  // namespace mscclc
