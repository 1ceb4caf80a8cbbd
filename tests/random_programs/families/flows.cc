// Pipelines: chains of hops from block to block, with credits.
#include <fmt/format.h>

#include <algorithm>

#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

struct Node {
  uint32_t rank, block;
  auto operator<=>(const Node&) const = default;
};

enum class HopKind : uint8_t {
  local,   // to a block of the same rank, or within a block
  put,     // into units of the next rank
  port,    // likewise, by a port, from where it lies
  staged,  // likewise, by a port, from units of this rank
  get,     // units of this rank, which the next one reads
};

/// From one node to the next.
struct Hop {
  HopKind kind = HopKind::local;
  uint32_t number = 0;
  uint32_t units = 2, credits = 2;
  uint32_t staged = 2;  // units
  bool flushed = false;
  // By a port whose channel begins with the credits, once for all calls.
  bool ahead = false;
  bool gated = false;  // and the far rank says in each call that it is in it
};

struct Chain {
  std::vector<Node> nodes;
  std::vector<Hop> hops;  // one fewer
  uint32_t unit = 16;
  uint32_t number = 0;  // its input and output chunk
  bool sum = false;     // the last node adds its own input
  bool opens = true, drains = true;
};

class Flows {
 public:
  explicit Flows(Dice& dice) : dice_(dice) {}

  Sketch make() {
    sketch_.family = "flows";
    sketch_.ranks.resize(1 + dice_.below(3));
    const uint32_t chains = 1 + dice_.below(one_in(dice_, 3) ? 3 : 2);
    for (uint32_t i = 0; i < chains; ++i) {
      if (i > 0 && one_in(dice_, 6)) {
        repeat_chain();
      } else {
        draw_chain();
      }
    }
    const bool merged = one_in(dice_, 3) && alike();
    if (merged) {
      for (const Chain& chain : chains_) prologues(chain);
      for (const Chain& chain : chains_) bodies(chain, 0);
      for (const Chain& chain : chains_) epilogues(chain);
    } else {
      in_sequence();
    }
    contract();
    return std::move(sketch_);
  }

 private:
  uint32_t ranks() const { return static_cast<uint32_t>(sketch_.ranks.size()); }

  /// 1 to 20, mostly small.
  uint32_t draw_credits() { return 1 + dice_.below(one_in(dice_, 3) ? 20 : 4); }

  void draw_chain() {
    Chain chain;
    chain.number = static_cast<uint32_t>(chains_.size());
    chain.unit = chains_.empty() || one_in(dice_, 3) ? 16 * (1 + dice_.below(4)) : chains_[0].unit;
    chain.nodes.push_back({dice_.below(ranks()), dice_.below(2)});
    const uint32_t hops = 1 + dice_.below(one_in(dice_, 3) ? 3 : 2);
    for (uint32_t i = 0; i < hops; ++i) chain.hops.push_back(draw_hop(chain));
    chain.sum = one_in(dice_, 4) && chain.hops.back().kind != HopKind::get &&
                chain.nodes.front().rank != chain.nodes.back().rank;
    for (const Hop& hop : chain.hops) declare(chain, hop);
    chains_.push_back(std::move(chain));
  }

  Hop draw_hop(Chain& chain) {
    const Node from = chain.nodes.back();
    Node to = {dice_.below(ranks()), dice_.below(2)};
    if (to == from) to.block = 1 - to.block;
    if (to.rank == from.rank && one_in(dice_, 4)) to = from;  // in one block, no credits
    const bool after_get = !chain.hops.empty() && chain.hops.back().kind == HopKind::get;
    Hop hop;
    hop.number = hops_++;
    if (from.rank != to.rank) {
      static constexpr HopKind kKinds[] = {HopKind::put, HopKind::put, HopKind::port,
                                           HopKind::staged, HopKind::get};
      hop.kind = after_get ? HopKind::get : kKinds[dice_.below(5)];
    }
    hop.credits = draw_credits();
    hop.units = std::max(2u, hop.credits);
    if (one_in(dice_, 4)) hop.units += dice_.below(3);
    hop.staged = 2 + dice_.below(one_in(dice_, 2) ? hop.credits + 1 : 2);
    hop.flushed = !one_in(dice_, 3);
    const bool port = hop.kind == HopKind::port || hop.kind == HopKind::staged;
    hop.ahead = port && one_in(dice_, 2);
    if (hop.ahead) {
      hop.gated = one_in(dice_, 2);
      if (!hop.gated && !one_in(dice_, 3)) hop.credits = 1;
    }
    chain.nodes.push_back(to);
    return hop;
  }

  static std::string slot(const Hop& hop) { return fmt::format("s{}", hop.number); }
  static std::string gate(const Hop& hop) { return fmt::format("g{}", hop.number); }

