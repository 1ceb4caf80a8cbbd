#include "executor/cost/bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace mscclc::cost {
namespace {

/// Groups of ranks, each with one way in: GPUs, or nodes. What must go into the one that gets most
/// (or out of the one that gives most), at least.
class Groups {
 public:
  Groups(const Contract& contract, uint64_t part, uint32_t size, bool by_switch)
      : contract_(contract),
        part_(part),
        ranks_(contract.ranks),
        size_(size),
        by_switch_(by_switch) {}

  uint64_t bytes() const {
    if (ranks_ <= size_) return 0;
    const CollectiveInfo& info = contract_.info();
    switch (info.source) {
      case Source::none:
        return 0;
      case Source::everyone:
        return sums(info);
      case Source::row_rank:
        return rows(info);
      case Source::root_rank:
        // Scattered, all that is not the root's group's leaves it; broadcast, all goes in.
        return contract_.info().has_rows(Side::input) ? outside() * part_ : part_;
      case Source::shifted:
        return shifted();
      case Source::counted_row:
        return counted();
      case Source::promised:
        return promised();
    }
    return 0;
  }

 private:
  uint64_t group(uint32_t rank) const { return rank / size_; }
  uint64_t outside() const { return ranks_ - size_; }
  uint64_t groups() const { return (ranks_ + size_ - 1) / size_; }

  /// A sum of n groups takes n - 1 messages between them, and n - 1 more to be in all of them.
  uint64_t sums(const CollectiveInfo& info) const {
    const uint64_t n = groups();
    if (info.output.only_at_root) return part_;
    if (by_switch_ && !info.has_rows(Side::input)) return part_;
    const uint64_t values = info.has_rows(Side::input) ? ranks_ : 1;
    const uint64_t messages = info.has_rows(Side::input) ? n - 1 : 2 * (n - 1);
    return (values * messages * part_ + n - 1) / n;
  }
  uint64_t rows(const CollectiveInfo& info) const {
    // All-to-all: each rank of the group gets its own rows.
    return (info.has_rows(Side::input) ? size_ : 1) * outside() * part_;
  }
  uint64_t shifted() const {
    const auto n = static_cast<int64_t>(ranks_);
    std::vector<uint64_t> into(groups());
    for (int64_t r = 0; r < n; ++r) {
      const auto to = static_cast<uint32_t>(((r + contract_.shift) % n + n) % n);
      if (group(to) != group(static_cast<uint32_t>(r))) into[group(to)] += part_;
    }
    return *std::ranges::max_element(into);
  }
  uint64_t counted() const {
    std::vector<uint64_t> into(groups());
    for (uint32_t s = 0; s < ranks_; ++s) {
      for (uint32_t d = 0; d < ranks_; ++d) {
        if (group(s) == group(d)) continue;
        into[group(d)] += part_ * static_cast<uint64_t>(contract_.counts[size_t{s} * ranks_ + d]);
      }
    }
    return *std::ranges::max_element(into);
  }
  /// Each output that is made of inputs elsewhere is one chunk that comes in.
  uint64_t promised() const {
    const uint64_t chunk = part_ / std::max(contract_.part_chunks(), 1u);
    std::vector<uint64_t> into(groups());
    for (const Promise& p : contract_.promises) {
      const uint64_t own = group(p.output.rank);
      if (std::ranges::any_of(p.inputs,
                              [&](const CallerChunk& i) { return group(i.rank) != own; })) {
        into[own] += chunk;
      }
    }
    // The same chunk may be promised to several ranks of a node, and come in once.
    const uint64_t most = *std::ranges::max_element(into);
    return size_ == 1 ? most : (most + size_ - 1) / size_;
  }

  const Contract& contract_;
  const uint64_t part_;
  const uint32_t ranks_, size_;
  const bool by_switch_;
};

double rate(uint64_t bytes, uint64_t mb_per_s) {
  return static_cast<double>(bytes) * 1e3 / static_cast<double>(mb_per_s);
}

}  // namespace

Bound least(const Contract& contract, uint64_t part_bytes, const Machine& machine, bool by_switch) {
  Bound bound;
  const bool several = contract.ranks > machine.gpus;
  bound.link_bytes = Groups(contract, part_bytes, 1, by_switch).bytes();
  if (several) bound.node_bytes = Groups(contract, part_bytes, machine.gpus, false).bytes();
  bound.rounds = bound.link_bytes > 0 ? 1 : 0;
  const uint64_t latency = several ? machine.nic_latency_ns : machine.link_latency_ns();
  // With one GPU a node all that a GPU sends goes over the network.
  const double link = machine.gpus == 1 ? 0 : rate(bound.link_bytes, machine.link_mb_per_s());
  const double node = rate(bound.node_bytes, machine.nic_mb_per_s * machine.gpus);
  bound.ns = std::max(link, node) + static_cast<double>(latency * bound.rounds);
  return bound;
}

}  // namespace mscclc::cost
