// Programs that are their own image when ranks are renumbered, but for edges: what the prover says
// of a few ranks must hold of all.
#include <fmt/format.h>

#include <algorithm>

#include "tests/random_programs/families.h"

namespace mscclc::random_programs {
namespace {

/// Rank r + step does what rank r does, with ranks, and perhaps chunks, that are a step further on.
class Symmetric {
 public:
  explicit Symmetric(Dice& dice) : dice_(dice) {}

  Sketch make() {
    sketch_.family = "symmetry";
    static constexpr uint32_t kSteps[] = {1, 1, 1, 2};
    step_ = kSteps[dice_.below(4)];
    ranks_ = step_ * (2 + dice_.below(step_ == 1 ? 4 : 2));
    sketch_.ranks.resize(ranks_);
    for (RankSketch& rank : sketch_.ranks) rank.blocks.resize(1);
    switch (dice_.below(4)) {
      case 0:
        ring();
        break;
      case 1:
        pipeline();
        break;
      default:
        neighbours();
    }
    const bool either = one_in(dice_, 3);
    sketch_.collective = fmt::format("custom(ranks: {}, input: {}, output: {}, inplace: {})",
                                     ranks_, chunks_, chunks_, either ? "either" : "false");
    return std::move(sketch_);
  }

 private:
  RankSketch& rank(uint32_t r) { return sketch_.ranks[r]; }
  uint32_t from(uint32_t r, uint32_t distance) const { return (r + ranks_ - distance) % ranks_; }

  /// Rank r's end towards r + distance is `name`; that towards r - distance is `name`b.
  void turn_channel(const std::string& name, uint32_t distance) {
    for (uint32_t r = 0; r < ranks_; ++r) {
      rank(r).channels.push_back(
          fmt::format("channel {} = memory({}) to {}b", name, (r + distance) % ranks_, name));
      rank(r).channels.push_back(
          fmt::format("channel {}b = memory({}) to {}", name, from(r, distance), name));
    }
  }

  /// What is promised may be left out, on all ranks: then nobody looks at the chunk.
  void promise(uint32_t r, const std::string& chunk, const std::string& what) {
    sketch_.promises.push_back(fmt::format("output[{}] at {} = {}", chunk, r, what));
  }

  /// Messages to the rank that is so far on. Every step-th rank sends, or all do.
  void neighbours() {
    const uint32_t messages = 1 + dice_.below(2);
    const bool turned = one_in(dice_, 2);  // chunks are as many as ranks, and turn with them
    chunks_ = messages * (turned ? ranks_ : 1);
    for (uint32_t m = 0; m < messages; ++m) {
      const uint32_t distance = 1 + dice_.below(ranks_ - 1);
      const uint32_t phase = dice_.below(2 * step_);  // step and more: all send
      turn_channel(fmt::format("c{}", m), distance);
      const bool through = one_in(dice_, 2), opens = !one_in(dice_, 3), closes = one_in(dice_, 2);
      const std::string relaxed = one_in(dice_, 3) ? "" : " relaxed";
      const bool sums = through && !turned && one_in(dice_, 3);
      for (uint32_t r = 0; r < ranks_; ++r) {
        const auto sends = [&](uint32_t q) { return phase >= step_ || q % step_ == phase; };
        const std::string c = fmt::format("c{}", m), back = c + "b";
        const auto chunk = [&](uint32_t of) {
          return m * (turned ? ranks_ : 1) + (turned ? of : 0);
        };
        RankSketch& own = rank(r);
        const uint32_t source = from(r, distance);
        const std::string box = fmt::format("s{}", m);
        if (through) own.buffers.push_back({.name = box, .copies = 1});
        if (opens && sends(source)) own.op(0, "signal " + back + relaxed);
        if (opens && sends(r)) own.ops(0, {"wait " + c + relaxed, "sync"});
        if (sends(r)) {
          own.ops(0, {fmt::format("put {}.{} <- input[{}]", c,
                                  through ? box + "[0]" : fmt::format("output[{}]", chunk(r)),
                                  chunk(r)),
                      "sync", "signal " + c});
        }
        if (!sends(source)) continue;
        own.op(0, "wait " + back);
        const std::string out = fmt::format("{}", chunk(source));
        if (through) own.op(0, "sync");
        if (sums)
          own.op(0, fmt::format("reduce output[{}] <- input[{}], {}[0]", out, chunk(r), box));
        if (through && !sums) own.op(0, fmt::format("copy output[{}] <- {}[0]", out, box));
        const std::string sent = fmt::format("input[{}] at {}", chunk(source), source);
        promise(
            r, out,
            sums ? fmt::format("reduce(input[{}] at p for p in [{}, {}])", out, r, source) : sent);
        if (closes) own.ops(0, {"sync", "signal " + back});
      }
      for (uint32_t r = 0; r < ranks_ && closes; ++r) {
        if (phase >= step_ || r % step_ == phase) rank(r).op(0, fmt::format("wait c{}", m));
      }
    }
  }