  void declare(const Chain& chain, const Hop& hop) {
    const size_t i = static_cast<size_t>(&hop - chain.hops.data());
    const Node from = chain.nodes[i], to = chain.nodes[i + 1];
    const bool here = hop.kind == HopKind::local || hop.kind == HopKind::get;
    RankSketch& owner = sketch_.ranks[here ? from.rank : to.rank];
    owner.buffers.push_back({.name = slot(hop), .units = hop.units});
    if (hop.kind == HopKind::staged) {
      sketch_.ranks[from.rank].buffers.push_back(
          {.name = fmt::format("t{}", hop.number), .units = hop.staged});
    }
    if (hop.kind != HopKind::local) {
      const bool port = hop.kind == HopKind::port || hop.kind == HopKind::staged;
      connect(sketch_, port ? "port" : "memory", fmt::format("c{}", hop.number), from.rank, to.rank,
              hop.ahead ? hop.credits : 0);
      if (hop.gated) connect(sketch_, "memory", gate(hop), from.rank, to.rank);
    } else if (from != to) {
      owner.semaphores.push_back({fmt::format("f{}", hop.number), 0});
      owner.semaphores.push_back({fmt::format("e{}", hop.number), hop.credits});
    }
  }

  /// The last chain once more, with other chunks, through the same units and credits.
  void repeat_chain() {
    Chain again = chains_.back();
    sketch_.ir_only = true;
    again.number = static_cast<uint32_t>(chains_.size());
    if (one_in(dice_, 2)) {  // the credits go on
      chains_.back().drains = false;
      again.opens = false;
    }
    chains_.push_back(std::move(again));
  }

  bool alike() const {
    return std::ranges::all_of(chains_, [&](const Chain& c) { return c.unit == chains_[0].unit; });
  }

  // ---- what a node does

  void prologues(const Chain& chain) {
    if (!chain.opens) return;
    for (size_t i = 0; i < chain.hops.size(); ++i) {
      const Hop& hop = chain.hops[i];
      if (hop.kind == HopKind::local) continue;
      const Node taker = chain.nodes[i], giver = chain.nodes[i + 1];
      if (hop.gated) {
        sketch_.ranks[giver.rank].op(giver.block, "signal " + gate(hop) + " relaxed");
        sketch_.ranks[taker.rank].op(taker.block, "wait " + gate(hop) + " relaxed");
      }
      if (hop.ahead) continue;
      for (uint32_t k = 0; k < hop.credits; ++k) {
        sketch_.ranks[giver.rank].op(giver.block,
                                     fmt::format("signal c{}{}", hop.number, relaxed_));
      }
    }
  }

  void epilogues(const Chain& chain) {
    if (!chain.drains) return;
    for (size_t i = 0; i < chain.hops.size(); ++i) {
      const Hop& hop = chain.hops[i];
      if (hop.kind == HopKind::local || hop.ahead) continue;
      const Node taker = chain.nodes[i];
      for (uint32_t k = 0; k < hop.credits; ++k) {
        sketch_.ranks[taker.rank].op(taker.block, fmt::format("wait c{}", hop.number));
      }
    }
  }

  Stretch& pipeline(Node node, uint32_t unit, uint32_t loop) {
    RankSketch& rank = sketch_.ranks[node.rank];
    if (rank.blocks.size() <= node.block) rank.blocks.resize(node.block + 1);
    std::vector<Stretch>& own = rank.blocks[node.block];
    if (own.empty() || own.back().unit != unit || own.back().loop != loop) {
      own.push_back({unit, loop, {}});
    }
    return own.back();
  }

  void bodies(const Chain& chain, uint32_t loop) {
    for (size_t i = 0; i < chain.nodes.size(); ++i) {
      std::vector<std::string>& ops = pipeline(chain.nodes[i], chain.unit, loop).ops;
      take(chain, i, ops);
      ops.emplace_back("sync");
      move(chain, i, ops);
      ops.emplace_back("sync");
      give(chain, i, ops);
    }
  }

  bool within(const Chain& chain, size_t hop) const {
    return chain.nodes[hop] == chain.nodes[hop + 1];
  }

  void take(const Chain& chain, size_t i, std::vector<std::string>& ops) {
    std::vector<std::string> waits;
    if (i > 0 && !within(chain, i - 1)) {
      const Hop& hop = chain.hops[i - 1];
      waits.push_back(hop.kind == HopKind::local ? fmt::format("acquire f{}", hop.number)
                                                 : fmt::format("wait c{}", hop.number));
    }
    if (i < chain.hops.size() && !within(chain, i)) {
      const Hop& hop = chain.hops[i];
      waits.push_back(hop.kind == HopKind::local ? fmt::format("acquire e{}", hop.number)
                                                 : fmt::format("wait c{}", hop.number));
    }
    if (one_in(dice_, 2)) std::ranges::reverse(waits);
    ops.insert(ops.end(), waits.begin(), waits.end());
  }

  void give(const Chain& chain, size_t i, std::vector<std::string>& ops) {
    std::vector<std::string> signals;
    if (i > 0 && !within(chain, i - 1)) {
      const Hop& hop = chain.hops[i - 1];
      signals.push_back(hop.kind == HopKind::local ? fmt::format("release e{}", hop.number)
                                                   : fmt::format("signal c{}", hop.number));
    }
    if (i < chain.hops.size() && !within(chain, i)) {
      const Hop& hop = chain.hops[i];
      signals.push_back(hop.kind == HopKind::local ? fmt::format("release f{}", hop.number)
                                                   : fmt::format("signal c{}", hop.number));
    }
    if (one_in(dice_, 2)) std::ranges::reverse(signals);
    ops.insert(ops.end(), signals.begin(), signals.end());
  }

