// Ops and barriers: operands, options and place of a statement, handed to the builder.
#pragma once

#include "compiler/unroll/op_sites.h"
#include "compiler/unroll/operand_reader.h"

namespace mscclc {

class OpReader {
 public:
  OpReader(UnrollScope& scope, OpSites& sites)
      : scope_(scope),
        ast_(scope.ast),
        evaluator_(scope.evaluator),
        builder_(scope.builder),
        sites_(sites),
        operands_(scope) {}

  void op(const ast::OpStmt& s);
  void barrier(const ast::Barrier& s);

 private:
  void apply(const ast::OpStmt& s, const OpOptions& options);
  bool op_options(const ast::OpStmt& s, OpOptions& out);
  bool summation_option(const ast::Option& o, OpOptions& out);
  bool part_option(const ast::Option& o, OpOptions& out);

  UnrollScope& scope_;
  const ast::Ast& ast_;
  Evaluator& evaluator_;
  Builder& builder_;
  OpSites& sites_;
  OperandReader operands_;
  RefList dsts_, srcs_, results_, params_;
};

}  // namespace mscclc