  /// All gather or add up round a ring.
  void ring() {
    chunks_ = ranks_;
    const uint32_t distance = one_in(dice_, 2) ? 1 : ranks_ - 1;
    const bool sums = one_in(dice_, 2);
    const bool closes = !one_in(dice_, 4), opens = !one_in(dice_, 4);
    const uint32_t syncs = dice_.below(4);
    turn_channel("n", distance);
    for (uint32_t r = 0; r < ranks_; ++r) {
      RankSketch& own = rank(r);
      const auto chunk = [&](uint32_t s) { return (r + (ranks_ - distance) * s) % ranks_; };
      if (opens) own.ops(0, {"signal nb relaxed", "wait n relaxed", "sync"});
      if (sums) {
        own.buffers.push_back({.name = "s", .chunks = ranks_});
        own.op(0, fmt::format("put n.s[{0}] <- input[{0}]", chunk(0)));
      } else {
        own.ops(0, {fmt::format("copy output[{0}] <- input[{0}]", r),
                    fmt::format("put n.output[{0}] <- input[{0}]", r)});
        promise(r, fmt::format("{}", r), fmt::format("input[{}] at {}", r, r));
      }
      for (uint32_t s = 1; s < ranks_; ++s) {
        own.ops(0, {"sync", "signal n", "wait nb"});
        if (syncs != 0) own.op(0, "sync");
        if (sums) {
          own.op(0, fmt::format("reduce {1} <- s[{0}], input[{0}]", chunk(s),
                                s + 1 < ranks_ ? fmt::format("s[{}]", chunk(s))
                                               : fmt::format("output[{}]", chunk(s))));
          if (syncs > 1) own.op(0, "sync");
          if (s + 1 < ranks_) own.op(0, fmt::format("put n.s[{0}] <- s[{0}]", chunk(s)));
          continue;
        }
        promise(r, fmt::format("{}", chunk(s)), fmt::format("input[{0}] at {0}", chunk(s)));
        if (s + 1 < ranks_) own.op(0, fmt::format("put n.output[{0}] <- output[{0}]", chunk(s)));
      }
      if (sums) {
        promise(r, fmt::format("{}", chunk(ranks_ - 1)),
                fmt::format("reduce(input[{}] at p for p in 0..{})", chunk(ranks_ - 1), ranks_));
      }
      if (closes) own.ops(0, {"sync", "signal nb", "wait n"});
    }
  }

  /// Through units of the next rank, with credits.
  void pipeline() {
    chunks_ = 1;
    const uint32_t credits = 1 + dice_.below(one_in(dice_, 3) ? 12 : 4);
    const uint32_t units = std::max(2u, credits) + (one_in(dice_, 3) ? 1 : 0);
    const uint32_t unit = 16 * (1 + dice_.below(3));
    const uint32_t distance = 1 + dice_.below(ranks_ - 1);
    const bool blocks = one_in(dice_, 2), semaphore = blocks && one_in(dice_, 2);
    turn_channel("c", distance);
    for (uint32_t r = 0; r < ranks_; ++r) {
      RankSketch& own = rank(r);
      own.buffers.push_back({.name = "s", .units = units});
      own.blocks.resize(blocks ? 2 : 1);
      const uint32_t reader = blocks ? 1 : 0;
      for (uint32_t i = 0; i < credits; ++i) own.op(reader, "signal cb");
      std::vector<std::string> send = {"wait c", "sync", "put c.s[0] <- input[0]", "sync",
                                       "signal c"};
      std::vector<std::string> take = {"wait cb", "sync", "copy output[0] <- s[0]", "sync",
                                       "signal cb"};
      if (semaphore) {  // the reader goes on once this rank has sent
        own.semaphores.push_back({"m", 0});
        send.push_back("release m");
        take.insert(take.begin(), "acquire m");
      }
      if (blocks) {
        own.blocks[0].push_back({unit, 0, send});
        own.blocks[1].push_back({unit, 0, take});
      } else {
        send.insert(send.end(), take.begin(), take.end());
        own.blocks[0].push_back({unit, 0, send});
      }
      for (uint32_t i = 0; i < credits; ++i) own.op(0, "wait c");
      promise(r, "0", fmt::format("input[0] at {}", from(r, distance)));
    }
  }

  Dice& dice_;
  Sketch sketch_;
  uint32_t ranks_ = 2, step_ = 1, chunks_ = 1;
};

}  // namespace

Sketch make_symmetric(Dice& dice) { return Symmetric(dice).make(); }

}  // namespace mscclc::random_programs
