// sync: ops of one rank that touch the same bytes, one of them writing, take effect in written
// order. What the author has not ordered is ordered here: by `sync` inside a thread block, by
// semaphores (or a barrier of a group's blocks) between blocks; see order_finder.h for these.
//
//   tb 0 { reduce output[0] <- input[0], inbox[0] }      tb 0 {
//   tb 1 { put up.output[0] <- output[0] }                 reduce output[0] <- input[0], inbox[0]
//                                                          sync
//                                                  =>      release order[0]
//                                                        }
//                                                        tb 1 {
//                                                          acquire order[0]
//                                                          sync
//                                                          put up.output[0] <- output[0]
//                                                        }
//
// Inside a block every op is done by all threads, or by single ones, without waiting for each
// other. So a `sync` stands
//  - between ops that touch the same bytes, one of them writing,
//  - between data ops and the signal or release that publishes them, and between port puts and the
//    flush that waits for them,
//  - between waiting (wait, acquire, flush; relaxed or not) and what must come after: data ops,
//    signals, releases.
// A barrier counts as one. Running the pass on its own output adds nothing.
#include <utility>

#include "passes/group_run.h"
#include "passes/order_finder.h"
#include "passes/passes.h"

namespace mscclc {
namespace {

/// What an op means for the threads of its block, as bits.
enum Role : uint8_t {
  kData = 1,       ///< moves data
  kPosts = 2,      ///< posts a transfer to a port
  kPublishes = 4,  ///< tells others what has been done
  kTells = 8,      ///< tells others something, if only that the block is here
  kDrains = 16,    ///< waits for what was posted
  kAwaits = 32,    ///< what follows must come after
  kMeeting = 64,   ///< sync or barrier
};

uint8_t role_of(const Program& program, uint32_t rank, const Op& op) {
  const OpInfo& row = info(op.kind);
  uint8_t role = 0;
  if (row.moves_data()) {
    role |= kData;
    const uint32_t channel = program.dsts(op)[0].channel;
    const bool posts =
        channel != kNone && program.ranks[rank].channels[channel].kind == ChannelKind::port;
    if (posts) role |= kPosts;
  }
  if (row.has(kSignals) || row.has(kReleases)) role |= op.relaxed ? kTells : kTells | kPublishes;
  if (row.has(kFlushes)) role |= kDrains | kAwaits;
  if (row.has(kWaits) || row.has(kAcquires)) role |= kAwaits;
  if (row.has(kSyncs)) role |= kMeeting;
  return role;
}

/// What has happened in a block since its threads last met.
struct Since {
  bool worked = false, posted = false, waited = false;
  uint32_t met = 0;  ///< ops of the block before the last meeting
};

/// The syncs of one rank's blocks.
class BlockSyncs {
 public:
  explicit BlockSyncs(const Program& program) : program_(program) {}

  /// Finds where syncs are missing. `after` as in RankOrder.
  void find(uint32_t rank, const BlockSequence& order, const RankOrder& needs) {
    ops_ = &program_.ranks[rank].ops;
    order_ = &order;
    after_ = &needs.after;
    roles_.resize(ops_->size());
    for (size_t i = 0; i < roles_.size(); ++i) roles_[i] = role_of(program_, rank, (*ops_)[i]);
    marks_.assign(ops_->size(), kNothing);
    for (const uint32_t head : needs.heads) separate_rounds(head);
    for (size_t b = 0; b + 1 < order.begin.size(); ++b) {
      walk_block(order.begin[b], order.begin[b + 1]);
    }
  }

  /// Makes the list with its syncs.
  void insert(std::vector<Op>& ops) {
    size_t syncs = 0;
    for (const uint8_t mark : marks_) {
      syncs += static_cast<size_t>(mark & kBefore) + (mark & kBeforeLoop ? 1 : 0);
    }
    if (syncs == 0) return;
    std::vector<Op>& out = with_syncs_;
    out.clear();
    uint32_t loop = kNone, behind = 0;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (ops[i].loop != loop) {
        loop = ops[i].loop;
        add_before_loop(ops, i, out);
      }
      if (i == behind) {  // syncs before all parts of a group's op, which stay side by side
        behind = group_run(ops, i).end;
        for (uint32_t k = i; k < behind; ++k) {
          if (marks_[k] & kBefore) out.push_back(sync(ops[k].block, loop));
        }
      }
      out.push_back(ops[i]);
    }
    ops.assign(out.begin(), out.end());
  }

 private:
  enum Mark : uint8_t { kNothing = 0, kBefore = 1, kBeforeLoop = 2 };

  static Op sync(uint32_t block, uint32_t loop) {
    Op op;
    op.block = block;
    op.loop = loop;
    return op;
  }

