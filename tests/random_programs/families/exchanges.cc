// Plain messages: handshakes, puts, gets, ports, parts, blocks that meet.
#include <fmt/format.h>

#include <algorithm>

#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

constexpr uint32_t kNone = 0xffffffffu;

class Exchanges {
 public:
  explicit Exchanges(Dice& dice) : dice_(dice) {}

  Sketch make() {
    sketch_.family = "exchanges";
    sketch_.ranks.resize(2 + (one_in(dice_, 3) ? 1 : 0));
    for (RankSketch& rank : sketch_.ranks) rank.blocks.resize(1);
    messages_ = 1 + dice_.below(3);
    for (uint32_t i = 0, n = messages_; i < n; ++i) add_message(i);
    const auto ranks = sketch_.ranks.size();
    const bool either = one_in(dice_, 3);
    sketch_.collective = fmt::format("custom(ranks: {}, input: {}, output: {}, inplace: {})", ranks,
                                     messages_, messages_, either ? "either" : "false");
    return std::move(sketch_);
  }

 private:
  void both_blocks(RankSketch& rank, const std::string& op) {
    for (uint32_t b = 0; b < 2; ++b) rank.op(b, op);
  }

  void add_message(uint32_t i) {
    const auto ranks = static_cast<uint32_t>(sketch_.ranks.size());
    const uint32_t r = dice_.below(ranks), q = (r + 1 + dice_.below(ranks - 1)) % ranks;
    RankSketch &from = sketch_.ranks[r], &to = sketch_.ranks[q];
    promise(i, q, r);
    const std::string c = fmt::format("c{}", i);
    const bool port = one_in(dice_, 2);
    connect(sketch_, port ? "port" : "memory", c, r, q);
    const std::string relaxed = one_in(dice_, 2) ? " relaxed" : "";
    to.op(0, "signal " + c + relaxed);
    from.op(0, "wait " + c + relaxed);
    from.op(0, "sync");
    const bool through = one_in(dice_, 3);
    std::string target = fmt::format("output[{}]", i);
    if (through) {
      to.buffers.push_back({.name = fmt::format("s{}", i)});
      target = fmt::format("s{}[0]", i);
    }
    const uint32_t rides = one_in(dice_, 4) ? ride(r, q) : kNone;
    transfer(from, i, port, fmt::format("{}.{}", c, target));
    to.op(0, "wait " + c);
    if (rides != kNone) promise(rides, q, r);
    if (through) {
      to.op(0, "sync");
      copy_out(to, i);
    }
    // What a port reads must not change before it is known to have come.
    if (port && !flushed_) {
      to.op(0, "sync");
      to.op(0, "signal " + c);
      from.op(0, "wait " + c);
    }
  }

  void promise(uint32_t i, uint32_t q, uint32_t r) {
    sketch_.promises.push_back(fmt::format("output[{}] at {} = input[{}] at {}", i, q, i, r));
  }

  /// One more chunk by a channel of its own, which the next signal publishes.
  uint32_t ride(uint32_t r, uint32_t q) {
    const uint32_t chunk = messages_++;
    connect(sketch_, "memory", fmt::format("r{}", chunk), r, q);
    sketch_.ranks[r].op(0, fmt::format("put r{}.output[{}] <- input[{}]", chunk, chunk, chunk));
    if (one_in(dice_, 2)) sketch_.ranks[r].op(0, "sync");
    return chunk;
  }

  /// Puts input i, and says so.
  void transfer(RankSketch& from, uint32_t i, bool port, const std::string& target) {
    const std::string c = fmt::format("c{}", i), source = stage(from, i);
    flushed_ = false;
    if (port) {
      static constexpr const char* kOps[] = {"put", "put_with_signal", "put_with_signal_and_flush"};
      const uint32_t kind = dice_.below(3);
      from.op(0, fmt::format("{} {} <- {}", kOps[kind], target, source));
      if (kind == 0) from.op(0, "signal " + c);
      if (kind < 2) flushed_ = one_in(dice_, 2);
      if (kind < 2 && flushed_) flush(from, c);
      if (kind == 2) flushed_ = true;
      return;
    }
    if (one_in(dice_, 2)) {
      from.op(0, fmt::format("put {} <- {}", target, source));
    } else {
      in_parts(from, fmt::format("put {} <- {}", target, source));
    }
    from.op(0, "sync");
    from.op(0, "signal " + c);
  }

