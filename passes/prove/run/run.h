// Runs a plan once, for some calls in a row, and keeps for every process what it knows of the
// others. Who meets whom does not depend on the schedule (`find_sharing` refuses plans where it
// does), so what this run shows holds for all: docs/design/proofs.md has the argument.
//
// In this run every process goes as far as it can, except in loops, which go in step (LoopGroups);
// ports move their data at once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/program/access.h"
#include "passes/prove/loops/loop_groups.h"
#include "passes/prove/model/clocks.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/row_joins.h"
#include "passes/prove/model/sum_shapes.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/value_trace.h"
#include "passes/prove/model/values.h"
#include "passes/prove/run/arrivals.h"
#include "passes/prove/run/history.h"
#include "passes/prove/run/shared_scratch.h"
#include "passes/prove/run/suspects.h"

namespace mscclc::proof {

struct RunOptions {
  uint32_t calls = 2;
  std::vector<uint32_t> rounds = {};  ///< by loop of the program
  /// The message has no bytes: no op moves data, no packet comes, no pipeline has a round.
  bool empty = false;
  bool in_step = true;   ///< loops of a group wait for each other
  bool divides = false;  ///< the reduction may be avg
  /// Between calls the caller may touch the scratch of its rank, too. Of one plan.
  bool scratch_is_callers = false;
  /// Several plans: by rank, the part of each of its calls. Else `calls` of the only one.
  std::vector<std::vector<uint32_t>> order = {};
  std::vector<bool> part_divides = {};  ///< the same as `divides`, by part
  bool traced = false;                  ///< wrong results are reported with what they hold
  /// Races are known: only results are looked at that do not hang on them. `traced`, then.
  const Suspects* suspects = nullptr;
};

/// What a run shows besides findings.
struct RunFacts {
  SumOrders orders{
      .replicated = true, .ranks = true, .tree = true, .exact = true};  ///< that all sums keep
  bool meets = true;  ///< no rank leaves a call before all are in it
  bool keeps_input = true;
  /// What holds of this run and of another.
  void join(const RunFacts& other) {
    orders &= other.orders;
    meets &= other.meets;
    keeps_input &= other.keeps_input;
  }
};

class Run {
 public:
  /// REQUIRES: `groups` is of `system`, and has found nothing.
  Run(const System& system, const LoopGroups& groups, const Symbols& symbols, RunOptions options);
  /// Runs all calls, or as far as it gets.
  void go();
  /// Have all calls come to their end?
  bool finished() const;
  const std::vector<Finding>& findings() const { return findings_; }
  const RunFacts& facts() const { return facts_; }
  /// What the races that were found make uncertain.
  const Suspects& suspects() const { return suspects_; }

 private:
  /// What a wait may learn, if it is not relaxed, and if it is.
  struct Token {
    News strong, weak;
  };
  struct Counter {
    std::vector<Token> tokens;  ///< given, oldest first
    size_t first = 0;           ///< of those not yet taken
    uint32_t free = 0;          ///< what it begins with, not yet taken
    uint32_t waiting = kNone;   ///< a process
    int64_t balance = 0;        ///< given less taken
    bool empty() const { return first == tokens.size(); }
    Token take();
    /// Several releasers: what each has published in this call, and how often all were taken.
    std::vector<std::vector<Token>> by_releaser;
    uint32_t taken = 0;
  };
  /// A semaphore that several blocks release: who, and how often in a call.
  struct Shared {
    uint32_t initial = 0, total = 0;
    bool in_loop = false;  ///< released in a pipeline
    std::vector<uint32_t> releasers, releases;
  };
  struct Barrier {
    std::vector<uint32_t> blocks;   ///< sorted
    std::vector<uint32_t> arrived;  ///< processes
  };
  struct Block {
    uint32_t rank = 0, begin = 0, end = 0;  ///< its ops
    uint32_t op = 0, round = 0, operand = 0;
    uint32_t now = 0;      ///< ops done, over all calls
    uint32_t settled = 0;  ///< ops that all its threads have done
    Row known, entry;
    uint32_t entry_time = 0;
    std::vector<News> gains;   ///< what single threads know, and all after the next meeting
    Provenance nodes;          ///< packets that it has read in this call
    size_t settled_nodes = 0;  ///< how many of them all its threads know of
    uint32_t loop = kNone;     ///< of LoopGroups: the one of which it does a round
    bool done = false;         ///< with this call
  };
  /// What the blocks of a rank have read in this call piece by piece, by store of packets, and what
  /// those stores publish of which all has been read.
  struct Pieces {
    std::map<std::tuple<uint64_t, uint32_t, uint32_t, uint32_t, uint32_t>, Covering> of_store;
    std::vector<News> news;
  };
  /// How far the loops of a group are, in rounds of all calls.
  struct Step {
    uint32_t opened = 0;         ///< that they may have begun
    uint32_t done = 0;           ///< that all of them have done
    uint32_t ahead = 0;          ///< how many have done one more
    std::vector<uint32_t> held;  ///< processes that have come to the next one
  };
  /// What is promised of an output chunk.
  struct Promised {
    Symbol symbol = {};
    bool made = false;
    std::vector<uint32_t> added = {};  ///< the ranks of a sum, ascending; none: no sum
  };
  /// Where a sum was first seen, and how it was made there.
  struct FirstSum {
    uint64_t order;
    ChunkName chunk;
  };
  /// What accesses: the op at hand, and what its process knows: a row, and that so many ops of
  /// `knower` are over: of the block itself, or of the one that posted what a port does.
  struct Actor {
    Event event;
    const Row* known;
    uint32_t knower;
    uint32_t settled;
  };

