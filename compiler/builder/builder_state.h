// The parts of a builder, joined. Each part can be read by itself: base/ has what all share,
// declare/ what ranks own, ops/ what they do.
#pragma once

#include <vector>

#include "compiler/builder/declare/declarations.h"
#include "compiler/builder/declare/header.h"
#include "compiler/builder/ops/balance.h"
#include "compiler/builder/ops/barriers.h"
#include "compiler/builder/ops/ops.h"
#include "compiler/builder/ops/refs.h"

namespace mscclc {

struct BuilderState {
  BuilderState(Diagnostics& diagnostics, Origin* origin, Sources* sources);

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

  BuildReports reports;
  Draft draft;
  Budget budget;
  Header header;
  Declarations owned;
  Places places;
  Locations locations;
  Tallies tallies;
  Barriers barriers;
  Refs refs;
  OpChecks op_checks;
  ChunkChecks chunk_checks;
  Ops ops;
  bool checked = false;  ///< the program is complete, and its checks are made
};

}  // namespace mscclc
