// The unroller: goes through the header, then through the body of each rank twice, and lets its
// parts do what the statements say. How several unrollers share the work is in unroll_parts.cc.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/unroll/declarer.h"
#include "compiler/unroll/header_lines.h"
#include "compiler/unroll/least_work.h"
#include "compiler/unroll/op_reader.h"
#include "ir/program/rank_parts.h"

namespace mscclc {

class Unroller {
 public:
  Unroller(const UnrollInput& input, Diagnostics& diagnostics);
  struct Outcome {
    std::optional<Program> program = {};
    bool in_vain = false;  ///< something went wrong in one of several parts: to be done in one go
  };
  Outcome run(const std::vector<Item>& items, bool in_parts);

 private:
  enum class Sweep : uint8_t { declare, ops };

  // ---- bodies and statements (unroll.cc) ----
  void find_bodies(const std::vector<Item>& items);
  bool begin(const std::vector<Item>& items);
  void bodies(Sweep sweep, RankRange ranks);
  void body(uint32_t rank, Sweep sweep);
  void block(const ast::Block& b);
  void forget(const ast::Block& b);
  void statement(const ast::Stmt& s);
  bool may_end(const ast::Stmt& s, const ast::TextRange& place);
  void loop(const ast::For& f);
  void misplaced(const ast::Stmt& s, std::string_view what);
  void tb(const ast::Placed& s);
  void group(const ast::Group& s);
  void pipeline(const ast::Pipeline& s);
  bool enter_pipeline(const ast::Pipeline& s, int64_t& ir_loop);
  void if_(const ast::If& s);
  void call(const ast::DefCall& s);
  bool bind_arguments(const ast::DefCall& s, const ast::Def& def, std::vector<Value>& out);

  // ---- several unrollers (unroll_parts.cc) ----
  uint32_t count_parts() const;
  bool unroll_parts(const std::vector<Item>& items, uint32_t parts);
  bool take(Unroller& other, RankRange ranks);

  const UnrollInput input_;
  UnrollScope scope_;
  const ast::Ast& ast_;
  Evaluator& evaluator_;
  Builder& builder_;
  ContractLines contract_;
  HeaderLines header_;
  Declarer declarer_;
  OpSites sites_;
  OpReader ops_;

  std::vector<const ast::Placed*> bodies_;  ///< by rank
  DefWork def_work_;
  std::string_view place_word_;  ///< "tb" or "group" while in one
  bool in_pipeline_ = false, in_loop_ = false;
  std::vector<std::pair<int64_t, uint32_t>> ir_loops_;  ///< `loop: k` of this rank
};

}  // namespace mscclc