  /// By this block, which has posted, or by another one, which has not.
  void flush(RankSketch& from, const std::string& c) {
    if (!one_in(dice_, 5)) return from.op(0, "flush " + c);
    if (one_in(dice_, 2)) both_blocks(from, "barrier 0..2");
    from.op(1, "flush " + c);
    both_blocks(from, "barrier 0..2");
  }

  /// The input as it is, or copied by this or another block.
  std::string stage(RankSketch& from, uint32_t i) {
    if (!one_in(dice_, 3)) return fmt::format("input[{}]", i);
    from.buffers.push_back({.name = fmt::format("t{}", i)});
    const std::string copy = fmt::format("copy t{}[0] <- input[{}]", i, i);
    if (one_in(dice_, 2)) {
      from.op(0, copy);
      from.op(0, "sync");
    } else {
      in_other_block(from, copy, fmt::format("f{}", i));
    }
    return fmt::format("t{}[0]", i);
  }

  /// Block 1 does it between two meetings with block 0.
  void in_other_block(RankSketch& rank, const std::string& op, const std::string& name) {
    if (one_in(dice_, 2)) {
      both_blocks(rank, "barrier 0..2");
      rank.op(1, op);
      both_blocks(rank, "barrier 0..2");
      return;
    }
    rank.semaphores.push_back({name + "a", 0});
    rank.semaphores.push_back({name + "b", 0});
    rank.ops(0, {"sync", fmt::format("release {}a", name)});
    rank.ops(1, {fmt::format("acquire {}a", name), "sync", op, "sync",
                 fmt::format("release {}b", name)});
    rank.ops(0, {fmt::format("acquire {}b", name), "sync"});
  }

  /// Half of it in this block, half in another one.
  void in_parts(RankSketch& rank, const std::string& op) {
    rank.op(0, op + " part: [0, 2]");
    in_other_block(rank, op + " part: [1, 2]", fmt::format("p{}", parts_++));
  }

  void copy_out(RankSketch& to, uint32_t i) {
    const std::string copy = fmt::format("copy output[{}] <- s{}[0]", i, i);
    if (one_in(dice_, 2)) return to.op(0, copy);
    in_parts(to, copy);
  }

  Dice& dice_;
  Sketch sketch_;
  bool flushed_ = false;
  uint32_t parts_ = 0, messages_ = 0;
};

