// Where ops come from: what is known of each op's statement in each chain of expansions that leads
// to it, and the places in the text that the program keeps.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/unroll/operand_reader.h"

namespace mscclc {

/// An op's statement in one chain of expansions.
struct OpPlan {
  const ast::Stmt* stmt = nullptr;
  uint32_t context = 0, site = 0;
  std::vector<OperandPlan> operands;
};

class OpSites {
 public:
  explicit OpSites(UnrollScope& scope)
      : scope_(scope), ast_(scope.ast), evaluator_(scope.evaluator), builder_(scope.builder) {}

  /// What is known of the statement in the chain of expansions at hand.
  OpPlan& plan_of(const ast::Stmt& s);
  /// The values of the variables that distinguish ops, shared by ops in the same round of all
  /// loops.
  Slice present_values();
  /// The ops that follow stand where their text says.
  void written_locations(ast::Array<const ast::Location> written);

  /// Goes into an expansion, and gives what leave() takes; nothing if there were too many.
  std::optional<uint32_t> enter(const ast::DefCall& s);
  void leave(uint32_t outer) { context_ = outer; }

  /// By site of another unroller: ours. New ones come in the order of its own.
  std::vector<uint32_t> take(const OpSites& other);

 private:
  /// Steps that a new chain of expansions costs, as it is kept.
  static constexpr uint64_t kStepsOfChain = 64;
  static constexpr size_t kPlanCache = 256;

  OpPlan& make_plan(const ast::Stmt& s);
  uint32_t new_site(const ast::Stmt& s);
  FileId program_file(std::string_view name);
  std::vector<uint32_t> take_contexts(const OpSites& other);

  UnrollScope& scope_;
  const ast::Ast& ast_;
  Evaluator& evaluator_;
  Builder& builder_;
  std::map<std::pair<const ast::Stmt*, uint32_t>, OpPlan> plans_;
  std::vector<OpPlan*> plan_cache_ = std::vector<OpPlan*>(kPlanCache);  ///< direct-mapped
  std::map<std::pair<const ast::Stmt*, uint32_t>, uint32_t> contexts_;
  uint32_t context_ = 0;  ///< the chain of expansions at hand
  Slice values_;
};

}  // namespace mscclc
