// The parts of a builder, joined. Each part can be read by itself: draft/ has what all share,
// declare/ what ranks own, ops/ what they do (op_parts.h).
#pragma once

#include <vector>

#include "compiler/builder/op_parts.h"

namespace mscclc {

class BuilderState {
 public:
  BuilderState(Diagnostics& diagnostics, Origin* origin, Sources* sources);
  BuilderState(const BuilderState&) = delete;
  BuilderState& operator=(const BuilderState&) = delete;

  BuildReports& reports() { return reports_; }
  Draft& draft() { return draft_; }
  const Draft& draft() const { return draft_; }
  Budget& budget() { return budget_; }
  const Budget& budget() const { return budget_; }
  Header& header() { return header_; }
  Declarations& owned() { return owned_; }
  OpParts& parts() { return parts_; }

  /// Sets the contract, and makes its ranks.
  bool collective(const CollectiveSpec& spec);
  /// Takes a rank to hand.
  void enter_rank(uint32_t rank);
  /// The rank at hand is done with, and none follows.
  void leave_ranks();
  /// Ends the declarations of all ranks.
  void seal();
  /// Takes the ops of some ranks from a builder in which the same things were declared, and which
  /// had no mistakes. `sites`: by its site, ours. False after what only the whole shows to be
  /// wrong, which is not reported.
  bool take(BuilderState& part, RankRange of, const std::vector<uint32_t>& sites);
  /// The program is complete: checks the whole of it, once. False after mistakes.
  bool check();

 private:
  BuildReports reports_;
  Draft draft_;
  Budget budget_;
  Header header_;
  Declarations owned_;
  OpParts parts_;
  bool checked_ = false;
};

}  // namespace mscclc
