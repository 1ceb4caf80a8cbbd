#include "passes/sync/drop_barriers.h"

#include <algorithm>
#include <vector>

#include "ir/support/precondition.h"

namespace mscclc::order {
namespace {

/// The arrivals at the barriers of one set of blocks.
struct Meetings {
  std::vector<uint32_t> blocks;                 ///< sorted
  std::vector<std::vector<uint32_t>> arrivals;  ///< by block: ops
  std::vector<std::vector<bool>> repeats;       ///< by block and arrival: nothing since the last
};

class BarrierScan {
 public:
  BarrierScan(Program& program, uint32_t rank)
      : program_(program), rank_(program.ranks[rank]), last_(rank_.blocks, kNone) {}

  /// Ops to take out.
  std::vector<bool> run() {
    for (uint32_t i = 0; i < rank_.ops.size(); ++i) visit(i);
    std::vector<bool> out(found_.empty() ? 0 : rank_.ops.size());
    for (const Meetings& m : found_) mark(m, out);
    return out;
  }

 private:
  void visit(uint32_t i) {
    const Op& op = rank_.ops[i];
    if (op.kind == OpKind::sync) return;
    uint32_t& last = last_[op.block];
    if (op.kind != OpKind::barrier || op.dsts < 2 || op.loop != kNone) {
      last = kNone;
      return;
    }
    const uint32_t id = meetings_of(op);
    Meetings& m = found_[id];
    const auto member = std::ranges::lower_bound(m.blocks, op.block) - m.blocks.begin();
    m.arrivals[static_cast<size_t>(member)].push_back(i);
    m.repeats[static_cast<size_t>(member)].push_back(last == id);
    last = id;
  }

  uint32_t meetings_of(const Op& op) {
    std::vector<uint32_t> blocks;
    for (const Operand& o : program_.dsts(op)) blocks.push_back(o.first);
    std::ranges::sort(blocks);
    const auto found = std::ranges::find(found_, blocks, &Meetings::blocks);
    const uint32_t id = static_cast<uint32_t>(found - found_.begin());
    if (found == found_.end()) {
      found_.push_back({blocks, {}, {}});
      found_.back().arrivals.resize(blocks.size());
      found_.back().repeats.resize(blocks.size());
    }
    return id;
  }

  /// The k-th arrivals of all blocks are one meeting.
  static void mark(const Meetings& m, std::vector<bool>& out) {
    for (size_t k = 1; k < m.arrivals[0].size(); ++k) {
      const bool repeats = std::ranges::all_of(
          m.repeats, [k](const std::vector<bool>& r) { return k < r.size() && r[k]; });
      for (const std::vector<uint32_t>& arrivals : m.arrivals) {
        if (repeats) out[arrivals[k]] = true;
      }
    }
  }

  Program& program_;
  Rank& rank_;
  std::vector<uint32_t> last_;  ///< by block: the barrier that was its last op but syncs, or kNone
  std::vector<Meetings> found_;
};

}  // namespace

uint64_t drop_repeated_barriers(Program& program, uint32_t rank) {
  precondition([&] {
    return std::ranges::all_of(program.ranks[rank].ops,
                               [](const Op& op) { return op.block != kNone; });
  });
  const std::vector<bool> out = BarrierScan(program, rank).run();
  const auto dropped = static_cast<uint64_t>(std::ranges::count(out, true));
  if (dropped == 0) return 0;
  Rank& here = program.ranks[rank];
  size_t i = 0;
  std::erase_if(here.ops, [&](const Op& op) {
    if (!out[i++]) return false;
    here.removed.push_back({op, "sync"});
    return true;
  });
  return dropped;
}

}  // namespace mscclc::order
