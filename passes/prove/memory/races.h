// Accesses that are in no order with an earlier one: what is reported of them, and what of the run
// they make uncertain.
#pragma once

#include <cstdint>

#include "passes/prove/memory/history.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/finding_list.h"
#include "passes/prove/processes/run_options.h"

namespace mscclc::proof {

class Races {
 public:
  /// All of them must outlive it.
  Races(const System& system, const RunOptions& options, const CallOrder& calls,
        const History& history, FindingList& findings)
      : system_(system), options_(options), calls_(calls), history_(history), findings_(findings) {}

  /// Are they known, so that none is reported?
  bool are_known() const { return options_.suspects != nullptr; }
  /// What those that were found make uncertain.
  const Suspects& suspects() const { return suspects_; }

  /// Two accesses to a chunk are in no order.
  void report(const ChunkName& name, const Record& old, const Record& access);
  /// Two stores put packets into one slot in one call.
  void report_slot_twice(const ChunkName& name, const Record& old, const Record& access);
  /// Packets of a later call may come to a slot before `reader` has read its own.
  void report_overtaken(const ChunkName& name, const Event& reader, const Record& later);
  /// Scratch of another plan lies there, whose access may not be over.
  void report_overlaid(const ChunkName& name, const Event& old, const Event& event);

 private:
  Finding* add(Finding::Kind kind, const ChunkName& name, const Event& first, const Event& second);
  bool reads_too_early(const ChunkName& name, const Record& old, const Record& access) const;
  void suspect(const ChunkName& name, const Record& old, const Record& access);
  static uint64_t meant_position(const Event& event);

  const System& system_;
  const RunOptions& options_;
  const CallOrder& calls_;
  const History& history_;
  FindingList& findings_;
  Suspects suspects_;
};

}  // namespace mscclc::proof
