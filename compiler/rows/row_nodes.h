// Values of a row function as they are made: what may be made of what, and how the result spreads
// over the row. Reports what is wrong where it is written.
#pragma once

#include <array>
#include <string>

#include "compiler/tokens/token_stream.h"
#include "ir/rows/row_function.h"

namespace mscclc::rows {

class NodeMaker {
 public:
  NodeMaker(Function& function, TokenStream& in) : function_(function), in_(in) {}

  // Each gives the node, or kNoNode after a mistake, which is reported. An argument that is kNoNode
  // has been a mistake: nothing more is said of it.
  uint32_t leaf(Node node, ast::TextRange place);
  uint32_t make(Op op, std::array<uint32_t, 4> args, ast::TextRange place, Type type = Type::f32);
  /// `over`: the columns of a group; 0: the whole row.
  uint32_t reduce(Op op, uint32_t arg, uint32_t over, ast::TextRange place);
  uint32_t constant(float value, ast::TextRange place);
  /// The sum divided by the number of columns, of the row or of each group.
  uint32_t mean(uint32_t arg, uint32_t over, ast::TextRange place);

  /// Reports what keeps a value from being a result of this kind.
  bool fits(uint32_t node, const Stored& output, ast::TextRange place);

 private:
  uint32_t add(const Node& node, ast::TextRange place);
  uint32_t group_size(uint32_t over, ast::TextRange place);
  bool join(Node& node, const Node& arg, ast::TextRange place);

  Function& function_;
  TokenStream& in_;
  uint32_t reductions_ = 0;
};

}  // namespace mscclc::rows
