// Slots of packets: who waits for what comes there, what its reader learns, and what is wrong with
// putting packets where others are.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "passes/prove/memory/access_order.h"
#include "passes/prove/memory/access_parts.h"
#include "passes/prove/memory/chunk_contents.h"
#include "passes/prove/processes/finding_list.h"

namespace mscclc::proof {

class PacketSlots {
 public:
  /// All of them must outlive it.
  PacketSlots(const AccessParts& parts, const ChunkContents& contents, AccessOrder& order,
              FindingList& findings);

  /// Have all packets come that the op reads? Else the block waits for them.
  bool await(uint32_t process, const Op& op);
  /// Something has been stored there: those go on that wait for it.
  void wake_readers(uint64_t chunk);
  /// What the reader of a slot learns from its packets. Lemma O2: the block has heard of those of
  /// which it has surely waited for some, a thread of those whose bytes it has read.
  void take(ThreadBlock& block, const Spot& spot, const Extent& extent, bool sentinel);
  /// A reader of a sentinel slot empties it: a store like any other. No op reads one twice, or
  /// fills one that it reads (ir/report/coinciding.h).
  void empty(const Actor& actor, const Spot& spot, const ChunkName& name, const Record& load);
  /// One block stands for its rank, whose call ends: after its last meeting it knows what the
  /// rank's blocks have read piece by piece.
  void end_call(uint32_t rank);

  /// Packets that are put into a slot where some of this call are already.
  void check_slot(const Event& event, const Spot& spot, const ChunkName& name, const Extent& extent,
                  bool sentinel, const Symbol& stored);
  /// Packets of one call that are put into a slot where others of this call are, or have been: a
  /// poll may see either, and shows no more than both show (lemma O15).
  void mark_several(const Spot& spot, Record& access, const Symbol& stored);
  /// A slot that a port sends as it lies must hold packets of this call (lemma O8). What never
  /// came, or has been emptied, is sent as "nothing has come", and the far reader waits forever.
  void check_source(const Event& event, uint64_t chunk, const ChunkName& name,
                    const Extent& extent);
  /// Packets of a later call that have come into a slot before those of the reader's call are read:
  /// nothing keeps them from taking their place.
  bool report_overtaken(const Event& reader, uint64_t chunk, const ChunkName& name,
                        const Extent& extent);
  /// A block that waits for packets in vain because those of a later call have taken their place:
  /// its reads and that store are in no order. REQUIRES: the block is in a call.
  bool report_lost(uint32_t process);

 private:
  /// What the blocks of a rank have read in this call piece by piece, by store of packets, and what
  /// those stores publish of which all has been read.
  struct Pieces {
    std::map<std::tuple<uint64_t, uint32_t, uint32_t, uint32_t, uint32_t>, Covering> of_store;
    std::vector<News> news;
  };

  bool arrived(uint64_t chunk, const Extent& extent, uint32_t call, bool sentinel) const;
  void note_piece(uint32_t rank, const Spot& spot, const Record& record, const Extent& piece,
                  const News& news);
  bool same_again(uint64_t chunk, const Extent& extent, const Symbol& stored) const;
  bool is_echo(const Spot& spot, const std::vector<uint32_t>& before, const Extent& extent) const;

  const AccessParts parts_;
  const Program& program_;
  const ChunkContents& contents_;
  AccessOrder& order_;
  FindingList& findings_;
  std::vector<std::vector<bool>> polled_;  ///< by rank and buffer: some process waits there
  std::vector<Pieces> pieces_read_;        ///< by rank
  std::unordered_map<uint64_t, std::vector<uint32_t>> awaited_;  ///< chunk -> processes
};

}  // namespace mscclc::proof
