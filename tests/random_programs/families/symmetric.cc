// Programs that are their own image when ranks are renumbered, except at edges: what the prover
// says of a few ranks must hold of all.
#include <fmt/format.h>

#include <algorithm>

#include "tests/random_programs/families/families.h"

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
    port_ = one_in(dice_, 3);
    flushes_ = port_ && !one_in(dice_, 4);
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
    const char* kind = port_ ? "port" : "memory";
    for (uint32_t r = 0; r < ranks_; ++r) {
      rank(r).channels.push_back(
          fmt::format("channel {} = {}({}) to {}b", name, kind, (r + distance) % ranks_, name));
      rank(r).channels.push_back(
          fmt::format("channel {}b = {}({}) to {}", name, kind, from(r, distance), name));
    }
  }
  /// What a port was given to send has been read.
  void flush(uint32_t r, const std::string& channel) {
    if (flushes_) rank(r).op(0, "flush " + channel);
  }

  void promise(uint32_t r, uint32_t chunk, const std::string& what) {
    sketch_.promises.push_back(fmt::format("output[{}] at {} = {}", chunk, r, what));
  }

  /// Messages of one kind to the rank that is so far on: from every step-th rank, or from all.
  struct Message {
    std::string channel, box;
    uint32_t distance = 1;
    uint32_t phase = 0;    ///< of step, which ranks send; step and more: all
    uint32_t first = 0;    ///< chunk of the caller's
    bool through = false;  ///< a box, from which the receiver takes it
    bool sums = false;     ///< and adds its own input
    bool opens = true, closes = true;
    std::string relaxed = {};  ///< after the opening signals
  };

  void neighbours() {
    const uint32_t messages = 1 + dice_.below(2);
    turned_ = one_in(dice_, 2);
    chunks_ = messages * (turned_ ? ranks_ : 1);
    for (uint32_t i = 0; i < messages; ++i) {
      Message m{.channel = fmt::format("c{}", i), .box = fmt::format("s{}", i)};
      m.distance = 1 + dice_.below(ranks_ - 1);
      m.phase = dice_.below(2 * step_);
      m.first = i * (turned_ ? ranks_ : 1);
      turn_channel(m.channel, m.distance);
      m.through = one_in(dice_, 2);
      m.opens = !one_in(dice_, 3);
      m.closes = one_in(dice_, 2);
      m.relaxed = one_in(dice_, 3) ? "" : " relaxed";
      m.sums = m.through && !turned_ && one_in(dice_, 3);
      for (uint32_t r = 0; r < ranks_; ++r) {
        send(m, r);
        if (sends(m, from(r, m.distance))) receive(m, r, from(r, m.distance));
      }
      for (uint32_t r = 0; r < ranks_; ++r) {
        if (!sends(m, r)) continue;
        if (m.closes) rank(r).op(0, "wait " + m.channel);
        flush(r, m.channel);
      }
    }
  }

  bool sends(const Message& m, uint32_t r) const {
    return m.phase >= step_ || r % step_ == m.phase;
  }
  /// The chunk that rank r sends, in its input and in the output of the other.
  uint32_t chunk(const Message& m, uint32_t r) const { return m.first + (turned_ ? r : 0); }

  /// The receiver says that it is there; then the message, and word that it has come.
  void send(const Message& m, uint32_t r) {
    RankSketch& own = rank(r);
    if (m.through) own.buffers.push_back({.name = m.box});
    if (m.opens && sends(m, from(r, m.distance)))
      own.op(0, "signal " + m.channel + "b" + m.relaxed);
    if (!sends(m, r)) return;
    if (m.opens) own.ops(0, {"wait " + m.channel + m.relaxed, "sync"});
    const uint32_t c = chunk(m, r);
    const std::string target = m.through ? m.box + "[0]" : fmt::format("output[{}]", c);
    own.ops(0, {fmt::format("put {}.{} <- input[{}]", m.channel, target, c), "sync",
                "signal " + m.channel});
  }

  void receive(const Message& m, uint32_t r, uint32_t source) {
    RankSketch& own = rank(r);
    const uint32_t c = chunk(m, source);
    own.op(0, "wait " + m.channel + "b");
    if (m.through) own.op(0, "sync");
    if (m.sums) {
      own.op(0, fmt::format("reduce output[{0}] <- input[{0}], {1}[0]", c, m.box));
    } else if (m.through) {
      own.op(0, fmt::format("copy output[{}] <- {}[0]", c, m.box));
    }
    promise(r, c,
            m.sums ? fmt::format("reduce(input[{}] at p for p in [{}, {}])", c, r, source)
                   : fmt::format("input[{}] at {}", c, source));
    if (m.closes) own.ops(0, {"sync", "signal " + m.channel + "b"});
  }

  /// All gather, or add up, round a ring.
  struct Ring {
    uint32_t distance = 1;
    bool sums = false, opens = true, closes = true;
    uint32_t syncs = 3;  ///< fewer: threads do not meet everywhere
  };

  void ring() {
    chunks_ = ranks_;
    Ring ring;
    ring.distance = one_in(dice_, 2) ? 1 : ranks_ - 1;
    ring.sums = one_in(dice_, 2);
    ring.closes = !one_in(dice_, 4);
    ring.opens = !one_in(dice_, 4);
    ring.syncs = dice_.below(4);
    turn_channel("n", ring.distance);
    for (uint32_t r = 0; r < ranks_; ++r) {
      if (ring.opens) rank(r).ops(0, {"signal nb relaxed", "wait n relaxed", "sync"});
      ring.sums ? sum_round(ring, r) : gather_round(ring, r);
      if (ring.closes) rank(r).ops(0, {"sync", "signal nb", "wait n"});
      flush(r, "n");
    }
  }

  /// The chunk that rank r sends in a step of the ring.
  uint32_t chunk(const Ring& ring, uint32_t r, uint32_t step) const {
    return (r + (ranks_ - ring.distance) * step) % ranks_;
  }
  void hand_over(const Ring& ring, uint32_t r) {
    rank(r).ops(0, {"sync", "signal n", "wait nb"});
    if (ring.syncs != 0) rank(r).op(0, "sync");
  }

  void gather_round(const Ring& ring, uint32_t r) {
    RankSketch& own = rank(r);
    own.ops(0, {fmt::format("copy output[{0}] <- input[{0}]", r),
                fmt::format("put n.output[{0}] <- input[{0}]", r)});
    promise(r, r, fmt::format("input[{0}] at {0}", r));
    for (uint32_t s = 1; s < ranks_; ++s) {
      const uint32_t c = chunk(ring, r, s);
      hand_over(ring, r);
      promise(r, c, fmt::format("input[{0}] at {0}", c));
      if (s + 1 < ranks_) own.op(0, fmt::format("put n.output[{0}] <- output[{0}]", c));
    }
  }

  void sum_round(const Ring& ring, uint32_t r) {
    RankSketch& own = rank(r);
    own.buffers.push_back({.name = "s", .chunks = ranks_});
    own.op(0, fmt::format("put n.s[{0}] <- input[{0}]", r));
    for (uint32_t s = 1; s < ranks_; ++s) {
      const uint32_t c = chunk(ring, r, s);
      const bool last = s + 1 == ranks_;
      hand_over(ring, r);
      own.op(0, fmt::format("reduce {1}[{0}] <- s[{0}], input[{0}]", c, last ? "output" : "s"));
      if (ring.syncs > 1) own.op(0, "sync");
      if (!last) own.op(0, fmt::format("put n.s[{0}] <- s[{0}]", c));
    }
    const uint32_t kept = chunk(ring, r, ranks_ - 1);
    promise(r, kept, fmt::format("reduce(input[{}] at p for p in 0..{})", kept, ranks_));
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
      flush(r, "c");
      promise(r, 0, fmt::format("input[0] at {}", from(r, distance)));
    }
  }

  Dice& dice_;
  Sketch sketch_;
  uint32_t ranks_ = 2, step_ = 1, chunks_ = 1;
  bool port_ = false, flushes_ = false;
  bool turned_ = false;  ///< chunks are as many as ranks, and turn with them
};

}  // namespace

Sketch make_symmetric(Dice& dice) { return Symmetric(dice).make(); }

}  // namespace mscclc::random_programs
