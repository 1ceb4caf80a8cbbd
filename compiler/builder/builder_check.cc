// The checks that need the whole program: bodies, balance of signals, semaphores and barriers,
// blocks without ops, promises.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/builder/builder_state.h"

namespace mscclc {
namespace {

/// "signals 'ch[0]' 3 times", "never waits", "waits twice".
std::string deed(std::string_view verb, int64_t n, std::string_view object = {}) {
  const std::string what =
      object.empty() ? std::string(verb) : fmt::format("{} '{}'", verb, object);
  return n == 0 ? "never " + what : fmt::format("{} {}", what, times(n));
}

class Checker {
 public:
  explicit Checker(BuilderState& state) : s_(state), p_(state.program) {}

  void bodies() {
    for (uint32_t r = 0; r < s_.ranks.size(); ++r) {
      if (!s_.ranks[r].entered)
        s_.fail("no-body", s_.kind_mark, fmt::format("rank {} has no body", r));
    }
  }

  void balances() {
    for (const auto& [key, count] : s_.more_tallies)
      extra_classes_ = std::max(extra_classes_, key.second);
    for (uint32_t r = 0; r < s_.ranks.size(); ++r) {
      const std::vector<Channel>& channels = p_.ranks[r].channels;
      for (uint32_t c = 0; c < channels.size(); ++c) {
        if (channels[c].partner != kNone) channel(r, c, channels[c]);
      }
      for (uint32_t i = 0; i < p_.ranks[r].semaphores.size(); ++i) semaphore(r, i);
      if (!s_.barrier_marks.empty()) barriers(r);
    }
  }

  void empty_blocks() {
    uint32_t rank = kNone;
    std::vector<bool> used;
    for (const EmptyBlock& e : s_.empty_blocks) {
      if (e.rank != rank) used = used_blocks(rank = e.rank);
      if (used[e.block]) continue;
      Diagnostic& d = s_.warn("empty-block", e.mark.end != 0 ? e.mark : s_.kind_mark,
                              fmt::format("tb {} has no ops", e.block));
      d.notes.push_back({fmt::format("on rank {}", e.rank), d.span});
    }
  }

  std::vector<bool> used_blocks(uint32_t rank) const {
    std::vector<bool> used(p_.ranks[rank].blocks);
    for (const Op& op : p_.ranks[rank].ops) {
      if (op.block != kNone) used[op.block] = true;
      if (op.group == kNone) continue;
      for (const int64_t b : p_.values(p_.groups[op.group])) used[static_cast<size_t>(b)] = true;
    }
    return used;
  }

  /// A program that says it is split has its ops sorted by block.
  void split() {
    if (!p_.split) return;
    for (uint32_t r = 0; r < p_.ranks.size(); ++r) {
      uint32_t last = 0;
      for (const Op& op : p_.ranks[r].ops) {
        if (op.block != kNone && op.block >= last) {
          last = op.block;
          continue;
        }
        s_.fail(
            "not-split", s_.kind_mark,
            fmt::format("'split: true', but the ops of rank {} are not sorted by thread block", r));
        return;
      }
    }
  }

  void promises() {
    if (p_.contract.kind != CollectiveKind::custom) return;
    std::vector<Promise>& list = p_.contract.promises;
    // Wrong promises have been reported; they are no reason to say that there are none.
    if (list.empty() && !s_.diagnostics.has_errors())
      s_.warn("no-promise", s_.kind_mark, "nothing is promised");
    std::vector<uint32_t> order(list.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto place = [&](uint32_t i) {
      return std::pair(list[i].output.rank, list[i].output.chunk);
    };
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return place(a) < place(b); });
    for (size_t i = 1; i < order.size(); ++i) {
      if (place(order[i - 1]) != place(order[i])) continue;
      Diagnostic& d = s_.fail("promised-twice", s_.promise_marks[order[i]],
                              fmt::format("two 'ensure' for output[{}] at rank {}",
                                          place(order[i]).second, place(order[i]).first));
      s_.note(d, s_.promise_marks[order[i - 1]], "the other is here");
    }
    p_.contract.sort_promises();
  }

 private:
  int64_t count(const Tally& tally, uint64_t key, uint32_t rounds) const {
    if (tally.count > 0 && tally.rounds == rounds) return tally.count;
    const auto more = s_.more_tallies.find({key, rounds});
    return more == s_.more_tallies.end() ? 0 : more->second;
  }

  /// The pipeline classes that a pair of tallies can have.
  template <class F>
  void each_class(const Tally& a, const Tally& b, F f) {
    if (a.count > 0) f(a.rounds);
    if (b.count > 0 && (a.count == 0 || a.rounds != b.rounds)) f(b.rounds);
    if (s_.more_tallies.empty()) return;
    for (uint32_t k = 0; k <= extra_classes_; ++k) {
      if ((a.count == 0 || k != a.rounds) && (b.count == 0 || k != b.rounds)) f(k);
    }
  }

  /// "in each round of a pipeline with unit: 1024", or "outside pipelines".
  std::string where(uint32_t rounds) const {
    for (const auto& [ratio, id] : s_.round_classes) {
      if (id != rounds) continue;
      return fmt::format("in each round of a pipeline with unit: {}{}", ratio.first,
                         ratio.second == 1 ? "" : fmt::format(", chunks: {}", ratio.second));
    }
    return "outside pipelines";
  }
  void note_rounds(Diagnostic& d, uint32_t rounds) {
    if (rounds != 0) d.notes.push_back({where(rounds), d.span});
  }
  /// The classes of rounds in which the partner takes more than is given.
  std::vector<uint32_t> taken_elsewhere(const Tally& signals, uint64_t signal_key,
                                        const Tally& waits, uint64_t wait_key) {
    std::vector<uint32_t> found;
    each_class(signals, waits, [&](uint32_t rounds) {
      if (count(waits, wait_key, rounds) > count(signals, signal_key, rounds)) {
        found.push_back(rounds);
      }
    });
    return found;
  }
  void note_elsewhere(Diagnostic& d, uint32_t peer, uint32_t rounds) {
    d.notes.push_back({fmt::format("rank {} waits {}; how many rounds a pipeline has depends on "
                                   "the size of the message",
                                   peer, where(rounds)),
                       d.span});
  }