  /// What those threads learn from packets that have waited for one of these bytes.
  struct Learned {
    News news;
    Extent extent;
  };
  /// A sum of some bytes by a switch: of which rank, which expression, which bytes.
  using SwitchSum = std::tuple<uint32_t, uint64_t, uint32_t, uint32_t>;
  struct Emptied {
    uint64_t chunk;
    Record reset;
  };

  // run_order_of_calls.cc
  uint32_t calls_of(uint32_t rank) const;
  bool divides(uint32_t rank, uint32_t call) const {
    return system_.joint() ? options_.part_divides[part_index(rank, call)] : options_.divides;
  }
  size_t part_index(uint32_t rank, uint32_t call) const {
    return system_.joint() ? options_.order[rank][call] : 0;
  }
  const Part& part_of(uint32_t rank, uint32_t call) const {
    return system_.parts()[part_index(rank, call)];
  }
  uint64_t instance(uint32_t rank, uint32_t call) const;
  uint32_t call_of(uint32_t rank, uint64_t instance) const;
  /// What an access to scratch means for other plans whose scratch lies there, too.
  void check_overlaid(const Actor& actor, const ChunkName& name) {
    if (system_.joint() && !system_.is_callers(name.buffer)) check_other_parts(actor, name);
  }
  void check_other_parts(const Actor& actor, const ChunkName& name);

  // run.cc
  void begin_trace();
  void enter_call(uint32_t rank);
  void leave_call(uint32_t rank);
  void caller_touches(uint32_t rank, uint32_t call, bool leaving);
  void fill_buffers(uint32_t rank, uint32_t call);
  Symbol symbol_at(const Spot& spot, const Extent& extent) const;
  const Promised& promised(uint32_t rank, uint32_t chunk, uint32_t call);
  Promised promise(uint32_t rank, uint32_t chunk, uint32_t call);
  void check_outputs(uint32_t rank, uint32_t call);
  void check_met(uint32_t rank, uint32_t call);
  void advance(uint32_t process);
  void next_op(uint32_t process);
  bool do_op(uint32_t process, const Op& op);
  void wake(uint32_t process) { ready_.push_back(process); }
  void report_stuck();
  bool is_stuck(uint32_t process) const;
  bool report_lost_packets(uint32_t process);
  bool report_overtaken(const Event& reader, uint64_t chunk, const ChunkName& name,
                        const Extent& extent);
  void report_balance();

  // run_sums.cc
  bool added_alike(const ChunkName& name, const Symbol& found);
  uint64_t least_image(const Symbol& sum) const;
  SumOrders orders_of(const std::vector<uint32_t>& ranks, const Symbol& found) const;
  std::vector<uint32_t> turned(const std::vector<uint32_t>& ranks, uint32_t turns) const;
  const SumShapes& shapes(const std::vector<uint32_t>& ranks) const;
  void check_sum(const ChunkName& name, const std::vector<uint32_t>& ranks, const Symbol& found);

