// The unroller's state. Private to unroll_*.cc: the driver and statements are in unroll.cc, header
// lines in unroll_header.cc and unroll_contract.cc, options in unroll_options.cc, declarations in
// unroll_declare.cc, ops in unroll_ops.cc, their operands in unroll_operands.cc, and how several
// unrollers share the work in unroll_parts.cc.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/builder/builder_state.h"
#include "compiler/evaluate/evaluate.h"
#include "compiler/resolve/options.h"
#include "compiler/unroll/least_work.h"
#include "compiler/unroll/unroll.h"
#include "ir/program/rank_parts.h"

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
  static constexpr size_t kMost = 8;
  int64_t key[kMost], at[kMost];
  uint32_t keys = 0, index = 0;
  int64_t* place[2 * kMost];  ///< those of them that are the variable of the operand's `for`
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

/// An op's statement in one chain of expansions.
struct OpPlan {
  const ast::Stmt* stmt = nullptr;
  uint32_t context = 0, site = 0;
  std::vector<OperandPlan> operands;
};

class Unroller : public Origin {
 public:
  Unroller(const Sources& sources, const ast::Ast& ast, const ast::File& main,
           const std::vector<Define>& defines, const FrontEndOptions& options,
           const Resolution& resolution, Diagnostics& diagnostics);
  struct Outcome {
    std::optional<Program> program = {};
    bool in_vain = false;  ///< something went wrong in one of several parts: to be done in one go
  };
  Outcome run(const std::vector<Item>& items, bool in_parts);

  // Origin: places are the syntax tree's.
  Span span(Mark mark) override;
  std::string_view text(Mark mark) override;
  void add_context(Diagnostic& diagnostic) override;

 private:
  enum class Sweep : uint8_t { declare, ops };

  static Mark mark_of(ast::Place p) { return {p.begin, p.end}; }
  Mark mark_of(const ast::Name& n) const { return mark_of(ast_.place(n)); }
  static Mark mark_of(const ast::Option* o) {
    return o == nullptr ? Mark{} : mark_of(o->value.given() ? o->value.place : o->place);
  }
  NameId name_id(ast::Symbol s) {
    NameId& id = name_ids_[s];
    if (id == kNone) id = builder_.intern(ast_.text(s));
    return id;
  }
  /// True when going on is of no use: too many ops, steps or mistakes.
  bool halted() const {
    return evaluator_.stopped() || builder_.state().gave_up || evaluator_.mistakes() > kMaxMistakes;
  }
  /// Mistakes (repetitions in loops count) after which more would show nothing new.
  static constexpr size_t kMaxMistakes = 5000;
  /// Steps that an op allows for, and that a new chain of expansions costs, as it is kept.
  static constexpr uint64_t kStepsPerOp = 16, kStepsOfChain = 64;

  // ---- header (unroll_header.cc) ----
  void header(const Item& item);
  void let(const ast::Let& s);
  void param(const ast::Let& s);
  bool override_param(const ast::Definition& d, const Define& define, Value& v);
  void unknown_defines();
  void require(const ast::Require& s);
  void collective(const ast::Collective& s);
  bool collective_options(const ast::Collective& s, CollectiveSpec& spec);
  void ensure(const ast::Ensure& s);
  bool ensure_term(const ast::Term& t, Side side, Place& out);
  void ensure_inputs(const ast::Ensure& s, Promise& promise);
  void select(const ast::Options& s);
  void launch(const ast::Options& s);
  bool number_option(ast::Array<const ast::Option> options, ast::Symbol name, int64_t& out);
  bool small_option(ast::Array<const ast::Option> options, ast::Symbol name, uint32_t& out);
  bool order_word(const ast::Expr& e, SumOrder& out);
  bool flag_option(ast::Array<const ast::Option> options, ast::Symbol name, bool& out);
  bool dims_option(ast::Array<const ast::Option> options, ast::Symbol name,
                   std::vector<int64_t>& out);
  void range_option(ast::Array<const ast::Option> options, ast::Symbol name, Range& out);
  /// Words of a list option: each is given to `use`, which returns false if it does not know it.
  template <class F>
  void words_option(ast::Array<const ast::Option> options, ast::Symbol name, F use);

  // ---- bodies and statements (unroll.cc) ----
  void find_bodies(const std::vector<Item>& items);
  bool begin(const std::vector<Item>& items);
  void bodies(Sweep sweep, RankRange ranks);
  void body(uint32_t rank, Sweep sweep);
  void block(const ast::Block& b);
  void forget(const ast::Block& b);
  void statement(const ast::Stmt& s);
  bool may_end(const ast::Stmt& s, const ast::Place& place);
  void loop(const ast::For& f);
  void tb(const ast::Placed& s);
  void group(const ast::Group& s);
  void pipeline(const ast::Pipeline& s);
  bool enter_pipeline(const ast::Pipeline& s, int64_t& ir_loop);
  void if_(const ast::If& s);
  void call(const ast::Call& s);
  bool bind_arguments(const ast::Call& s, const ast::Def& def, std::vector<Value>& out);