  /// Compares the signals of an end with the waits of its partner.
  void channel(uint32_t r, uint32_t c, const Channel& channel) {
    const Tally& signals = s_.ranks[r].ends[c].signals;
    const Tally& waits = s_.ranks[channel.peer].ends[channel.partner].waits;
    const uint64_t signal_key = tally_key(r, c);
    const uint64_t wait_key = tally_key(channel.peer, channel.partner) | kWaitTally;
    each_class(signals, waits, [&](uint32_t rounds) {
      const int64_t given = count(signals, signal_key, rounds);
      const int64_t taken = count(waits, wait_key, rounds);
      if (given == taken) return;
      const std::string mine = s_.label(r, c), theirs = s_.label(channel.peer, channel.partner);
      std::vector<uint32_t> elsewhere;
      if (given > taken) elsewhere = taken_elsewhere(signals, signal_key, waits, wait_key);
      const bool other = taken == 0 && !elsewhere.empty();
      Diagnostic& d =
          s_.fail("unbalanced", s_.ranks[r].ends[c].mark,
                  fmt::format("rank {} {}, rank {} {}", r, deed("signals", given, mine),
                              channel.peer, other ? "waits elsewhere" : deed("waits", taken)));
      s_.note(d, s_.ranks[channel.peer].ends[channel.partner].mark,
              fmt::format("the other end is '{}' of rank {}", theirs, channel.peer));
      note_rounds(d, rounds);
      for (const uint32_t there : elsewhere) note_elsewhere(d, channel.peer, there);
    });
  }

  void semaphore(uint32_t r, uint32_t i) {
    const SemaphoreCount& sem = s_.ranks[r].semaphores[i];
    const uint64_t key = tally_key(r, i) | kSemaphoreTally;
    each_class(sem.releases, sem.acquires, [&](uint32_t rounds) {
      const int64_t given = count(sem.releases, key, rounds);
      const int64_t taken = count(sem.acquires, key | kWaitTally, rounds);
      if (given == taken) return;
      Diagnostic& d =
          s_.fail("unbalanced", sem.mark,
                  fmt::format("'{}' of rank {} is {}, {}", p_.text(p_.ranks[r].semaphores[i].label),
                              r, given == 0 ? "never released" : "released " + times(given),
                              taken == 0 ? "never acquired" : "acquired " + times(taken)));
      note_rounds(d, rounds);
    });
  }

  /// Blocks of a barrier must all reach it equally often.
  void barriers(uint32_t r) {
    std::map<std::pair<std::vector<int64_t>, uint32_t>, std::map<uint32_t, int64_t>> arrivals;
    for (const Op& op : p_.ranks[r].ops) {
      if (op.kind != OpKind::barrier) continue;
      std::vector<int64_t> blocks;
      for (const Operand& o : p_.dsts(op)) blocks.push_back(o.first);
      const uint32_t rounds = op.loop == kNone ? 0 : s_.rounds_of(p_.loops[op.loop]);
      ++arrivals[{std::move(blocks), rounds}][op.block];
    }
    for (const auto& arrival : arrivals) {
      const std::vector<int64_t>& blocks = arrival.first.first;
      const std::map<uint32_t, int64_t>& by_block = arrival.second;
      const auto reached = [&](int64_t b) {
        const auto found = by_block.find(static_cast<uint32_t>(b));
        return found == by_block.end() ? 0 : found->second;
      };
      const auto [least, most] = std::ranges::minmax_element(blocks, {}, reached);
      if (reached(*least) == reached(*most)) continue;
      Diagnostic& d =
          s_.fail("unbalanced", s_.barrier_marks[blocks],
                  fmt::format("tb {} reaches the barrier {} {}, tb {} {}", *most,
                              blocks_text(List::stored(blocks)), times(reached(*most), true),
                              *least, times(reached(*least), true)));
      d.notes.push_back({fmt::format("on rank {}", r), d.span});
      note_rounds(d, arrival.first.second);
    }
  }

  BuilderState& s_;
  Program& p_;
  uint32_t extra_classes_ = 0;
};

}  // namespace

uint32_t BuilderState::rounds_of(const Loop& loop) const {
  const auto divisor = std::gcd(loop.unit, uint64_t{loop.chunks});
  const auto found = round_classes.find({loop.unit / divisor, loop.chunks / divisor});
  return found == round_classes.end() ? 0 : found->second;
}

bool Builder::check() {
  BuilderState& s = *state_;
  if (std::exchange(s.checked, true)) return !s.failed;
  if (!s.has_contract) {
    if (!s.failed) s.fail("no-collective", {}, "no 'collective' line");
    return false;
  }
  seal();
  Checker checker(s);
  s.leave_rank();
  checker.bodies();
  checker.promises();
  checker.split();
  if (s.failed) return false;  // what follows would only repeat it
  if (!s.program.foreign) checker.balances();
  if (!s.failed && !s.flat) checker.empty_blocks();
  if (!s.failed && !s.flat && !s.program.foreign) s.warn_of_unused_rows();
  return !s.failed;
}

std::optional<Program> Builder::finish() {
  if (!check()) return std::nullopt;
  return std::move(state_->program);
}

}  // namespace mscclc
