#include "executor/cost/bound.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

namespace mscclc::cost {
namespace {

uint32_t shifted_to(const Contract& contract, uint32_t rank) {
  const int64_t n = contract.ranks;
  return static_cast<uint32_t>(((rank + contract.shift) % n + n) % n);
}

bool uses_switch(const Program& program) {
  return std::ranges::any_of(program.ranks, [](const Rank& rank) {
    return std::ranges::any_of(
        rank.channels, [](const Channel& channel) { return channel.kind == ChannelKind::switch_; });
  });
}

/// Groups of ranks, each with ways in and out of its own: GPUs, or nodes. What must go into the one
/// that gets most, and out of the one that gives most, at least.
class Groups {
 public:
  Groups(const Program& program, const Call& call, uint32_t size, bool by_switch)
      : contract_(program.contract),
        chunking_(contract_, call.part_bytes, program.granule(call.dtype)),
        part_(call.part_bytes),
        ranks_(contract_.ranks),
        size_(size),
        groups_((ranks_ + size - 1) / size),
        by_switch_(by_switch) {}

  Bound::Bytes bytes() const {
    if (groups_ < 2) return {};
    const CollectiveInfo& info = contract_.info();
    switch (info.source) {
      case Source::none:
        return {};
      case Source::everyone:
        return sums(info);
      case Source::row_rank:
        return rows(info);
      case Source::root_rank:
        return info.has_rows(Side::input) ? Bound::Bytes{outside(root()) * spread(), other_rows()}
                                          : Bound::Bytes{spread(), spread()};
      case Source::shifted:
      case Source::counted_row:
        return sent();
      case Source::promised:
        return promised();
    }
    return {};
  }

 private:
  uint32_t group(uint32_t rank) const { return rank / size_; }
  uint32_t root() const { return group(contract_.root); }
  uint64_t members(uint32_t g) const { return std::min(size_, ranks_ - g * size_); }
  uint64_t outside(uint32_t g) const { return ranks_ - members(g); }
  /// What the one that has most has, if all of them together have so much.
  uint64_t share(uint64_t all) const { return (all + groups_ - 1) / groups_; }
  /// Of a part what has to be sent: a row function may make less of it first.
  uint64_t spread() const {
    if (contract_.columns == 0) return part_;
    const uint64_t rows = contract_.info().has_rows(Side::output) ? ranks_ : 1;
    return std::min(part_, chunking_.buffer_bytes(Side::output, contract_.root) / rows);
  }
  /// The rows of the largest group but the root's.
  uint64_t other_rows() const { return members(root() == 0 ? 1 : 0) * spread(); }

  /// Each summand but one leaves its group. Each comes in somewhere, unless a switch adds them up.
  Bound::Bytes sums(const CollectiveInfo& info) const {
    const uint64_t n = groups_, others = n - 1;
    if (info.output.only_at_root) return {part_, part_};
    if (info.has_rows(Side::input)) {
      const uint64_t all = share(ranks_ * others * part_);
      return {all, by_switch_ ? part_ : all};
    }
    return {share(others * part_ + (by_switch_ ? 1 : others) * spread()),
            share((by_switch_ ? 1 : others) * part_ + others * spread())};
  }
  Bound::Bytes rows(const CollectiveInfo& info) const {
    if (info.output.only_at_root) return {other_rows(), outside(root()) * spread()};
    if (info.has_rows(Side::input)) {
      // All-to-all: each rank of the group gets its own rows.
      const uint64_t all = members(0) * outside(0) * spread();
      return {all, all};
    }
    uint64_t all = 0;
    for (uint32_t g = 0; g < groups_; ++g) all += outside(g);
    return {by_switch_ ? spread() : share(all * spread()), outside(groups_ - 1) * spread()};
  }
  /// From rank to rank, as the contract says.
  Bound::Bytes sent() const {
    std::vector<uint64_t> out(groups_), into(groups_);
    const auto send = [&](uint32_t from, uint32_t to, uint64_t bytes) {
      if (group(from) == group(to)) return;
      out[group(from)] += bytes;
      into[group(to)] += bytes;
    };
    for (uint32_t r = 0; r < ranks_; ++r) {
      if (contract_.counts.empty()) send(r, shifted_to(contract_, r), spread());
      for (uint32_t to = 0; to < ranks_ && !contract_.counts.empty(); ++to) {
        send(r, to, part_ * static_cast<uint64_t>(contract_.counts[size_t{r} * ranks_ + to]));
      }
    }
    return {std::ranges::max(out), std::ranges::max(into)};
  }
  /// An output that needs inputs elsewhere is a chunk that comes in, if those before it do not need
  /// one of them: from what comes in for these it cannot be made.
  Bound::Bytes promised() const {
    std::vector<uint64_t> into(groups_);
    std::set<std::tuple<uint32_t, uint32_t, uint32_t>> needed;  // by group
    uint64_t all = 0;
    for (const Promise& p : contract_.promises) {
      const uint32_t own = group(p.output.rank);
      uint64_t bytes = 0;
      for (const CallerChunk& i : p.inputs) {
        if (group(i.rank) == own || !needed.insert({own, i.rank, i.chunk}).second) continue;
        bytes = std::min(chunking_.length(Side::input, i.rank, i.chunk),
                         chunking_.length(Side::output, p.output.rank, p.output.chunk));
      }
      into[own] += bytes;
      all += bytes;
    }
    return {by_switch_ ? 0 : share(all), std::ranges::max(into)};
  }

  const Contract& contract_;
  const Chunking chunking_;
  const uint64_t part_;
  const uint32_t ranks_, size_, groups_;
  const bool by_switch_;
};

double rate(uint64_t bytes, uint64_t mb_per_s) {
  return static_cast<double>(bytes) * 1e3 / static_cast<double>(mb_per_s);
}

/// How long each call takes at least as messages take their time: whichever rank ends a call last,
/// in the next one another cannot end before it has heard from that rank. Where some are heard by
/// none, calls that follow one another hide it.
uint64_t message_ns(const Contract& contract, const Machine& machine) {
  const CollectiveInfo& info = contract.info();
  bool far = contract.ranks > machine.gpus;
  if (info.source == Source::shifted) {
    for (uint32_t r = 0; r < contract.ranks; ++r) {
      far &= !machine.same_node(r, shifted_to(contract, r));
    }
  } else if (info.output.only_at_root ||
             (info.source != Source::everyone && info.source != Source::row_rank)) {
    return 0;
  }
  return far ? machine.nic_latency_ns : machine.link_latency_ns();
}

}  // namespace

Bound least(const Program& program, const Call& call, const Machine& machine) {
  Bound bound;
  const Contract& contract = program.contract;
  const bool several = contract.ranks > machine.gpus;
  bound.link = Groups(program, call, 1, uses_switch(program)).bytes();
  if (several) bound.node = Groups(program, call, machine.gpus, false).bytes();
  bound.hops = bound.link.most() > 0 ? 1 : 0;
  // On several nodes a GPU has its own network port, too; alone in a node it has nothing else.
  const uint64_t gpu =
      (machine.gpus > 1 ? machine.link_mb_per_s() : 0) + (several ? machine.nic_mb_per_s : 0);
  if (bound.hops == 0) return bound;
  bound.ns =
      std::max({static_cast<double>(message_ns(contract, machine)), rate(bound.link.most(), gpu),
                rate(bound.node.most(), machine.nic_mb_per_s * machine.gpus)});
  return bound;
}

}  // namespace mscclc::cost
