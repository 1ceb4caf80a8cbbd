#include "ir/report/coinciding.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "ir/print/print.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

class CoincidingSearch {
 public:
  CoincidingSearch(const Program& program, uint32_t rank, OpKind kind, uint64_t pieces)
      : program_(program), rank_(rank), row_(info(kind)), pieces_(std::max<uint64_t>(pieces, 1)) {}

  std::optional<Coinciding> find(std::span<const Operand> dsts, std::span<const Operand> srcs) {
    if (row_.has(Effects::kPolls)) {
      if (auto found = own_slot(dsts, srcs)) return found;
      if (auto found = slot_twice(srcs)) return found;
    }
    if (row_.has(Effects::kSignals)) {
      if (auto found = signalled_twice(dsts)) return found;
    }
    // Of the sources of pairwise ops none lies where a destination may: a channel leads to another
    // rank, and packets are unpacked into plain chunks.
    const bool moves = row_.srcs.count > 0 && row_.srcs.slot[0].pairwise;
    if (dsts.size() < 2) return std::nullopt;
    if (moves)
      return stores_meet(dsts, "moves", "store", "leave out one of them, or write two ops");
    if (!row_.has(Effects::kApplies)) return std::nullopt;
    return stores_meet(dsts, "results", "are stored", "give one of them a place of its own");
  }

 private:
  /// Where an operand's chunks begin; `number` is its place in the list.
  struct Start {
    uint32_t owner, buffer;
    uint64_t first;
    uint32_t count, number;
    auto key() const { return std::tuple(owner, buffer, first); }
  };
  struct Pair {
    size_t first, second;
  };

  std::optional<Coinciding> own_slot(std::span<const Operand> dsts, std::span<const Operand> srcs) {
    for (const Operand& to : dsts) {
      if (!is_sentinel_here(to)) continue;
      for (const Operand& from : srcs) {
        if (!is_sentinel_here(from) || !meet(start(from, 0), start(to, 0))) continue;
        return Coinciding{"op-own-slot",
                          fmt::format("'{}' takes from '{}' and stores into '{}': machines may "
                                      "empty the slot before they store or after",
                                      row_.name, text(from), text(to)),
                          "write two ops, one that takes from the slot and one that stores into it",
                          &to};
      }
    }
    return std::nullopt;
  }

  std::optional<Coinciding> slot_twice(std::span<const Operand> srcs) {
    if (std::ranges::count_if(srcs, [&](const Operand& o) { return is_sentinel_here(o); }) < 2) {
      return std::nullopt;
    }
    const auto pair = find_pair(srcs, [&](const Operand& o) { return is_sentinel_here(o); });
    if (!pair) return std::nullopt;
    return Coinciding{
        "op-slot-twice",
        fmt::format("'{}' takes from '{}' and from '{}': the first to read a sentinel "
                    "slot empties it, and the second waits forever",
                    row_.name, text(srcs[pair->first]), text(srcs[pair->second])),
        "take from the slot once, into a chunk of scratch, and use that twice",
        &srcs[pair->second]};
  }

  /// A port gets each put with its signal, and the first signal shows what has been put before it.
  std::optional<Coinciding> signalled_twice(std::span<const Operand> dsts) {
    const Operand* const again = repeated_channel(dsts);
    if (again == nullptr) return std::nullopt;
    const Channel& channel = program_.ranks[rank_].channels[again->channel];
    return Coinciding{"op-channel",
                      fmt::format("'{}' signals '{}' twice: the first signal leaves before the "
                                  "second put",
                                  row_.name, program_.text(channel.label)),
                      "write one 'put', and after it the signals", again};
  }

  /// `what` the destinations are of, what it does, and what helps.
  std::optional<Coinciding> stores_meet(std::span<const Operand> dsts, std::string_view what,
                                        std::string_view does, const char* remedy) {
    const auto pair = find_pair(dsts, [](const Operand&) { return true; });
    if (!pair) return std::nullopt;
    return Coinciding{
        "op-moves",
        fmt::format("two {} of one '{}' {} into the same chunks, '{}' and '{}': "
                    "which of them is last is not certain",
                    what, row_.name, does, text(dsts[pair->first]), text(dsts[pair->second])),
        remedy, &dsts[pair->second]};
  }

  /// Two that meet, of those that `counts` is true for. Most lists are in order.
  template <class Counts>
  std::optional<Pair> find_pair(std::span<const Operand> operands, Counts&& counts) {
    starts_.clear();
    for (size_t i = 0; i < operands.size(); ++i) {
      if (counts(operands[i])) starts_.push_back(start(operands[i], static_cast<uint32_t>(i)));
    }
    if (!std::ranges::is_sorted(starts_, {}, &Start::key)) {
      std::ranges::stable_sort(starts_, {}, &Start::key);
    }
    const auto found = std::ranges::adjacent_find(
        starts_, [&](const Start& a, const Start& b) { return meet(a, b); });
    if (found == starts_.end()) return std::nullopt;
    const auto [first, second] = std::minmax(found[0].number, found[1].number);
    return Pair{first, second};
  }

  /// An operand at a switch stands for the chunk that lies here.
  Start start(const Operand& o, uint32_t number) const {
    const bool at_switch = o.channel != kNone &&
                           program_.ranks[rank_].channels[o.channel].kind == ChannelKind::switch_;
    const uint32_t owner = at_switch ? rank_ : program_.owner_of(rank_, o);
    Start start{owner, o.buffer, o.first, o.count, number};
    if (o.buffer >= kFirstScratch || program_.contract.in_place != InPlace::yes) return start;
    if (const auto alias = program_.contract.alias(owner)) {
      start.first += o.buffer == kInput ? alias->output_chunk : alias->input_chunk;
      start.buffer = kInput;
    }
    return start;
  }

  /// Do both mean some of the same bytes? All ops cut what they move evenly, so parts of ranges
  /// that lie as many chunks apart as a part has have no byte in common.
  bool meet(const Start& a, const Start& b) const {
    if (a.owner != b.owner || a.buffer != b.buffer) return false;
    const auto [low, high] =
        std::minmax(a, b, [](const Start& x, const Start& y) { return x.first < y.first; });
    const uint64_t apart = high.first - low.first;
    return apart < low.count && apart * pieces_ < low.count;
  }

  bool is_sentinel_here(const Operand& o) const {
    if (!is_sentinel(program_.buffer_of(rank_, o).packets)) return false;
    return o.channel == kNone ||
           program_.ranks[rank_].channels[o.channel].kind == ChannelKind::switch_;
  }

  std::string text(const Operand& o) const { return print_chunks(program_, rank_, o); }

  const Program& program_;
  const uint32_t rank_;
  const OpInfo& row_;
  const uint64_t pieces_;
  std::vector<Start> starts_;
};

}  // namespace

const Operand* repeated_channel(std::span<const Operand> operands) {
  for (size_t i = 1; i < operands.size(); ++i) {
    const auto same = [&](const Operand& o) { return o.channel == operands[i].channel; };
    if (std::ranges::any_of(operands.first(i), same)) return &operands[i];
  }
  return nullptr;
}

std::optional<Coinciding> find_coinciding(const Program& program, uint32_t rank, OpKind kind,
                                          uint64_t pieces, std::span<const Operand> dsts,
                                          std::span<const Operand> srcs) {
  precondition(rank < program.ranks.size());
  return CoincidingSearch(program, rank, kind, pieces).find(dsts, srcs);
}

}  // namespace mscclc