  // run_rounds.cc
  bool begin_round(uint32_t process, uint32_t loop);
  void open_round(uint32_t group);
  void end_round(Block& block);
  void wake_held(uint32_t group);
  bool release_held();
  void report_out_of_step();
  uint32_t turn_of(const Block& block) const;
  uint64_t round_of(const Block& block, const Op& op, const Operand& o, uint32_t k);
  // run_results.cc
  struct Difference;
  void report_wrong_value(const ChunkName& name, uint32_t call, const Symbol& wanted);
  uint64_t place_in_text(const Event& event) const;
  Event last_store(uint64_t chunk, const Extent& extent) const;
  Difference difference(const ChunkName& name, uint32_t call, const Symbol& found,
                        bool written) const;
  void compare_inputs(const ChunkName& name, uint32_t call, const ValueTrace::Content& content,
                      Difference& difference) const;
  void compare_divisions(const ChunkName& name, uint32_t call, const ValueTrace::Content& content,
                         Difference& difference) const;
  std::string name_of(const Contribution& input, uint64_t now) const;
  bool raced(const Symbol& symbol) const;
  bool stale(const Event& event, const ChunkName& name, uint64_t chunk, const Symbol& symbol);
  Symbol mixed_at(uint64_t chunk) const;
  Symbol mixed_with(const Symbol& symbol) const { return raced(symbol) ? raced_ : mixed_; }

  // run_control.cc
  bool do_control(uint32_t process, const Op& op, const OpInfo& row);
  bool take(uint32_t process, const Op& op, bool semaphores);
  void take_shared(Counter& counter, uint32_t rank, uint32_t semaphore, Block& block);
  void give(Counter& counter, Token token);
  void signal(uint32_t process, const Operand& target, bool relaxed);
  void release(uint32_t process, const Operand& target);
  void flush(uint32_t process, uint32_t channel);
  bool arrive(uint32_t process, const Op& op);
  void meet(uint32_t process);
  void learn_of_port(uint32_t process, uint32_t port, uint32_t done);
  News strong_news(uint32_t process) const;
  News weak_news(uint32_t process) const;
  void find_sharing();
  void count_shared_releases();

