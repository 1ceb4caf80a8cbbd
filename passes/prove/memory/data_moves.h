// Ops that move data: every chunk they touch is checked against what was done to it before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/program/applied.h"
#include "passes/prove/memory/access_order.h"
#include "passes/prove/memory/chunk_contents.h"
#include "passes/prove/memory/external_rows.h"
#include "passes/prove/memory/history.h"
#include "passes/prove/memory/op_at_hand.h"
#include "passes/prove/memory/op_bytes.h"
#include "passes/prove/memory/op_value.h"
#include "passes/prove/memory/packet_slots.h"
#include "passes/prove/memory/stores_since.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/value_chains.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/counters.h"
#include "passes/prove/processes/knowledge.h"
#include "passes/prove/processes/run_options.h"
#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

/// What blocks do to memory. Parts of one run, which outlive the moves.
struct MemoryParts {
  const Cuts& cuts;
  const OpBytes& bytes;
  OpAtHand& at_hand;
  History& history;
  ValueChains& chains;
  ChunkContents& contents;
  OpValue& value;
  ExternalRows& externals;
  AccessOrder& order;
  PacketSlots& slots;
};

class DataMoves {
 public:
  DataMoves(const System& system, const RunOptions& options, const CallOrder& calls,
            ThreadBlocks& blocks, Knowledge& knowledge, Counters& counters,
            const MemoryParts& memory);

  /// Does the op that a block has come to, whose packets have come.
  void move(uint32_t process, const Op& op, const OpInfo& row);

 private:
  struct Emptied {
    uint64_t chunk;
    Record reset;
  };

  void move_chunk(uint32_t process, const Op& op, const OpInfo& row, std::span<const Operand> dsts,
                  std::span<const Operand> srcs, uint32_t k);
  void apply_chunk(const Actor& actor, const Op& op, std::span<const Operand> dsts,
                   std::span<const Operand> srcs, uint32_t k);
  void set_result(const Applied& what, uint32_t i, std::span<const Symbol> arguments);
  void store_results(const Actor& actor, const Op& op, std::span<const Operand> dsts, uint32_t k,
                     std::span<const Symbol> loaded);
  void post_chunk(uint32_t process, const Op& op, const OpInfo& row, std::span<const Operand> dsts,
                  const Operand& src, uint32_t k);
  ThreadBlock::Learned load_posted(uint32_t process, const Op& op, const OpInfo& row,
                                   const Operand& src, uint32_t k, const Extent& extent);
  void post_to(uint32_t process, const Op& op, const Operand& src, const Operand& dst, uint32_t k,
               const Extent& extent, Provenance& of_reader);
  void empty_posted(uint32_t process, const Operand& src, std::span<const Operand> dsts, uint32_t k,
                    const Extent& extent);
  void load(const Actor& actor, const Op& op, const Operand& o, uint32_t k, bool polls);
  void load_at_once(const Actor& actor, const Op& op, std::span<const Operand> srcs, uint32_t k,
                    bool polls);
  void sum_up(const ThreadBlock& block, const Op& op, const Operand& src, uint32_t k);
  void store(const Actor& actor, const Op& op, const Operand& o, uint32_t k);
  void store_at(const Actor& actor, const ChunkName& name, const Spot& spot, const Extent& extent,
                uint32_t k, const News& news);
  void describe_value(const Actor& actor, const ChunkName& name, const Symbol& stored,
                      uint32_t back, Record& access);
  void take_values(const Event& event, const Spot& spot, const Record& access);
  void take_value(const Event& event, const Spot& spot, const Record& access, uint32_t store,
                  const StoresSince& since);
  Actor actor_of(uint32_t process) const;
  uint32_t rank_of(const Event& event) const { return system_.processes()[event.process].rank; }

  const System& system_;
  const Program& program_;
  const RunOptions& options_;
  const CallOrder& calls_;
  ThreadBlocks& blocks_;
  Knowledge& knowledge_;
  Counters& counters_;
  const MemoryParts memory_;
  std::vector<Emptied> emptied_;  ///< slots whose packets a port has sent on
};

}  // namespace mscclc::proof
