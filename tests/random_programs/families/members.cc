// Collectives that share scratch, channels and the count of calls with others: each is right alone,
// most often, by another means, and what one of them relies on another may not give.
#include <fmt/format.h>

#include <algorithm>

#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

/// All ranks, or one, send their input to all others: into boxes, or where it is to be.
class Member {
 public:
  Member(Dice& dice, uint32_t copies) : dice_(dice), copies_(one_in(dice, 3) ? 1 : copies) {}

  Sketch make() {
    sketch_.family = "member";
    sketch_.reuse_scratch = !one_in(dice_, 6);
    ranks_ = 2 + (one_in(dice_, 4) ? 1 : 0);
    sketch_.ranks.resize(ranks_);
    for (RankSketch& rank : sketch_.ranks) rank.blocks.resize(1);
    const uint32_t kind = dice_.below(8);
    if (kind < 3) {
      static constexpr const char* kFormats[] = {"LL8", "LL16", "LL16", "LL128", "sentinel"};
      format_ = kFormats[dice_.below(5)];
      if (format_ == "sentinel") sketch_.types = "[f32]";
    }
    direct_ = kind == 3;
    port_ = format_.empty() && one_in(dice_, 4);
    root_ = one_in(dice_, 3) ? dice_.below(ranks_) : kAll;
    if (copies_ > 2 && one_in(dice_, 2)) go_ahead();
    slots_ = ranks_ + (one_in(dice_, 3) ? 1 : 0);
    shift_ = dice_.below(slots_);
    sketch_.collective =
        fmt::format("custom(ranks: {0}, input: {0}, output: {0}, inplace: false)", ranks_);
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (uint32_t q = r + 1; q < ranks_; ++q) {
        const bool second = q == root_;
        const uint32_t credits = second || r == root_ ? credits_ : 0;
        connect(sketch_, port_ ? "port" : "memory", channel(r, q), second ? q : r, second ? r : q,
                credits);
      }
    }
    for (uint32_t r = 0; r < ranks_ && !direct_; ++r) {
      sketch_.ranks[r].buffers.push_back(
          {.name = "s", .chunks = slots_, .copies = copies_, .packets = format_});
    }
    format_.empty() ? by_signals() : by_packets();
    return std::move(sketch_);
  }

 private:
  static constexpr uint32_t kAll = ~0u;
  enum class Shake : uint8_t { none, relaxed, full };

  /// One sends, and may be a call ahead of the others.
  void go_ahead() {
    format_.clear();
    sketch_.types.clear();
    direct_ = false;
    port_ = true;
    root_ = dice_.below(2);
    credits_ = 1;
  }

  static std::string channel(uint32_t r, uint32_t q) {
    return fmt::format("c{}{}", std::min(r, q), std::max(r, q));
  }
  std::string box(uint32_t sender) const {
    return fmt::format("s[{}]", (sender + shift_) % slots_);
  }
  bool sends(uint32_t r) const { return root_ == kAll || root_ == r; }
  template <class Fn>
  void each_other(uint32_t r, Fn&& fn) const {
    for (uint32_t q = 0; q < ranks_; ++q) {
      if (q != r) fn(q);
    }
  }

  Shake draw_shake() {
    static constexpr Shake kShakes[] = {Shake::none, Shake::none, Shake::relaxed, Shake::full};
    return kShakes[dice_.below(4)];
  }
  /// Receivers signal, senders wait.
  void shake(uint32_t r, Shake shake) {
    if (shake == Shake::none) return;
    const std::string relaxed = shake == Shake::relaxed ? " relaxed" : "";
    RankSketch& rank = sketch_.ranks[r];
    rank.op(0, "sync");
    each_other(r, [&](uint32_t q) {
      if (sends(q)) rank.op(0, "signal " + channel(r, q) + relaxed);
    });
    each_other(r, [&](uint32_t q) {
      if (sends(r)) rank.op(0, "wait " + channel(r, q) + relaxed);
    });
  }

  void promise(uint32_t r, uint32_t sender) {
    sketch_.promises.push_back(fmt::format("output[{0}] at {1} = input[{0}] at {0}", sender, r));
  }

  void by_signals() {
    const Shake opens = direct_ && !one_in(dice_, 4) ? Shake::relaxed : draw_shake();
    const Shake closes = credits_ > 0 && !one_in(dice_, 4) ? Shake::relaxed : draw_shake();
    for (uint32_t r = 0; r < ranks_; ++r) {
      RankSketch& rank = sketch_.ranks[r];
      shake(r, opens);
      rank.op(0, "sync");
      each_other(r, [&](uint32_t q) {
        if (!sends(r)) return;
        rank.op(0, fmt::format("put {}.{} <- input[{}]", channel(r, q),
                               direct_ ? fmt::format("output[{}]", r) : box(r), r));
      });
      if (!port_) rank.op(0, "sync");
      each_other(r, [&](uint32_t q) {
        if (sends(r)) rank.op(0, "signal " + channel(r, q));
      });
      each_other(r, [&](uint32_t q) {
        if (sends(q)) rank.op(0, "wait " + channel(r, q));
      });
      rank.op(0, "sync");
      each_other(r, [&](uint32_t q) {
        if (!sends(q)) return;
        promise(r, q);
        if (!direct_) rank.op(0, fmt::format("copy output[{}] <- {}", q, box(q)));
      });
      shake(r, closes);
      each_other(r, [&](uint32_t q) {
        if (port_ && sends(r)) rank.op(0, "flush " + channel(r, q));
      });
    }
  }

  void by_packets() {
    const Shake closes = root_ == kAll ? Shake::none : draw_shake();
    for (uint32_t r = 0; r < ranks_; ++r) {
      RankSketch& rank = sketch_.ranks[r];
      each_other(r, [&](uint32_t q) {
        if (!sends(r)) return;
        rank.op(0, fmt::format("put_packets {}.{} <- input[{}]", channel(r, q), box(r), r));
      });
      each_other(r, [&](uint32_t q) {
        if (!sends(q)) return;
        promise(r, q);
        rank.op(0, fmt::format("unpack_packets output[{}] <- {}", q, box(q)));
      });
      shake(r, closes);
    }
  }

  Dice& dice_;
  Sketch sketch_;
  const uint32_t copies_;
  std::string format_;
  bool direct_ = false, port_ = false;
  uint32_t ranks_ = 2, root_ = kAll, slots_ = 2, shift_ = 0;
  uint32_t credits_ = 0;  ///< that the root's channels begin with
};

}  // namespace

Sketch make_member(Dice& dice, uint32_t copies) { return Member(dice, copies).make(); }

}  // namespace mscclc::random_programs
