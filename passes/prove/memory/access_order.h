// Is an access ordered after those that came before it? docs/design/proofs.md gives the reason of
// each rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "passes/prove/memory/access_parts.h"
#include "passes/prove/memory/shared_scratch.h"

namespace mscclc::proof {

class AccessOrder {
 public:
  /// `chained`: there are packets, which show what their values come from.
  AccessOrder(const AccessParts& parts, bool chained);

  /// Reports the earlier accesses that conflict with this one and are in no order with it.
  void check(const Actor& actor, const Spot& spot, const ChunkName& name, const Record& access);
  /// What an access to scratch means for other plans whose scratch lies there, too.
  void check_overlaid(const Actor& actor, const ChunkName& name) {
    if (!parts_.system.joint() || parts_.system.is_callers(name.buffer)) return;
    check_other_parts(actor, name);
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
    nodes_read_[rank].add_call(parts_.chains, parts_.cuts, std::move(reads));
  }
  bool chained() const { return chained_; }

 private:
  /// A list of records about a chunk, and how far they must be turned.
  struct Loads {
    uint32_t list = kNone, turns = 0;
  };

  bool is_block(const Event& event) const {
    return parts_.system.processes()[event.process].kind == ProcessKind::block;
  }
  uint32_t rank_of(const Actor& actor) const {
    return parts_.system.processes()[actor.event.process].rank;
  }
  bool known(const Actor& actor, const Event& event) const {
    return parts_.knowledge.known(*actor.known, actor.knower, actor.settled, event);
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

  const AccessParts parts_;
  const bool chained_;
  std::vector<Provenance> nodes_read_;  ///< by rank: packets read in earlier calls
  SharedScratch shared_scratch_;
};

}  // namespace mscclc::proof
