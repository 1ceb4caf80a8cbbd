// Which plan a call of a rank is of, where several share what they use.
#include "passes/prove/model/premise.h"
#include "passes/prove/run/run.h"

namespace mscclc::proof {

uint32_t Run::calls_of(uint32_t rank) const {
  return system_.joint() ? static_cast<uint32_t>(options_.order[rank].size()) : options_.calls;
}

uint32_t Run::end_of_blocks(uint32_t rank) const {
  const Part& part = part_of(rank, calls_[rank]);
  return part.first_block[rank] + part.rank(rank).blocks;
}

/// Calls of one plan on several ranks belong together: the n-th of each. They have one number.
uint64_t Run::instance(uint32_t rank, uint32_t call) const {
  if (!system_.joint()) return call;
  const std::vector<uint32_t>& order = options_.order[rank];
  uint64_t earlier = 0;
  for (uint32_t i = 0; i < call; ++i) earlier += order[i] == order[call] ? 1 : 0;
  return earlier * system_.parts().size() + order[call];
}

/// Which call of a rank an instance is. REQUIRES: it is one of the rank's.
uint32_t Run::call_of(uint32_t rank, uint64_t wanted) const {
  uint32_t call = 0;
  while (instance(rank, call) != wanted) ++call;
  return call;
}

/// Scratch that lies over another plan's: all of that plan's accesses there must be over.
void Run::check_other_parts(const Actor& actor, const ChunkName& name) {
  const size_t own = part_index(rank_of(actor), actor.event.call);
  for (size_t other = 0; other < system_.parts().size(); ++other) {
    if (!system_.overlaid(name.rank, own, other)) continue;
    for (const Event& event : shared_scratch_.of(name.rank, other)) {
      const Record old{.event = event, .write = true};
      const Record access{.event = actor.event};
      if (premise(Premise::overlaid_scratch_is_over, ordered(actor, {}, old, access))) continue;
      if (!may_report(report_key(event, actor.event))) continue;
      Finding& finding = add_finding(Finding::Kind::race);
      finding.first = event;
      finding.second = actor.event;
      finding.chunk = name;
      finding.overlaid = true;
    }
  }
  shared_scratch_.note(name.rank, own, actor.event);
}

}  // namespace mscclc::proof