  void move(const Chain& chain, size_t i, std::vector<std::string>& ops) {
    std::string source = fmt::format("input[{}]", chain.number);
    const bool got = i > 0 && chain.hops[i - 1].kind == HopKind::get;
    if (i > 0) source = slot(chain.hops[i - 1]) + "[0]";
    if (got) source = fmt::format("c{}.{}", chain.hops[i - 1].number, source);
    const std::string local = got ? "get" : "copy";
    if (i == chain.hops.size()) {
      ops.push_back(chain.sum ? fmt::format("reduce output[{}] <- input[{}], {}", chain.number,
                                            chain.number, source)
                              : fmt::format("{} output[{}] <- {}", local, chain.number, source));
      return;
    }
    const Hop& hop = chain.hops[i];
    const std::string target = slot(hop) + "[0]";
    switch (hop.kind) {
      case HopKind::local:
      case HopKind::get:
        ops.push_back(fmt::format("{} {} <- {}", local, target, source));
        return;
      case HopKind::staged: {
        const std::string staged = fmt::format("t{}[0]", hop.number);
        ops.push_back(fmt::format("{} {} <- {}", local, staged, source));
        ops.emplace_back("sync");
        source = staged;
        break;
      }
      case HopKind::put:
      case HopKind::port:
        break;
    }
    ops.push_back(fmt::format("put c{}.{} <- {}", hop.number, target, source));
    const bool port = hop.kind == HopKind::staged || hop.kind == HopKind::port;
    // Units that others fill again after a signal must have been read before it.
    const bool must = hop.kind == HopKind::port && i > 0;
    if (port && (must || hop.flushed)) ops.push_back(fmt::format("flush c{}", hop.number));
  }

  void in_sequence() {
    const bool all_first = one_in(dice_, 2), all_last = one_in(dice_, 2);
    for (const Chain& chain : chains_) {
      if (all_first) prologues(chain);
    }
    for (size_t i = 0; i < chains_.size(); ++i) {
      if (!all_first) prologues(chains_[i]);
      bodies(chains_[i], static_cast<uint32_t>(i));
      if (!all_last) epilogues(chains_[i]);
    }
    for (const Chain& chain : chains_) {
      if (all_last) epilogues(chain);
    }
  }

  void contract() {
    const size_t n = chains_.size();
    sketch_.collective =
        fmt::format("custom(ranks: {}, input: {}, output: {}, inplace: false)", ranks(), n, n);
    for (const Chain& chain : chains_) {
      const uint32_t from = chain.nodes.front().rank, to = chain.nodes.back().rank,
                     c = chain.number;
      sketch_.promises.push_back(
          chain.sum ? fmt::format("output[{}] at {} = reduce(input[{}] at p for p in [{}, {}])", c,
                                  to, c, to, from)
                    : fmt::format("output[{}] at {} = input[{}] at {}", c, to, c, from));
    }
  }

  Dice& dice_;
  Sketch sketch_;
  std::vector<Chain> chains_;
  uint32_t hops_ = 0;
  std::string relaxed_ = one_in(dice_, 6) ? " relaxed" : "";
};

}  // namespace

Sketch make_flows(Dice& dice) { return Flows(dice).make(); }

Sketch make_stale(Dice& dice) {
  Sketch sketch{.family = "stale",
                .collective = "custom(ranks: 1, input: 1, output: 1, inplace: false)",
                .promises = {"output[0] at 0 = input[0] at 0"},
                .ranks = std::vector<RankSketch>(1),
                .ir_only = true};
  RankSketch& rank = sketch.ranks[0];
  const uint32_t unit = 16 * (1 + dice.below(3)), units = 2 + dice.below(3);
  rank.buffers = {{.name = "s", .units = units}, {.name = "t", .units = 2 + dice.below(3)}};
  if (one_in(dice, 4)) rank.buffers[0].units = 0;  // the whole of it: nothing is stale
  const std::string fill = "copy s[0] <- input[0]", through = "copy t[0] <- s[0]";
  const bool two = one_in(dice, 2);
  const std::string use = two ? "copy output[0] <- t[0]" : "copy output[0] <- s[0]";
  std::vector<std::string> body = {fill, "sync", use, "sync"};
  if (two) body = {fill, "sync", through, "sync", use, "sync"};
  const size_t late = 2 * dice.below(static_cast<uint32_t>(body.size()) / 2);
  rank.blocks.resize(1);
  if (one_in(dice, 2)) rank.blocks[0].push_back({unit, 0, body});
  std::ranges::rotate(body, body.begin() + static_cast<ptrdiff_t>(late));
  rank.blocks[0].push_back({unit, 1, body});
  if (one_in(dice, 3)) rank.blocks[0].push_back({unit, 2, {use}});
  return sketch;
}

}  // namespace mscclc::random_programs
