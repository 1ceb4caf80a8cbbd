// assign: gives ops that name no thread block a place. What the author pinned stays pinned.
//
// A program that names no block at all is cut into chains that can go on at once (chains.h), and
// each gets a block. If there are more than may be used, the longest goes first, each to the block
// that has least to do; what then shares a block is sorted so that equal ops of different chains
// stand side by side, for `fuse`. Everything else stays one sequence (assign_sequence.h).
//
//   for p in others { put_packets ch[p].inbox[r] <- input[p] }      tb 0 { put_packets ... }
//   for p in others { unpack_packets output[p] <- inbox[p] }   =>   tb 1 { unpack_packets ... } ...
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/program/rank_parts.h"
#include "passes/assign/assign_sequence.h"
#include "passes/assign/chains.h"
#include "passes/framework/passes.h"

namespace mscclc::assign {
namespace {

bool floats(const Op& op) { return op.block == kNone && op.group == kNone; }

/// What an op takes: a fixed part, and one for each chunk that it moves.
uint64_t cost_of(const Program& program, const Op& op) {
  constexpr uint64_t kFixed = 4;
  if (!info(op.kind).moves_data()) return kFixed;
  const Operand* operands = program.operands.at(op.operands);
  return kFixed + uint64_t{operands->count} * (uint64_t{op.dsts} + op.srcs);
}

/// A rank's chains on blocks.
class ChainPlacer {
 public:
  ChainPlacer(Program& program, const Chains& chains, uint32_t rank)
      : program_(program), chains_(chains), rank_(rank), ops_(program.ranks[rank].ops) {}

  void place(uint32_t most_blocks) {
    const uint32_t count = chains_.count[rank_];
    std::vector<uint32_t> block(count);
    std::iota(block.begin(), block.end(), 0u);
    const bool share = most_blocks != 0 && count > most_blocks;
    if (share) block = share_blocks(most_blocks);
    for (uint32_t i = 0; i < ops_.size(); ++i) ops_[i].block = block[chains_.chain[rank_][i]];
    if (share) sort_by_level();
    program_.ranks[rank_].blocks = std::min(count, share ? most_blocks : count);
  }

 private:
  std::vector<uint32_t> share_blocks(uint32_t most_blocks) const {
    const uint32_t count = chains_.count[rank_];
    std::vector<uint64_t> length(count, 0), cost(count, 0), load(most_blocks, 0);
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      const uint32_t chain = chains_.chain[rank_][i];
      length[chain] = std::max<uint64_t>(length[chain], chains_.level[rank_][i]);
      cost[chain] += cost_of(program_, ops_[i]);
    }
    std::vector<uint32_t> order(count), block(count);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
      return std::pair(length[a], cost[a]) > std::pair(length[b], cost[b]);
    });
    for (const uint32_t chain : order) {
      const auto least = std::ranges::min_element(load);
      block[chain] = static_cast<uint32_t>(least - load.begin());
      *least += cost[chain];
    }
    return block;
  }

  /// What can go first stands first. An order that suits all ranks, as levels count over all of
  /// them: if one stays as written, as pipelines do, whose rounds were not all counted, so do all.
  void sort_by_level() {
    if (!program_.loops.empty()) return;
    std::vector<uint32_t> order(ops_.size());
    std::iota(order.begin(), order.end(), 0u);
    const std::vector<uint32_t>& level = chains_.level[rank_];
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return level[a] < level[b]; });
    std::vector<Op> sorted;
    sorted.reserve(ops_.size());
    for (const uint32_t i : order) sorted.push_back(ops_[i]);
    ops_.swap(sorted);
  }

  Program& program_;
  const Chains& chains_;
  const uint32_t rank_;
  std::vector<Op>& ops_;
};

/// Blocks that the author names, on the rank that names most.
std::pair<uint32_t, uint32_t> find_most_named(const Program& program) {
  uint32_t most = 0, where = 0;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const uint32_t blocks = count_named_blocks(program, program.ranks[r]);
    if (blocks > most) where = r;
    most = std::max(most, blocks);
  }
  return {most, where};
}

/// Thread blocks that an instance may have; false if what is pinned needs more.
bool check_limit(const Program& program, PassContext& context, uint32_t& most_blocks) {
  const uint32_t limit = context.max_thread_blocks, instances = program.launch.instances;
  most_blocks = limit / instances;
  if (limit == 0) return true;
  const auto [named, rank] = find_most_named(program);
  if (named <= most_blocks && most_blocks > 0) return true;
  const std::string times =
      instances == 1 ? "" : fmt::format(" in each of {} instances", instances);
  Diagnostic& d = context.diagnostics.error(
      "too-many-blocks", {},
      fmt::format("rank {} has {} thread blocks{}, but at most {} may be used", rank,
                  std::max(named, 1u), times, limit));
  d.notes.push_back({"the limit is --max-thread-blocks; blocks that the program names stay", {}});
  return false;
}

}  // namespace
}  // namespace mscclc::assign

namespace mscclc {

bool run_assign(Program& program, PassContext& context) {
  uint32_t most_blocks = 0;
  if (!assign::check_limit(program, context, most_blocks)) return false;
  if (!any_op(program, context.threads, assign::floats)) return true;
  assign::Chains chains;
  if (!assign::find_chains(program, chains)) {
    return assign::place_sequences(program, most_blocks, context.diagnostics);
  }
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    context.count("chains", chains.count[r]);
    assign::ChainPlacer(program, chains, r).place(most_blocks);
  }
  return true;
}

}  // namespace mscclc
