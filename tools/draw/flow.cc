#include "tools/draw/flow.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "ir/program/access.h"

namespace mscclc::draw {
namespace {

/// Where an op stands beside the pipeline of its block.
enum class When : uint8_t { before, inside, after };

/// Ops that give, or take, at one channel or semaphore.
struct Side {
  std::vector<OpRef> ops[3];  ///< by When
  std::vector<OpRef>& operator[](When when) { return ops[static_cast<size_t>(when)]; }
  std::vector<OpRef> all() const {
    std::vector<OpRef> out;
    for (const auto& part : ops) out.insert(out.end(), part.begin(), part.end());
    return out;
  }
};

class Matcher {
 public:
  explicit Matcher(const Program& program) : program_(program) {}

  std::vector<Flow> run() {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) collect(r);
    for (auto& [end, waits] : waits_) match_channel(end.first, end.second, waits);
    for (auto& [semaphore, acquires] : acquires_) {
      const auto& [rank, index] = semaphore;
      match(releases_[semaphore], acquires, program_.ranks[rank].semaphores[index].initial,
            FlowKind::semaphore);
    }
    meet();
    match_packets();
    return std::move(flows_);
  }

 private:
  using End = std::pair<uint32_t, uint32_t>;  // a rank, and its channel or semaphore

  void collect(uint32_t r) {
    const Rank& rank = program_.ranks[r];
    std::map<int64_t, uint32_t> last_in_loop;
    for (uint32_t i = 0; i < rank.ops.size(); ++i) {
      if (rank.ops[i].loop != kNone) last_in_loop[place_of(rank.ops[i])] = i;
    }
    for (uint32_t i = 0; i < rank.ops.size(); ++i) {
      const Op& op = rank.ops[i];
      const auto found = last_in_loop.find(place_of(op));
      const bool after = found != last_in_loop.end() && i > found->second;
      const When when = op.loop != kNone ? When::inside : after ? When::after : When::before;
      collect({r, i}, op, when);
    }
  }

  void collect(OpRef at, const Op& op, When when) {
    const OpInfo& row = info(op.kind);
    if (row.has(kMeets)) return collect_barrier(at, op);
    for (const Operand& o : program_.dsts(op)) {
      if (row.has(kSignals)) signals_[{at.rank, o.channel}][when].push_back(at);
      if (row.has(kWaits)) waits_[{at.rank, o.channel}][when].push_back(at);
      if (row.has(kReleases)) releases_[{at.rank, o.first}][when].push_back(at);
      if (row.has(kAcquires)) acquires_[{at.rank, o.first}][when].push_back(at);
    }
  }

  void collect_barrier(OpRef at, const Op& op) {
    std::vector<uint32_t> blocks;
    for (const Operand& o : program_.dsts(op)) blocks.push_back(o.first);
    const size_t turn = turns_[{at.rank, blocks, op.block}]++;
    meetings_[{at.rank, blocks, turn}].push_back(at);
  }

  void match_channel(uint32_t rank, uint32_t channel, Side& waits) {
    const Channel& end = program_.ranks[rank].channels[channel];
    if (end.peer == kNone || end.partner == kNone) return;
    match(signals_[{end.peer, end.partner}], waits, end.credits, FlowKind::signal);
  }

  void match(Side& givers, Side& takers, uint32_t initial, FlowKind kind) {
    if (givers[When::inside].empty() || takers[When::inside].empty()) {
      return match_in_turn(givers.all(), takers.all(), initial, kind);
    }
    match_in_turn(givers[When::before], takers[When::before], initial, kind);
    const size_t given = initial + givers[When::before].size();
    const size_t taken = takers[When::before].size();
    const size_t credits = given > taken ? given - taken : 0;
    match_first_rounds(givers[When::before], takers, credits, kind);
    match_rounds(givers[When::inside], takers[When::inside], credits, kind);
    match_last_rounds(givers, takers[When::after], credits, kind);
  }

  void match_in_turn(const std::vector<OpRef>& givers, const std::vector<OpRef>& takers,
                     size_t initial, FlowKind kind) {
    for (size_t k = initial; k < takers.size() && k - initial < givers.size(); ++k) {
      flows_.push_back({givers[k - initial], takers[k], kind, 0, 0});
    }
  }