/// What a number of doublings of a scratch sum leaves, added to what is promised.
Sketch doublings(Dice& dice) {
  Sketch sketch{.family = "sums",
                .collective = "custom(ranks: 1, input: 1, output: 1, inplace: false)",
                .promises = {"output[0] at 0 = input[0] at 0"},
                .ranks = std::vector<RankSketch>(1)};
  RankSketch& rank = sketch.ranks[0];
  rank.buffers = {{.name = "s"}};
  static constexpr uint32_t kEdges[] = {0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  const uint32_t n = one_in(dice, 2) ? dice.below(140) : kEdges[dice.below(13)];
  rank.op(0, "copy s[0] <- input[0]");
  for (uint32_t i = 0; i < n; ++i) rank.ops(0, {"sync", "reduce s[0] <- s[0], s[0]"});
  rank.ops(0, {"sync", "reduce output[0] <- input[0], s[0]"});
  return sketch;
}

/// Two ranks add up; the sum is put together from parts that come by themselves.
Sketch sums_of_parts(Dice& dice) {
  Sketch sketch{.family = "sums",
                .collective = "allreduce(ranks: 2, chunks: 1, inplace: false)",
                .ranks = std::vector<RankSketch>(2)};
  const uint32_t parts = 2 + dice.below(2);
  const bool packets = one_in(dice, 2), each = !one_in(dice, 3);
  connect(sketch, "memory", "c", 0, 1);
  for (uint32_t r = 0; r < 2; ++r) {
    RankSketch& rank = sketch.ranks[r];
    rank.buffers = {{.name = "s",
                     .copies = packets ? 2u : 1u,
                     .packets = packets ? (one_in(dice, 2) ? "LL16" : "sentinel") : ""}};
    if (!packets) rank.ops(0, {"signal c relaxed", "wait c relaxed", "sync"});
    for (uint32_t i = 0; i < parts; ++i) {
      rank.op(0, fmt::format("{} c.s[0] <- input[0] part: [{}, {}]",
                             packets ? "put_packets" : "put", each ? i : dice.below(parts), parts));
    }
    if (!packets) rank.ops(0, {"sync", "signal c", "wait c", "sync"});
    rank.op(0,
            fmt::format("{} output[0] <- input[0], s[0]", packets ? "reduce_packets" : "reduce"));
    if (!packets && one_in(dice, 2)) rank.ops(0, {"sync", "signal c", "wait c"});
  }
  sketch.ranks[1].buffers[0].packets = sketch.ranks[0].buffers[0].packets;
  return sketch;
}

/// A chunk is put twice; a reader that knows of the first put comes in between, or stores something
/// else there for a while.
Sketch same_bits(Dice& dice) {
  Sketch sketch{.family = "sums",
                .collective = "custom(ranks: 2, input: 2, output: 2, inplace: false)",
                .promises = {"output[0] at 1 = input[0] at 0"},
                .ranks = std::vector<RankSketch>(2)};
  connect(sketch, "memory", "c", 0, 1);
  RankSketch &from = sketch.ranks[0], &to = sketch.ranks[1];
  to.buffers = {{.name = "s"}, {.name = "keep"}};
  to.op(0, "signal c relaxed");
  from.ops(0, {"wait c relaxed", "sync", "put c.s[0] <- input[0]", "sync", "signal c"});
  if (one_in(dice, 2)) from.op(0, "put c.s[0] <- input[0]");
  to.ops(0, {"wait c", "sync"});
  if (one_in(dice, 2)) {
    sketch.promises.emplace_back("output[1] at 1 = input[1] at 1");
    to.ops(0, {"copy keep[0] <- s[0]", "sync", "copy s[0] <- input[1]", "sync",
               "copy output[1] <- s[0]", "sync", "copy s[0] <- keep[0]", "sync"});
  }
  to.op(0, "copy output[0] <- s[0]");
  if (one_in(dice, 2)) {
    from.ops(0, {"sync", "signal c"});
    to.op(0, "wait c");
  }
  if (one_in(dice, 2)) {  // once more when the reader says so, which orders no data
    const std::string relaxed = one_in(dice, 4) ? "" : " relaxed";
    to.ops(0, {"signal c" + relaxed, "wait c"});
    from.ops(0, {"wait c" + relaxed, "put c.s[0] <- input[0]", "sync", "signal c"});
  }
  return sketch;
}

/// A place is read twice and then written, by ops that deal it to threads alike or not; or one of
/// the reads is what the write depends on, by way of the other rank.
Sketch read_twice(Dice& dice) {
  Sketch sketch{.family = "sums",
                .collective = "custom(ranks: 2, input: 1, output: 1, inplace: false)",
                .promises = {"output[0] at 0 = input[0] at 0"},
                .ranks = std::vector<RankSketch>(2)};
  RankSketch &here = sketch.ranks[0], &there = sketch.ranks[1];
  for (const char* name : {"s", "t", "u", "v"}) here.buffers.push_back({.name = name});
  here.ops(0, {"copy s[0] <- input[0]", "copy v[0] <- input[0]", "sync"});
  const bool far = one_in(dice, 2);
  connect(sketch, "memory", "c", 0, 1);
  std::vector<std::string> reads = {
      "copy t[0] <- s[0]", far ? "put_packets c.p[0] <- s[0]" : "reduce u[0] <- s[0], v[0]"};
  if (one_in(dice, 2)) std::ranges::reverse(reads);
  for (const std::string& read : reads) {
    here.op(0, read);
    if (one_in(dice, 4)) here.op(0, "sync");
  }
  if (far) {
    there.buffers = {{.name = "p", .copies = 2, .packets = "LL16"}, {.name = "x"}};
    there.ops(0,
              {"reduce_packets x[0] <- input[0], p[0]", "put c.s[0] <- x[0]", "sync", "signal c"});
    if (one_in(dice, 3)) there.ops(0, {"wait c"});
    here.ops(0, {"wait c", "sync", "copy output[0] <- t[0]"});
    if (there.blocks[0][0].ops.back() == "wait c") here.ops(0, {"sync", "signal c"});
    return sketch;
  }
  here.ops(0, {one_in(dice, 2) ? "reduce s[0] <- v[0], v[0]" : "copy s[0] <- v[0]", "sync",
               "copy output[0] <- t[0]"});
  return sketch;
}

}  // namespace

