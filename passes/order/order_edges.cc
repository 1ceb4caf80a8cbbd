#include "passes/order/order_edges.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace mscclc::order {

void OrderEdges::start() {
  edges_.clear();
  of_acquire_.clear();
}

void OrderEdges::add(const OrderEdge& edge) {
  const auto next = static_cast<uint32_t>(edges_.size());
  const auto [known, added] = of_acquire_.try_emplace({edge.acquire, edge.loop, edge.from}, next);
  if (added) {
    edges_.push_back(edge);
  } else {
    edges_[known->second].release = edge.release;  // later than before: serves both
  }
}

void OrderEdges::sort() {
  sorted_ = edges_;
  std::ranges::sort(sorted_, {},
                    [](const OrderEdge& e) { return std::tuple(e.acquire, e.loop, e.from); });
}

/// The edges into a place, as they were when sorted.
std::span<const OrderEdge> OrderEdges::into(uint32_t acquire, uint32_t loop) const {
  const auto place = [](const OrderEdge& e) { return std::pair(e.acquire, e.loop); };
  const auto found = std::ranges::equal_range(sorted_, std::pair(acquire, loop), {}, place);
  return {found.begin(), found.end()};
}

void OrderEdges::drop_implied(const Rank& rank, const BlockRun& run) {
  sort();
  // Does the block that `by` waits for know what `edge` waits for, when it releases?
  const auto implies = [&](const OrderEdge& by, const OrderEdge& edge) {
    if (by.from == edge.from) return false;
    const uint32_t row = run.clocks.row_at(by.from, run.count(by.release));
    // What was learned in a round of one pipeline says little about the end of another.
    const uint32_t loop = rank.ops[edge.release].loop;
    const bool by_rounds = edge.loop == kNone && loop != kNone && rank.ops[by.release].loop != loop;
    return run.clocks.known(row, edge.from) >= run.count(edge.release) + (by_rounds ? 1 : 0);
  };
  // Blocks that know of each other both stay: whichever goes, the other would not do alone.
  std::erase_if(edges_, [&](const OrderEdge& edge) {
    return std::ranges::any_of(into(edge.acquire, edge.loop), [&](const OrderEdge& by) {
      return implies(by, edge) && !implies(edge, by);
    });
  });
}

/// Ops of blocks, that of `edge` among them, before each of which its block waits for all others,
/// right after the ops that these wait for. Empty if there are none.
std::vector<uint32_t> OrderEdges::find_clique(const Rank& rank, const BlockSequence& order,
                                              const OrderEdge& edge) const {
  const auto after = [&](const OrderEdge& e) {
    const uint32_t at = order.position[e.release] + 1;
    return at < order.begin[e.from + 1] ? order.ops[at] : kNone;
  };
  std::vector<uint32_t> places = {edge.acquire};
  for (const OrderEdge& e : into(edge.acquire, edge.loop)) places.push_back(after(e));
  const auto usable = [&](uint32_t place) {
    return place != kNone && rank.ops[place].loop == rank.ops[edge.acquire].loop;
  };
  if (!std::ranges::all_of(places, usable)) return {};
  for (const uint32_t place : places) {
    const std::span<const OrderEdge> edges = into(place, edge.loop);
    // Another that is waited for there would be waited for by all.
    if (edges.size() + 1 != places.size()) return {};
    for (const uint32_t other : places) {
      if (other == place) continue;
      const auto found = std::ranges::find(edges, rank.ops[other].block, &OrderEdge::from);
      if (found == edges.end() || after(*found) != other) return {};
    }
  }
  return places;
}

void OrderEdges::take_meetings(const Rank& rank, const BlockSequence& order,
                               std::vector<Meeting>& out) {
  sort();
  std::vector<OrderEdge> taken;
  for (const OrderEdge& edge : edges_) {
    if (std::ranges::find(taken, edge) != taken.end()) continue;
    const std::vector<uint32_t> places = find_clique(rank, order, edge);
    const auto is_met = [&](uint32_t place) {
      return std::ranges::any_of(out, [place](const Meeting& m) {
        return std::ranges::find(m.ops, place) != m.ops.end();
      });
    };
    // After another barrier, whatever waits for the one would wait for the other.
    if (places.empty() || std::ranges::any_of(places, is_met)) continue;
    for (const uint32_t place : places) {
      const std::span<const OrderEdge> edges = into(place, edge.loop);
      taken.insert(taken.end(), edges.begin(), edges.end());
    }
    out.push_back({places, rank.ops[edge.acquire].loop != edge.loop});
  }
  std::erase_if(
      edges_, [&](const OrderEdge& edge) { return std::ranges::find(taken, edge) != taken.end(); });
}

}  // namespace mscclc::order