  /// What is given before the pipeline and left for it.
  void match_first_rounds(const std::vector<OpRef>& givers, Side& takers, size_t credits,
                          FlowKind kind) {
    const size_t left = std::min(credits, givers.size());
    for (size_t k = 0; k < std::min(left, takers[When::inside].size()); ++k) {
      const OpRef giver = givers[givers.size() - left + k];
      flows_.push_back({giver, takers[When::inside][k], kind, 0, 0});
    }
  }

  void match_rounds(const std::vector<OpRef>& givers, const std::vector<OpRef>& takers,
                    size_t credits, FlowKind kind) {
    const int64_t n = std::ssize(givers);
    for (size_t k = 0; k < takers.size(); ++k) {
      const int64_t i = static_cast<int64_t>(k) - static_cast<int64_t>(credits);
      const int64_t lag = i >= 0 ? 0 : (-i + n - 1) / n;
      const OpRef giver = givers[static_cast<size_t>((i % n + n) % n)];
      flows_.push_back(
          {giver, takers[k], kind, static_cast<uint32_t>(lag), static_cast<uint32_t>(credits)});
    }
  }

  /// What the last rounds leave, and what is given after them.
  void match_last_rounds(Side& givers, const std::vector<OpRef>& takers, size_t credits,
                         FlowKind kind) {
    const auto& inside = givers[When::inside];
    const auto& after = givers[When::after];
    for (size_t k = 0; k < takers.size(); ++k) {
      if (k < credits) {
        const size_t back = std::min(inside.size(), credits - k);
        flows_.push_back({inside[inside.size() - back], takers[k], kind, 0, 0});
      } else if (k - credits < after.size()) {
        flows_.push_back({after[k - credits], takers[k], kind, 0, 0});
      }
    }
  }

  void meet() {
    for (const auto& [key, ops] : meetings_) {
      for (size_t i = 1; i < ops.size(); ++i) {
        flows_.push_back({ops[i - 1], ops[i], FlowKind::barrier, 0, 0});
      }
    }
  }

  void match_packets() {
    using Chunk = std::tuple<uint32_t, uint32_t, uint32_t>;  // rank, buffer, index
    std::map<Chunk, std::vector<OpRef>> writers;
    for_each_packet(true, [&](OpRef at, const Chunk& chunk) { writers[chunk].push_back(at); });
    std::set<std::pair<OpRef, OpRef>> seen;
    for_each_packet(false, [&](OpRef at, const Chunk& chunk) {
      for (const OpRef writer : writers_for(writers[chunk], at)) {
        if (seen.insert({writer, at}).second) {
          flows_.push_back({writer, at, FlowKind::packets, 0, 0});
        }
      }
    });
  }

  /// The writers of a chunk that `reader` waits for: those that write its part of it.
  std::vector<OpRef> writers_for(const std::vector<OpRef>& writers, OpRef reader) const {
    const Op& read = op_at(reader);
    std::vector<OpRef> out;
    for (const OpRef writer : writers) {
      const Op& write = op_at(writer);
      const bool apart = write.parts == read.parts && write.part != read.part;
      if (!apart && writer != reader) out.push_back(writer);
    }
    return out;
  }

  template <class Visit>
  void for_each_packet(bool write, Visit&& visit) const {
    std::vector<Access> accesses;
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (uint32_t i = 0; i < program_.ranks[r].ops.size(); ++i) {
        accesses.clear();
        append_accesses(program_, r, program_.ranks[r].ops[i], accesses);
        for (const Access& a : accesses) {
          if (!a.packets || a.write != write) continue;
          for (uint32_t k = 0; k < a.count; ++k) visit({r, i}, {a.rank, a.buffer, a.first + k});
        }
      }
    }
  }

  const Op& op_at(OpRef at) const { return program_.ranks[at.rank].ops[at.op]; }

  const Program& program_;
  std::vector<Flow> flows_;
  std::map<End, Side> signals_, waits_, releases_, acquires_;
  std::map<std::tuple<uint32_t, std::vector<uint32_t>, uint32_t>, size_t> turns_;
  std::map<std::tuple<uint32_t, std::vector<uint32_t>, size_t>, std::vector<OpRef>> meetings_;
};

}  // namespace

std::vector<Flow> flows_of(const Program& program) { return Matcher(program).run(); }

int64_t place_of(const Op& op) {
  if (op.block != kNone) return op.block;
  return op.group != kNone ? kGroupPlace + op.group : kNoPlace;
}

}  // namespace mscclc::draw
