// Is an access ordered after those that came before it? docs/design/proofs.md gives the reason of
// each rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "passes/prove/memory/history.h"
#include "passes/prove/memory/op_at_hand.h"
#include "passes/prove/memory/op_bytes.h"
#include "passes/prove/memory/races.h"
#include "passes/prove/memory/shared_scratch.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/value_chains.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/knowledge.h"
#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

class AccessOrder {
 public:
  /// `chained`: there are packets, which show what their values come from. All of them must outlive
  /// it.
  AccessOrder(const System& system, const CallOrder& calls, const Knowledge& knowledge,
              ThreadBlocks& blocks, const Cuts& cuts, const OpBytes& bytes, OpAtHand& at_hand,
              History& history, const ValueChains& chains, Races& races, bool chained);

  /// Reports the earlier accesses that conflict with this one and are in no order with it.
  void check(const Actor& actor, const Spot& spot, const ChunkName& name, const Record& access);
  /// What an access to scratch means for other plans whose scratch lies there, too.
  void check_overlaid(const Actor& actor, const ChunkName& name) {
    if (system_.joint() && !system_.is_callers(name.buffer)) check_other_parts(actor, name);
  }
  /// Packets that came to a sentinel slot before, in this call, have been taken: by an op that
  /// comes before this one, which empties the slot, too, whatever this one's own packets publish.
  /// Else this one may take them instead, and that op waits forever (lemma O15).
  void check_takers(const Actor& actor, const Spot& spot, const ChunkName& name,
                    const Record& reset);
  /// Adds an access to what is known of its chunk, as seen from the rank that owns it.
  void keep(const Spot& spot, const Record& access);
  /// The call of a rank is over, in which its blocks have read these packets.
  void end_call(uint32_t rank, std::vector<ReadValue> reads) {
    nodes_read_[rank].add_call(chains_, cuts_, std::move(reads));
  }
  bool chained() const { return chained_; }

 private:
  /// A list of records about a chunk, and how far they must be turned.
  struct Loads {
    uint32_t list = kNone, turns = 0;
  };

  bool is_block(const Event& event) const {
    return system_.processes()[event.process].kind == ProcessKind::block;
  }
  uint32_t rank_of(const Actor& actor) const {
    return system_.processes()[actor.event.process].rank;
  }
  bool known(const Actor& actor, const Event& event) const {
    return knowledge_.known(*actor.known, actor.knower, actor.settled, event);
  }
  void check_against(uint32_t i, const Actor& actor, const Spot& spot, const ChunkName& name,
                     const Record& access);
  void check_beneath(const Actor& actor, const Spot& spot, const ChunkName& name,
                     const Record& store, const Record& access);
  void check_other_parts(const Actor& actor, const ChunkName& name);
  bool stands_for(const Record& newer, const Record& older) const;
  bool ordered(const Actor& actor, const Loads& loads, const Record& old, const Record& access);
  bool learned(const Record& old, const Record& access) const;
  template <class Follow>
  bool any_packets(const Actor& actor, bool stores, Follow&& follow);
  Provenance::Load as_load(const Record& old, const Record& access) const;
  bool loaded_before_packets(const Actor& actor, const Record& load, const Record& access);
  bool ended_before_packets(const Actor& actor, const Record& store, const Record& access);
  bool load_known(const Actor& actor, const Loads& loads, const Record& store,
                  const Record& access);

  const System& system_;
  const CallOrder& calls_;
  const Knowledge& knowledge_;
  ThreadBlocks& blocks_;
  const Cuts& cuts_;
  const OpBytes& bytes_;
  OpAtHand& at_hand_;
  History& history_;
  const ValueChains& chains_;
  Races& races_;
  const bool chained_;
  std::vector<Provenance> nodes_read_;  ///< by rank: packets read in earlier calls
  SharedScratch shared_scratch_;
};

}  // namespace mscclc::proof