  /// The body that begins with op `head` needs a meeting before its first data op.
  void separate_rounds(uint32_t head) {
    uint32_t at = order_->position[head];
    while (!(roles_[order_->ops[at]] & (kMeeting | kData))) ++at;
    if (roles_[order_->ops[at]] & kData) marks_[order_->ops[at]] = kBefore;
  }

  /// Syncs in front of the stretch of a pipeline's ops that begins at `i`.
  void add_before_loop(const std::vector<Op>& ops, size_t i, std::vector<Op>& out) const {
    const uint32_t loop = ops[i].loop;
    for (; loop != kNone && i < ops.size() && ops[i].loop == loop; ++i) {
      if (marks_[i] & kBeforeLoop) out.push_back(sync(ops[i].block, kNone));
    }
  }

  void walk_block(uint32_t begin, uint32_t end) {
    Since since;
    since.met = begin;
    for (uint32_t at = begin; at < end;) {
      const uint32_t loop = op_at(at).loop;
      uint32_t behind = at + 1;
      if (loop == kNone) {
        step(at, since, begin);
      } else {
        while (behind < end && op_at(behind).loop == loop) ++behind;
        walk_loop(at, behind, since);
      }
      at = behind;
    }
  }

  /// A body follows what stands before the pipeline once, and its own end in every other round.
  void walk_loop(uint32_t begin, uint32_t end, Since& since) {
    Since round;
    for (int pass = 0; pass < 2; ++pass) {
      round.met = begin;
      for (uint32_t at = begin; at < end; ++at) step(at, round, begin);
    }
    // What the first round alone needs stands in front of the pipeline.
    Since first = since;
    for (uint32_t at = begin; at < end; ++at) {
      if (needs_sync(at, first, 0)) {
        marks_[order_->ops[begin]] |= kBeforeLoop;
        since = {.met = begin};
        break;
      }
      advance(at, first);
    }
    for (uint32_t at = begin; at < end; ++at) advance(at, since);
  }

  const Op& op_at(uint32_t at) const { return (*ops_)[order_->ops[at]]; }

  /// Marks the op if its threads must meet before it, and goes past it.
  void step(uint32_t at, Since& since, uint32_t begin) {
    if (needs_sync(at, since, begin)) marks_[order_->ops[at]] |= kBefore;
    advance(at, since);
  }

  /// Must the threads meet before this op? Conflicts with ops from `begin` on count.
  bool needs_sync(uint32_t at, const Since& since, uint32_t begin) const {
    const uint32_t op = order_->ops[at];
    const uint8_t role = roles_[op];
    if ((role & kMeeting) || (marks_[op] & kBefore)) return false;
    if (since.waited && (role & (kData | kTells))) return true;
    if (since.worked && (role & kPublishes)) return true;
    if (since.posted && (role & kDrains) && !(role & kData)) return true;
    const uint32_t after = (*after_)[op];
    if (after == kNone) return false;
    const uint32_t conflict = order_->position[after];
    return conflict >= begin && conflict >= since.met;
  }

  void advance(uint32_t at, Since& since) const {
    const uint32_t op = order_->ops[at];
    const uint8_t role = roles_[op];
    if ((role & kMeeting) || (marks_[op] & kBefore)) since = {.met = at};
    since.worked |= (role & kData) != 0;
    since.posted |= (role & kPosts) != 0;
    since.waited |= (role & kAwaits) != 0;
  }

  const Program& program_;
  const std::vector<Op>* ops_ = nullptr;
  const BlockSequence* order_ = nullptr;
  const std::vector<uint32_t>* after_ = nullptr;
  std::vector<uint8_t> roles_, marks_;  ///< by op
  std::vector<Op> with_syncs_;
};

/// Puts the new ops of `order` into the list, and makes `order` speak of the new indexes.
void merge(Rank& rank, RankOrder& order) {
  std::vector<uint32_t> moved;
  order.inserts.merge(rank.ops, &moved);
  std::vector<uint32_t> after(rank.ops.size(), kNone);
  for (size_t i = 0; i < moved.size(); ++i) {
    if (order.after[i] != kNone) after[moved[i]] = moved[order.after[i]];
  }
  order.after.swap(after);
  for (uint32_t& head : order.heads) head = moved[head];
}

}  // namespace

bool run_sync(Program& program, Diagnostics& diagnostics) {
  if (!program.launch.auto_sync) return true;
  OrderFinder finder(program, diagnostics);
  BlockSyncs syncs(program);
  RankOrder order;
  BlockSequence sequence;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    Rank& rank = program.ranks[r];
    if (!settle_blocks(program, r, "sync", diagnostics)) return false;
    if (!finder.find(r, order)) return false;
    if (order.inserts.empty()) {
      syncs.find(r, finder.sequence(), order);
    } else {
      merge(rank, order);
      sequence.sort(rank);
      syncs.find(r, sequence, order);
    }
    syncs.insert(rank.ops);
  }
  return true;
}

}  // namespace mscclc
