#include "tools/bench/contenders/moves.h"

namespace mscclc::bench {
namespace {

constexpr uint32_t kAlign = 16;

class Mover {
 public:
  Mover(const Contract& contract, uint32_t rank, uint64_t part)
      : contract_(contract), rank_(rank), ranks_(contract.ranks), part_(part) {}

  std::vector<Move> run() {
    switch (contract_.kind) {
      case CollectiveKind::allreduce:
        exchange_shares();
        break;
      case CollectiveKind::allgather:
        for (uint32_t i = 1; i <= ranks_; ++i) add(0, peer(i), rank_ * part_, part_);
        break;
      case CollectiveKind::reducescatter:
      case CollectiveKind::alltoall:
        for (uint32_t i = 1; i <= ranks_; ++i) add(peer(i) * part_, peer(i), rank_ * part_, part_);
        break;
      case CollectiveKind::broadcast:
        broadcast();
        break;
      default:
        break;
    }
    return std::move(moves_);
  }

 private:
  uint32_t peer(uint32_t distance) const { return (rank_ + distance) % ranks_; }

  void add(uint64_t from, uint32_t to_rank, uint64_t to, uint64_t bytes) {
    if (bytes > 0) moves_.push_back({from, to_rank, to, bytes});
  }

  // Every share goes to the rank that adds it up, and its sum comes back.
  void exchange_shares() {
    const BalancedSplit shares(part_, ranks_, kAlign);
    for (uint32_t i = 1; i < ranks_; ++i) {
      add(shares.begin(peer(i)), peer(i), shares.begin(peer(i)), shares.length(peer(i)));
    }
    for (uint32_t i = 1; i <= ranks_; ++i) {
      add(shares.begin(rank_), peer(i), shares.begin(rank_), shares.length(rank_));
    }
  }

  // The root hands out shares, which their owners pass on.
  void broadcast() {
    const uint32_t root = contract_.root;
    if (rank_ == root) add(0, rank_, 0, part_);
    if (ranks_ == 1) return;
    const BalancedSplit shares(part_, ranks_ - 1, kAlign);
    const auto share = [&](uint32_t rank) { return rank < root ? rank : rank - 1; };
    for (uint32_t i = 1; i < ranks_; ++i) {
      if (peer(i) == root) continue;
      const uint32_t which = share(rank_ == root ? peer(i) : rank_);
      add(shares.begin(which), peer(i), shares.begin(which), shares.length(which));
    }
  }

  const Contract& contract_;
  const uint32_t rank_, ranks_;
  const uint64_t part_;
  std::vector<Move> moves_;
};

}  // namespace

std::vector<Move> least_moves(const Contract& contract, uint32_t rank, uint64_t part) {
  return Mover(contract, rank, part).run();
}

bool has_least_moves(const Contract& contract, uint64_t part) {
  for (uint32_t rank = 0; rank < contract.ranks; ++rank) {
    if (!least_moves(contract, rank, part).empty()) return true;
  }
  return false;
}

}  // namespace mscclc::bench