  // run_data.cc
  bool await_packets(uint32_t process, const Op& op);
  bool arrived(uint64_t chunk, const Extent& extent, uint32_t call, bool sentinel) const;
  void take_packets(Block& block, const Spot& spot, const Extent& extent, bool sentinel);
  static void hear(std::vector<News>& gains, const News& news);
  void note_piece(uint32_t rank, const Spot& spot, const Record& record, const Extent& piece,
                  const News& news);
  void empty_slot(const Actor& actor, const Spot& spot, const ChunkName& name, const Record& load);
  void check_takers(const Actor& actor, const Spot& spot, const ChunkName& name,
                    const Record& reset);
  bool same_again(uint64_t chunk, const Extent& extent, const Symbol& stored) const;
  bool is_echo(const Spot& spot, const std::vector<uint32_t>& before, const Extent& extent) const;
  void mark_several(const Spot& spot, Record& access, const Symbol& stored);
  void take_values(const Event& event, const Spot& spot, const Record& access);
  uint64_t limit_of(uint32_t rank, const Op& op, Position position) const;
  uint64_t as_limit(uint32_t rank, uint64_t length) const;
  bool fills(uint32_t rank) const;
  void check_slot(const Event& event, const Spot& spot, const ChunkName& name, const Extent& extent,
                  bool sentinel, const Symbol& stored);
  void check_source(const Event& event, uint64_t chunk, const ChunkName& name,
                    const Extent& extent);
  void move(uint32_t process, const Op& op, const OpInfo& row);
  void publish_move(uint32_t process, const Op& op, const OpInfo& row);
  void move_chunk(uint32_t process, const Op& op, const OpInfo& row, std::span<const Operand> dsts,
                  std::span<const Operand> srcs, uint32_t k);
  void post_chunk(uint32_t process, const Op& op, const OpInfo& row, std::span<const Operand> dsts,
                  const Operand& src, uint32_t k);
  void load(const Actor& actor, const Op& op, const Operand& o, uint32_t k, bool polls);
  void store(const Actor& actor, const Op& op, const Operand& o, uint32_t k);
  void store_at(const Actor& actor, const ChunkName& name, const Spot& spot, const Extent& extent,
                uint32_t k, const News& news);
  template <class Each>
  void each_place(uint32_t rank, const Operand& o, uint32_t k, Each&& each) const;
  void load_at_once(const Actor& actor, const Op& op, std::span<const Operand> srcs, uint32_t k,
                    bool polls);
  Symbol tree_of(std::span<const Symbol> terms);
  Symbol exact_of(std::span<const Symbol> terms);
  void add_value(const Symbol& symbol);
  Symbol sum_of(const Symbol& a, const Symbol& b);
  Symbol summed_by_switch(uint32_t rank, const Symbol& sum, const Extent& extent);
  void size_value(uint32_t rank, const Operand& o, uint32_t k) {
    if (system_.is_callers(o.buffer) || at_switch(rank, o)) size_callers_value(rank, o, k);
  }
  void size_callers_value(uint32_t rank, const Operand& o, uint32_t k);
  Extent extent_of(const Block& block, const Op& op, const Operand& o, uint32_t k,
                   const ChunkName& name) {
    return op.parts == 0 && op.loop == kNone ? Extent{} : piece_of(block, op, o, k, name);
  }
  Extent piece_of(const Block& block, const Op& op, const Operand& o, uint32_t k,
                  const ChunkName& name);
  Symbol value_at(const Event& reader, const Spot& spot, const Extent& extent,
                  const ChunkName& name);
  const Buffer& buffer_named(const ChunkName& name) const {
    return program_.ranks[name.rank].buffers[name.buffer];
  }
  Actor actor_of(uint32_t process) const;
  uint32_t rank_of(const Actor& actor) const {
    return system_.processes()[actor.event.process].rank;
  }
  bool copies_onto_itself(uint32_t rank, const Op& op, uint32_t k) const;
  bool is_port(uint32_t rank, const Operand& o) const;
  bool at_switch(uint32_t rank, const Operand& o) const {
    return o.channel != kNone &&
           program_.ranks[rank].channels[o.channel].kind == ChannelKind::switch_;
  }
  static bool is_packet_op(const Op& op) { return info(op.kind).cost == CostClass::kPacket; }

  // run_order.cc
  void check(const Actor& actor, const Spot& spot, const ChunkName& name, const Record& access);
  void check_against(uint32_t i, const Actor& actor, const Spot& spot, const ChunkName& name,
                     const Record& access);
  void check_beneath(const Actor& actor, const Spot& spot, const ChunkName& name,
                     const Record& store, const Record& access);
  void report_race(const ChunkName& name, const Record& old, const Record& access);
  bool reads_too_early(const ChunkName& name, const Record& old, const Record& access) const;
  void suspect(const ChunkName& name, const Record& old, const Record& access);
  uint64_t meant_position(const Event& event) const;
  void keep(const Spot& spot, const Record& access);
  bool stands_for(const Record& newer, const Record& older) const;
  /// A list of records about a chunk, and how far they must be turned.
  struct Loads {
    uint32_t list = kNone, turns = 0;
  };
  bool ordered(const Actor& actor, const Loads& loads, const Record& old, const Record& access);
  bool learned(const Record& old, const Record& access) const;
  bool known(const Row& row, uint32_t knower, uint32_t done, const Event& event) const;
  template <class Follow>
  bool any_packets(const Actor& actor, bool stores, Follow&& follow);
  Provenance::Load as_load(const Record& old, const Record& access) const;
  bool loaded_before_packets(const Actor& actor, const Record& load, const Record& access);
  bool ended_before_packets(const Actor& actor, const Record& store, const Record& access);
  bool load_known(const Actor& actor, const Loads& loads, const Record& store,
                  const Record& access);
  bool same_threads(uint32_t rank, const Record& old, const Record& access) const;
  uint64_t length_of(uint32_t rank, const Op& op, Position position, uint32_t call) const;
  uint64_t report_key(const Event& a, const Event& b) const;

