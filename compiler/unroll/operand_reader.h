// Operands of ops: first the way that any of them can go, then the fast one for those whose indexes
// are numbers, which is nearly all of them.
#pragma once

#include <span>
#include <vector>

#include "compiler/unroll/unroll_scope.h"

namespace mscclc {

/// Operands of the present op; keeps its memory from op to op.
class RefList {
 public:
  void clear() { size_ = 0; }
  /// A new operand, whose fields are still to be set.
  Ref& add() {
    if (size_ == refs_.size()) refs_.resize(2 * size_ + 8);
    return refs_[size_++];
  }
  std::span<const Ref> all() const { return {refs_.data(), size_}; }
  size_t size() const { return size_; }
  void cut(size_t size) { size_ = size; }

 private:
  std::vector<Ref> refs_;
  size_t size_ = 0;
};

/// The numbers in an operand's brackets.
struct OperandValues {
  static constexpr size_t kMax = 8;
  int64_t key[kMax], at[kMax];
  uint32_t keys = 0, index = 0;
  int64_t* place[2 * kMax];  ///< those of them that are the variable of the operand's `for`
  uint32_t places = 0;
};

/// An operand as it is written, and what of it stays the same while one rank's body runs.
struct OperandPlan {
  enum class Form : uint8_t { general, chunk, end, far_chunk };
  const ast::Operand* written = nullptr;
  bool steady = false;    ///< `for p in L`, and p stands in the brackets as it is or not at all
  uint32_t rank = kNone;  ///< for which the rest holds
  Form form = Form::general;
  Mark mark;
  uint32_t traits = 0, buffer = 0;  ///< chunk
  const Layout* layout = nullptr;   ///< chunk
  const Family* family = nullptr;   ///< end, far_chunk
  NameId far = 0;                   ///< far_chunk

  bool steady_except(ast::Symbol name) const;
};

class OperandReader {
 public:
  explicit OperandReader(UnrollScope& scope)
      : scope_(scope),
        ast_(scope.ast),
        evaluator_(scope.evaluator),
        builder_(scope.builder),
        draft_(scope.builder.state().draft()),
        owned_(scope.builder.state().owned()) {}

  /// Fills `out` with the operands, of which one may be invalid after a mistake.
  void read(ast::Array<const ast::Operand> list, RefList& out);
  /// The same, the fast way where that goes.
  void read(std::span<OperandPlan> plans, RefList& out);

 private:
  bool range_index(const ast::Expr& e, Index& out);
  bool indexes(ast::Array<const ast::Expr> list);
  bool keys(ast::Array<const ast::Expr> list);
  void operand(const ast::Operand& o, Ref& out);
  /// One of this rank's: a chunk, a semaphore, or rows of an external.
  void own_operand(const ast::Operand& o, ValueKind kind, NameId thing, Ref& out);
  void flag_operand(const ast::Operand& o, uint32_t array, Ref& out);
  /// What is not one has members named.
  void not_a_channel(const ast::Operand& o, ValueKind kind);
  void channel_operand(const ast::Operand& o, NameId channel, Ref& out);
  bool add_operand(const ast::Operand& o, RefList& out);

  void renew(OperandPlan& plan);
  bool number(const ast::Expr& e, int64_t& out);
  bool numbers(const OperandPlan& plan, OperandValues& v, ast::Symbol binder);
  bool find_chunks(const OperandValues& v, const Layout& layout, Operand& out);
  bool fill(const OperandPlan& plan, const OperandValues& v, Ref& out);
  bool fill_all(const OperandPlan& plan, const ast::Binder& binder, RefList& out);

  UnrollScope& scope_;
  const ast::Ast& ast_;
  Evaluator& evaluator_;
  Builder& builder_;
  const Draft& draft_;
  const Declarations& owned_;
  std::vector<Index> index_scratch_;
  std::vector<int64_t> key_scratch_;
};

}  // namespace mscclc
