// The parts that ops go through, joined: where they stand, what their operands name, whether they
// are right, how often they signal and wait.
#pragma once

#include <vector>

#include "compiler/builder/declare/declarations.h"
#include "compiler/builder/declare/header.h"
#include "compiler/builder/ops/barriers.h"
#include "compiler/builder/ops/ops.h"
#include "compiler/builder/ops/refs.h"

namespace mscclc {

class OpParts {
 public:
  OpParts(BuildReports& reports, Draft& draft, Budget& budget, Header& header, Declarations& owned);
  OpParts(const OpParts&) = delete;
  OpParts& operator=(const OpParts&) = delete;

  Places& places() { return places_; }
  Locations& locations() { return locations_; }
  Refs& refs() { return refs_; }
  Ops& ops() { return ops_; }
  Barriers& barriers() { return barriers_; }

  /// All ranks have declared what they own.
  void seal() { tallies_.seal(); }
  /// Takes what another builder knows of the ops of some ranks, the ops excepted. By its groups:
  /// ours.
  std::vector<uint32_t> take(OpParts& part, RankRange of);
  /// Reports signals, releases and barriers of a complete program that do not agree.
  void check_balances();

 private:
  BuildReports& reports_;
  Draft& draft_;
  Declarations& owned_;
  Places places_;
  Locations locations_;
  Tallies tallies_;
  Barriers barriers_;
  Refs refs_;
  OpChecks op_checks_;
  ChunkChecks chunk_checks_;
  Ops ops_;
};

}  // namespace mscclc
