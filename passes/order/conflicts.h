// Which earlier ops of a rank does an op conflict with: same bytes, one of them writing? Of earlier
// ops only those are given that are not settled by others: the last writes, the reads since.
//
// Counted are local chunks and those at far ends. Where the caller's buffers may coincide, input
// and output are compared with each other, too. Packets are left out, as their readers wait for
// the data itself, except for those that a port sends as they lie. Different parts of the same
// reference (of a group op) do not conflict.
#pragma once

#include <span>
#include <vector>

#include "ir/program/access.h"
#include "ir/program/program.h"
#include "ir/support/precondition.h"
#include "passes/order/access_history.h"

namespace mscclc::order {

struct Conflict {
  uint32_t op;  ///< the earlier one
  /// Both refer to the same run of chunks, so that in each round of a pipeline, and in each part of
  /// a group, they touch the same bytes.
  bool same_reference;
  /// Each byte that both touch is handled by one thread, if they stand in one block.
  bool same_threads;
};

class Conflicts {
 public:
  explicit Conflicts(const Program& program);
  /// Begins with a rank whose ops have no accesses recorded.
  void start(uint32_t rank);
  /// Conflicts of `op` with what is recorded, perhaps some of them several times. Valid until the
  /// next call.
  std::span<const Conflict> find(uint32_t op);
  /// Records the accesses of `op`. REQUIRES: op was the last one that find() was asked about, and
  /// is now ordered after all its conflicts.
  void record(uint32_t op);
  /// True if the ops refer to more chunks than can be looked at one by one; find() then gives up.
  bool exhausted() const { return exhausted_at_ != kNone; }
  /// The op with which it gave up. REQUIRES: exhausted().
  uint32_t exhausted_at() const {
    precondition(exhausted());
    return exhausted_at_;
  }
  /// Chunks that the ops of one rank may refer to: at most some GiB of cells.
  static constexpr uint64_t kMaxVisits = uint64_t{1} << 25;

 private:
  void check(uint32_t op, const Access& access);
  void check_alias(uint32_t op, const Access& access, uint32_t chunk);
  void check_list(uint32_t op, const Access& access, uint32_t head, int64_t first, bool by_alias);
  bool same_group_op(uint32_t a, uint32_t b) const;
  bool disjoint(uint32_t a, uint32_t b);
  uint32_t granule(uint32_t op);
  uint32_t find_granule(const Op& op) const;
  bool is_copy_onto_itself(const Op& op) const;
  bool handled_alike(uint32_t earlier, uint32_t op, const Access& access);
  bool covers(const Touch& touch, uint32_t op, const Access& access);
  void drop_covered(uint32_t& head, uint32_t op, const Access& access);

  const Program& program_;
  std::vector<bool> aliased_;   ///< by rank: input and output may coincide
  std::vector<int64_t> shift_;  ///< by rank: input chunk c lies at output chunk c + shift
  uint32_t rank_ = 0;
  const Rank* here_ = nullptr;
  std::vector<bool> raw_;           ///< by buffer: packets that a port sends as they lie
  std::vector<uint32_t> granules_;  ///< by op, kNone until asked for; empty if no op has parts
  AccessHistory history_;
  std::vector<Access> accesses_;  ///< of the op at hand, those that count
  std::vector<uint32_t> cells_;   ///< of their chunks, in order
  std::vector<Conflict> found_;
  /// What handled_alike() was last asked, and said: ops with hundreds of peers ask once a peer.
  struct Alike {
    uint32_t earlier = kNone, op = kNone, count = 0;
    bool callers = false, answer = false;
  } alike_;
  uint64_t visits_ = 0;  ///< chunks looked at, of this rank
  uint32_t exhausted_at_ = kNone;
};

}  // namespace mscclc::order