  // ---- several unrollers (unroll_parts.cc) ----
  uint32_t count_parts() const;
  bool unroll_parts(const std::vector<Item>& items, uint32_t parts);
  bool take(Unroller& other, RankRange ranks);
  std::vector<uint32_t> take_contexts(const Unroller& other);
  std::vector<uint32_t> take_sites(const Unroller& other);
  void misplaced(const ast::Stmt& s, std::string_view what);

  // ---- declarations (unroll_declare.cc) ----
  void declare(const ast::Stmt& s);
  void bind_names(const ast::Stmt& s);
  bool dimension(const ast::Expr& e, Dim& out);
  bool buffer_dims(const ast::BufferDecl& s, std::vector<Dim>& dims);
  bool buffer_rows(ast::Array<const ast::Binder> dims, uint32_t at, Rows& out);
  bool declare_buffer(const ast::BufferDecl& s, const BufferOptions& options);
  bool packets(const ast::Expr& e, PacketFormat& out);
  void buffer(const ast::BufferDecl& s);
  void channel(const ast::ChannelDecl& s);
  bool one_channel(const ast::ChannelDecl& s, ChannelKind kind);
  void semaphore(const ast::SemaphoreDecl& s);
  template <class F>
  bool each_key(ast::Array<const ast::Binder> keys, F body);

  // ---- operands (unroll_operands.cc) ----
  bool range_index(const ast::Expr& e, Index& out);
  bool indexes(ast::Array<const ast::Expr> list);
  bool keys(ast::Array<const ast::Expr> list);
  /// Fills `out`, which is invalid after a mistake.
  void operand(const ast::Operand& o, Ref& out);
  void buffer_operand(const ast::Operand& o, NameId buffer, Ref& out);
  void channel_operand(const ast::Operand& o, NameId channel, Ref& out);
  void operands(ast::Array<const ast::Operand> list, RefList& out);
  void renew(OperandPlan& plan);
  bool number(const ast::Expr& e, int64_t& out);
  bool numbers(const OperandPlan& plan, OperandValues& v, ast::Symbol binder);
  bool find_chunks(const OperandValues& v, const Layout& layout, Operand& out);
  bool fill(const OperandPlan& plan, const OperandValues& v, Ref& out);
  bool fill_all(const OperandPlan& plan, const ast::Binder& binder, RefList& out);
  bool add_operand(const ast::Operand& o, RefList& out);
  void planned_operands(std::span<OperandPlan> plans, RefList& out);

  // ---- ops (unroll_ops.cc) ----
  void op(const ast::OpStmt& s);
  void barrier(const ast::Barrier& s);
  bool summation_option(const ast::Option& o, OpOptions& out);
  bool op_options(const ast::OpStmt& s, OpOptions& out);
  bool part_option(const ast::Option& o, OpOptions& out);
  Slice present_values();
  OpPlan& plan_of(const ast::Stmt& s);
  OpPlan& make_plan(const ast::Stmt& s);
  void written_locations(ast::Array<const ast::Location> written);
  uint32_t new_site(const ast::Stmt& s);
  FileId program_file(std::string_view name);

  const Sources& sources_;
  const ast::Ast& ast_;
  const ast::File& main_;
  const std::vector<Define>& defines_;
  const FrontEndOptions& options_;
  const Resolution& resolution_;
  Diagnostics& diagnostics_;
  Evaluator evaluator_;
  Builder builder_;
  ast::Place op_place_;  ///< of what is being done, for mistakes without a place of their own
  ast::Place last_place_;
  Span last_span_;  ///< of last_place_

  bool has_collective_ = false, usable_ = true;
  std::vector<bool> used_defines_;
  std::vector<std::string_view> params_;
  ast::Place collective_place_;

  std::vector<const ast::Placed*> bodies_;  ///< by rank
  DefWork def_work_;
  Sweep sweep_ = Sweep::declare;
  std::string_view place_word_;  ///< "tb" or "group" while in one
  bool in_pipeline_ = false, in_loop_ = false;
  std::vector<std::pair<int64_t, uint32_t>> ir_loops_;  ///< `loop: k` of this rank

  std::vector<NameId> name_ids_;  ///< by symbol
  RefList dsts_, srcs_;
  std::vector<Index> index_scratch_;
  std::vector<int64_t> key_scratch_, key_values_;

  // One plan per op's statement and chain of expansions that leads to it.
  static constexpr size_t kPlanCache = 256;
  std::map<std::pair<const ast::Stmt*, uint32_t>, OpPlan> plans_;
  std::vector<OpPlan*> plan_cache_ = std::vector<OpPlan*>(kPlanCache);  ///< direct-mapped
  std::map<std::pair<const ast::Stmt*, uint32_t>, uint32_t> contexts_;
  uint32_t context_ = 0;
  Slice values_;
};

}  // namespace mscclc