Sketch make_exchanges(Dice& dice) { return Exchanges(dice).make(); }

Sketch make_sums(Dice& dice) {
  if (one_in(dice, 8)) return doublings(dice);
  if (one_in(dice, 3)) return read_twice(dice);
  return one_in(dice, 2) ? sums_of_parts(dice) : same_bits(dice);
}

Sketch make_barriers(Dice& dice) {
  const uint32_t ranks = 2 + dice.below(2);
  Sketch sketch{.family = "barriers",
                .collective = fmt::format("barrier(ranks: {})", ranks),
                .ranks = std::vector<RankSketch>(ranks)};
  const uint32_t kind = dice.below(4);
  const bool meets = one_in(dice, 3);
  for (uint32_t r = 0; r < ranks; ++r) {
    for (uint32_t q = r + 1; q < ranks; ++q) {
      connect(sketch, one_in(dice, 4) ? "port" : "memory", fmt::format("c{}{}", r, q), r, q);
    }
    RankSketch& rank = sketch.ranks[r];
    for (uint32_t q = 0; kind == 1 && q < ranks; ++q) {
      if (q == r) continue;
      rank.buffers.push_back({.name = fmt::format("s{}", q), .copies = 2, .packets = "LL16"});
    }
    if (kind == 1) rank.buffers.push_back({.name = "t"});
  }
  const auto channel = [](uint32_t r, uint32_t q) {
    return fmt::format("c{}{}", std::min(r, q), std::max(r, q));
  };
  const auto each = [&](uint32_t r, auto fn) {
    for (uint32_t q = 0; q < ranks; ++q) {
      if (q != r) fn(q);
    }
  };
  for (uint32_t r = 0; r < ranks; ++r) {
    RankSketch& rank = sketch.ranks[r];
    if (kind == 1) {
      each(r, [&](uint32_t q) {
        rank.op(0, fmt::format("put_packets {}.s{}[0] <- t[0]", channel(r, q), r));
      });
      each(r, [&](uint32_t q) { rank.op(0, fmt::format("unpack_packets t[0] <- s{}[0]", q)); });
      continue;
    }
    if (meets) rank.ops(0, {"barrier 0..2"});
    if (meets) rank.ops(1, {"barrier 0..2"});
    const std::string relaxed = kind == 2 ? " relaxed" : "";
    std::vector<std::string>* ops = nullptr;
    if (kind == 3) {
      rank.blocks.resize(std::max<size_t>(1, rank.blocks.size()));
      rank.blocks[0].push_back({16, 0, {}});
      ops = &rank.blocks[0].back().ops;
    } else {
      ops = &rank.straight(0).ops;
    }
    each(r, [&](uint32_t q) { ops->push_back("signal " + channel(r, q) + relaxed); });
    each(r, [&](uint32_t q) { ops->push_back("wait " + channel(r, q) + relaxed); });
    if (meets && one_in(dice, 2)) {
      rank.op(0, "barrier 0..2");
      rank.op(1, "barrier 0..2");
    }
  }
  return sketch;
}

}  // namespace mscclc::random_programs