  const Op& op_of(const Block& block) const { return program_.ranks[block.rank].ops[block.op]; }
  uint32_t first_block(uint32_t rank) const {
    return part_of(rank, calls_[rank]).first_block[rank];
  }
  uint32_t end_of_blocks(uint32_t rank) const;
  Finding& add_finding(Finding::Kind kind);
  bool may_report(uint64_t key);

  const System& system_;
  const Program& program_;
  const LoopGroups& groups_;
  const Symbols& symbols_;
  std::unique_ptr<ValueTrace> trace_;
  TurnedSymbols turned_;
  const RunOptions options_;
  Cuts cuts_;
  const Symbol unwritten_, mixed_, raced_;
  const bool chained_;  ///< there are packets, which show what their values come from
  std::vector<std::vector<bool>>
      polled_;  ///< by rank and buffer: some process waits for packets there
  History history_;
  ValueChains chains_;
  std::vector<ChunkValue> values_;
  std::vector<Block> blocks_;     ///< by process (empty entries for others)
  std::vector<uint32_t> posted_;  ///< by process of a port, from the first: ops posted
  Arrivals arrivals_;
  std::vector<Counter> ends_, semaphores_;
  std::unordered_map<uint32_t, Shared> shared_;
  std::vector<std::vector<Barrier>> barriers_;
  std::vector<uint32_t> calls_;  ///< by rank: the call it is in
  std::vector<uint32_t> left_;   ///< by rank: blocks that have not done this call
  std::vector<Row> caller_;      ///< by rank: what its caller knows
  PagePool pages_;               ///< of these rows, in which ranks know mostly the same
  RowJoins joins_;
  std::vector<Row> rows_;               ///< that are joined
  std::vector<Provenance> nodes_read_;  ///< by rank: packets read in earlier calls
  std::vector<Pieces> pieces_read_;     ///< by rank
  std::unordered_map<uint64_t, std::vector<uint32_t>> awaited_;  ///< chunk -> processes
  std::vector<uint32_t> ready_;
  std::vector<Step> steps_;      ///< by group of loops
  std::vector<uint32_t> begun_;  ///< by loop: rounds, in all calls
  bool in_step_;                 ///< loops still wait for each other
  std::vector<Event> released_;  ///< blocks that did not get on in step, and went on without
  std::unordered_map<uint64_t, Promised> promised_;            ///< by call and output chunk
  Promised unshared_;                                          ///< the last that was not shared
  std::unordered_map<uint64_t, FirstSum> sums_;                ///< by their contributions
  mutable std::map<std::vector<uint32_t>, SumShapes> shapes_;  ///< by the ranks that are added
  std::map<SwitchSum, uint32_t> switch_sums_;                  ///< how often each was made
  std::vector<Finding> findings_;
  std::unordered_map<uint64_t, uint32_t> reported_;
  /// Of wrong results: what wrote them last, and what is wrong -> position in findings_.
  std::map<std::pair<uint64_t, uint32_t>, size_t> wrong_ways_;
  RunFacts facts_;
  Suspects suspects_;
  SharedScratch shared_scratch_;

  // The op at hand
  Symbol value_;
  bool has_value_ = false;
  bool sized_ = false;     ///< it moves a chunk of the caller's
  bool sentinel_ = false;  ///< its packets are sentinel words
  uint32_t pair_ = 0;      ///< of a pairwise op
  uint64_t round_ = 0;     ///< which round and piece: as units of scratch remember it
  Provenance nodes_{Provenance::Readers::thread};  ///< values that it has read
  std::vector<Learned> learned_;  ///< what each thread learns from packets before it stores
  std::vector<Emptied> emptied_;  ///< slots whose packets a port has sent on
};

/// A run's findings, where wrong results are reported with what they hold: for that the plan is run
/// again with a record of all sums, unless that takes more memory than there is. Beside races only
/// those results are wrong that do not hang on them.
std::vector<Finding> explained(std::vector<Finding> findings, const Suspects& suspects,
                               const System& system, const LoopGroups& groups,
                               const Symbols& symbols, RunOptions options);

}  // namespace mscclc::proof
