// Messages in packets.
#include <fmt/format.h>

#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

class Packets {
 public:
  explicit Packets(Dice& dice) : dice_(dice) {}

  Sketch make() {
    sketch_.family = "packets";
    ranks_ = 2 + (one_in(dice_, 3) ? 1 : 0);
    sketch_.ranks.resize(ranks_);
    for (RankSketch& rank : sketch_.ranks) rank.blocks.resize(1);
    static constexpr const char* kFormats[] = {"LL8",   "LL16",     "LL16",
                                               "LL128", "sentinel", "sentinel"};
    format_ = kFormats[dice_.below(6)];
    port_ = format_ != "LL128" && one_in(dice_, 4);
    copies_ = one_in(dice_, 5) ? 1 + dice_.below(3) : 2;
    blocks_ = 1 + dice_.below(2);
    parts_ = one_in(dice_, 3) ? 2 : 1;
    if (one_in(dice_, 4)) {
      one_way();
    } else if (one_in(dice_, 3)) {
      ring();
    } else {
      all_to_all();
    }
    sketch_.collective = fmt::format("custom(ranks: {}, input: {}, output: {}, inplace: false)",
                                     ranks_, outputs_, outputs_);
    if (format_ == "sentinel") sketch_.types = "[f32]";
    return std::move(sketch_);
  }

 private:
  RankSketch& rank(uint32_t r) { return sketch_.ranks[r]; }

  /// After an op: which part of it.
  std::string part(uint32_t i) const {
    return parts_ == 1 ? "" : fmt::format(" part: [{}, {}]", i, parts_);
  }

  /// Rank r sends `source` to the slot at rank q.
  void send(uint32_t r, uint32_t q, const std::string& slot, const std::string& source) {
    const std::string channel = fmt::format("c{}", channels_++);
    connect(sketch_, port_ ? "port" : "memory", channel, r, q);
    std::string from = source;
    if (port_) {
      from = fmt::format("o{}", channels_);
      rank(r).buffers.push_back({.name = from, .copies = copies_, .packets = format_});
      from += "[0]";
      rank(r).op(0, fmt::format("copy_packets {} <- {}", from, source));
      rank(r).op(0, "sync");
    }
    for (uint32_t i = 0; i < parts_; ++i) {
      rank(r).op(blocks_ == 2 && !port_ ? i : 0,
                 fmt::format("put_packets {}.{}[0] <- {}{}", channel, slot, from, part(i)));
    }
    if (port_ && one_in(dice_, 2)) rank(r).op(0, "flush " + channel);
  }

  /// Two words for each pair of ranks, so that no rank gets two calls ahead.
  void all_to_all() {
    outputs_ = ranks_;
    const bool adds = parts_ == 1 && one_in(dice_, 2);
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (uint32_t q = 0; q < ranks_; ++q) {
        if (q == r) continue;
        const std::string slot = fmt::format("s{}_{}", r, q);
        rank(q).buffers.push_back({.name = slot, .copies = copies_, .packets = format_});
        send(r, q, slot, fmt::format("input[{}]", adds ? 0 : r));
      }
    }
    for (uint32_t q = 0; q < ranks_; ++q) {
      if (adds) {
        std::string all = "input[0]", promised = fmt::format("{}", q);
        for (uint32_t r = 0; r < ranks_; ++r) {
          if (r != q) all += fmt::format(", s{}_{}[0]", r, q);
          if (r != q) promised += fmt::format(", {}", r);
        }
        rank(q).op(blocks_ - 1, "reduce_packets output[0] <- " + all);
        sketch_.promises.push_back(
            fmt::format("output[0] at {} = reduce(input[0] at p for p in [{}])", q, promised));
        continue;
      }
      for (uint32_t r = 0; r < ranks_; ++r) {
        if (r == q) continue;
        receive(q, fmt::format("s{}_{}", r, q), fmt::format("output[{}]", r));
        promise(q, r, r);
      }
    }
  }

  void promise(uint32_t q, uint32_t chunk, uint32_t from) {
    sketch_.promises.push_back(
        fmt::format("output[{}] at {} = input[{}] at {}", chunk, q, chunk, from));
  }

  /// In as many parts as it was sent, or all at once; perhaps by way of plain scratch.
  void receive(uint32_t q, const std::string& slot, const std::string& target) {
    const uint32_t parts = one_in(dice_, 4) ? 1 : parts_;
    const bool through = one_in(dice_, 4);
    std::string to = target;
    if (through) {
      to = "p" + slot;
      rank(q).buffers.push_back({.name = to});
      to += "[0]";
    }
    const uint32_t block = blocks_ - 1;
    for (uint32_t i = 0; i < parts; ++i) {
      rank(q).op(parts == 2 && blocks_ == 2 && !through ? i : block,
                 fmt::format("unpack_packets {} <- {}[0]{}", to, slot,
                             parts == 1 ? "" : fmt::format(" part: [{}, {}]", i, parts)));
    }
    if (through) {
      rank(q).op(block, "sync");
      rank(q).op(block, fmt::format("copy {} <- {}", target, to));
    }
  }

  /// Round a ring, packets forwarded as they come.
  void ring() {
    outputs_ = ranks_;
    parts_ = 1;
    for (uint32_t q = 0; q < ranks_; ++q) {
      for (uint32_t from = 0; from < ranks_; ++from) {
        if (from == q) continue;
        rank(q).buffers.push_back(
            {.name = fmt::format("s{}_{}", from, q), .copies = copies_, .packets = format_});
      }
    }
    const std::string forward_by = one_in(dice_, 2) ? "read_put_packets" : "";
    for (uint32_t r = 0; r < ranks_; ++r) {
      connect(sketch_, port_ ? "port" : "memory", fmt::format("n{}", r), r, (r + 1) % ranks_);
      first(r);
    }
    for (uint32_t step = 1; step < ranks_; ++step) {
      for (uint32_t q = 0; q < ranks_; ++q) {
        pass(q, (q + ranks_ - step) % ranks_, step + 1 < ranks_, forward_by);
      }
    }
  }

  void first(uint32_t r) {
    const std::string target = fmt::format("n{}.s{}_{}[0]", r, r, (r + 1) % ranks_);
    const std::string source = fmt::format("input[{}]", r);
    if (!port_) return rank(r).op(0, fmt::format("put_packets {} <- {}", target, source));
    rank(r).buffers.push_back({.name = "o", .copies = copies_, .packets = format_});
    rank(r).op(0, "copy_packets o[0] <- " + source);
    rank(r).op(0, "sync");
    rank(r).op(0, fmt::format("put_packets {} <- o[0]", target));
    if (one_in(dice_, 2)) rank(r).op(0, fmt::format("flush n{}", r));
  }

  /// Rank q gets what began at `from`, and sends it on.
  void pass(uint32_t q, uint32_t from, bool on, const std::string& forward_by) {
    const std::string slot = fmt::format("s{}_{}[0]", from, q);
    const std::string output = fmt::format("output[{}]", from);
    const std::string next = fmt::format("n{}.s{}_{}[0]", q, from, (q + 1) % ranks_);
    promise(q, from, from);
    const bool forwards = on && !forward_by.empty() && format_ != "sentinel";
    if (forwards) rank(q).op(0, fmt::format("{} {} <- {}", forward_by, next, slot));
    rank(q).op(0, fmt::format("unpack_packets {} <- {}", output, slot));
    if (!on || forwards) return;
    if (!port_) {
      rank(q).op(0, "sync");
      rank(q).op(0, fmt::format("put_packets {} <- {}", next, output));
      return;
    }
    const std::string box = fmt::format("o{}", from);
    rank(q).buffers.push_back({.name = box, .copies = copies_, .packets = format_});
    rank(q).op(0, "sync");
    rank(q).op(0, fmt::format("copy_packets {}[0] <- {}", box, output));
    rank(q).op(0, "sync");
    rank(q).op(0, fmt::format("put_packets {} <- {}[0]", next, box));
  }

  /// One rank sends; that a slot is free it hears by signals, so one copy is enough.
  void one_way() {
    outputs_ = 1;
    rank(1).buffers.push_back({.name = "s", .copies = 1 + dice_.below(2), .packets = format_});
    send(0, 1, "s", "input[0]");
    receive(1, "s", "output[0]");
    promise(1, 0, 0);
    connect(sketch_, "memory", "w", 0, 1);
    const uint32_t last = static_cast<uint32_t>(rank(1).blocks.size()) - 1;
    if (last > 0) rank(1).op(last, fmt::format("barrier 0..{}", last + 1));
    if (last > 0) rank(1).op(0, fmt::format("barrier 0..{}", last + 1));
    rank(1).op(0, "sync");
    rank(1).op(0, "signal w");
    rank(0).op(0, "wait w");
    const uint32_t senders = static_cast<uint32_t>(rank(0).blocks.size());
    for (uint32_t b = 0; senders > 1 && b < senders; ++b) {
      rank(0).op(b, fmt::format("barrier 0..{}", senders));
    }
  }

  Dice& dice_;
  Sketch sketch_;
  std::string format_;
  bool port_ = false;
  uint32_t ranks_ = 2, copies_ = 2, blocks_ = 1, parts_ = 1, outputs_ = 1, channels_ = 0;
};

}  // namespace

Sketch make_packets(Dice& dice) { return Packets(dice).make(); }

}  // namespace mscclc::random_programs
