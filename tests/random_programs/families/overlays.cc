// Overlays: small plans of two ranks whose scratch lies on that of others, chunk not on chunk. What
// one leaves there, another takes for packets, or for none: slots that only ports send or that are
// emptied late, boxes that are left full, credits that a port begins with.
#include <fmt/format.h>

#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

class Overlay {
 public:
  Overlay(Dice& dice, const Overlaid& all) : dice_(dice), all_(all) {}

  Sketch make() {
    sketch_.family = "overlay";
    sketch_.types = "[f32]";
    sketch_.reuse_scratch = !one_in(dice_, 40);
    if (all_.aligns && one_in(dice_, 2)) sketch_.align = 16u << (1 + dice_.below(2));
    sketch_.ranks.resize(2);
    for (RankSketch& rank : sketch_.ranks) rank.blocks.resize(1);
    connect(sketch_, "memory", "m", 0, 1);
    connect(sketch_, "port", "n", 0, 1, all_.credits);
    slots_ = 1 + dice_.below(3);
    copies_ = 1 + dice_.below(2);
    const std::string packets = one_in(dice_, 20) ? "" : all_.format;
    for (RankSketch& rank : sketch_.ranks) {
      rank.buffers.push_back(
          {.name = "s", .chunks = slots_, .copies = copies_, .packets = packets});
    }
    if (all_.credits > 0 && packets.empty() && !one_in(dice_, 6)) {
      credited();
    } else {
      const uint32_t moves = one_in(dice_, 4) ? 2 : 1;
      for (uint32_t i = 0; i < moves; ++i) move(packets.empty(), i);
    }
    if (all_.credits > 0 && !taken_) credit(dice_.below(2) == 0 ? "wait n relaxed" : "wait n");
    if (!given_.empty()) op(1, given_);
    if (one_in(dice_, taken_ ? 6 : 2)) meet();
    sketch_.collective = "custom(ranks: 2, input: 1, output: 1, inplace: false)";
    return std::move(sketch_);
  }

 private:
  void op(uint32_t r, const std::string& text) { sketch_.ranks[r].op(0, text); }
  void sync(uint32_t r) {
    if (!one_in(dice_, 10)) op(r, "sync");
  }
  std::string slot() { return fmt::format("s[{}]", dice_.below(slots_)); }

  /// Rank a's input comes to the output of the other, or its own comes back to it.
  void move(bool plain, uint32_t number) {
    const uint32_t a = number == 0 ? dice_.below(2) : 1 - last_;
    last_ = a;
    const uint32_t kind = plain ? 0 : 1 + dice_.below(4);
    if (kind == 0) by_signals(a);
    if (kind == 1) send(a, "input[0]", "m.");
    if (kind == 2) box(a);
    if (kind >= 3) echo(a);
  }

  void by_signals(uint32_t a) {
    const uint32_t b = 1 - a;
    const bool port = one_in(dice_, 2) || all_.credits > 0;
    const std::string c = port ? "n" : "m", to = slot();
    if (port && all_.credits > 0 && a == 0) credit(one_in(dice_, 2) ? "wait n relaxed" : "wait n");
    op(a, fmt::format("put {}.{} <- input[0]", c, to));
    if (!port) sync(a);
    op(a, "signal " + c);
    if (port && one_in(dice_, 2)) op(a, "flush " + c);
    op(b, "wait " + c);
    sync(b);
    op(b, "copy output[0] <- " + to);
    promise(b, a);
    back(b);
  }

  /// What the far end gives before or after; the near end may take it a call later.
  void credit(const char* wait) {
    taken_ = true;
    op(0, wait);
    given_ = std::string(wait).ends_with("relaxed") ? "signal n relaxed" : "signal n";
    if (!one_in(dice_, 2)) return;
    op(1, given_);
    given_.clear();
  }

  /// What rank 1 gives by its port is taken a call later: it may say what the port did before.
  void credited() {
    taken_ = true;
    const std::string chunk = slot();
    promise(0, 0);
    op(0, one_in(dice_, 2) ? "wait n relaxed" : "wait n");
    sync(0);
    if (!one_in(dice_, 3)) {
      op(0, fmt::format("copy {} <- input[0]", chunk));
      op(0, "sync");
      op(0, "copy output[0] <- " + chunk);
    } else {
      op(0, "copy output[0] <- input[0]");
    }
    sync(0);
    const std::string relaxed = one_in(dice_, 6) ? " relaxed" : "";
    op(0, "signal m" + relaxed);
    op(1, "wait m" + relaxed);
    sync(1);
    const bool puts = one_in(dice_, 2);
    if (puts) op(1, fmt::format("put n.{} <- input[0]", chunk));
    op(1, one_in(dice_, puts ? 4 : 2) ? "signal n relaxed" : "signal n");
    if (puts) op(1, "flush n");
  }

  /// Each hears that the other has done all, and its port has read all.
  void meet() {
    for (uint32_t r = 0; r < 2; ++r) {
      if (posts(r)) op(r, "flush n");
      op(r, "sync");
    }
    const uint32_t ways = 1 + dice_.below(3);  // bits
    for (uint32_t r = 0; r < 2; ++r) {
      if ((ways >> r) % 2 == 1) op(r, "signal m");
    }
    for (uint32_t r = 0; r < 2; ++r) {
      if ((ways >> (1 - r)) % 2 == 1) op(r, "wait m");
    }
  }
  bool posts(uint32_t r) const {
    for (const Stretch& s : sketch_.ranks[r].blocks[0]) {
      for (const std::string& op : s.ops) {
        if (op.find(" n.") != std::string::npos) return true;
      }
    }
    return false;
  }

  void send(uint32_t a, const std::string& from, const std::string& channel) {
    const uint32_t b = 1 - a;
    const std::string to = slot();
    op(a, fmt::format("put_packets {}{} <- {}", channel, to, from));
    take(b, to, a);
    back(b);
  }

  void take(uint32_t r, const std::string& from, uint32_t origin) {
    op(r, "unpack_packets output[0] <- " + from);
    promise(r, origin);
  }

  /// Packets are made here, a port sends them; they are left in the box, or the box is emptied.
  void box(uint32_t a) {
    const std::string from = slot();
    op(a, fmt::format("copy_packets {} <- input[0]", from));
    op(a, "sync");
    send(a, from, "n.");
    if (one_in(dice_, 2)) op(a, "flush n");
    if (one_in(dice_, 2)) take(a, from, a);
  }

  /// Packets go to the other rank, which hands them on as they come, back to where they are from.
  void echo(uint32_t a) {
    const uint32_t b = 1 - a;
    const std::string there = slot(), home = slot();
    op(a, fmt::format("put_packets m.{} <- input[0]", there));
    op(b, fmt::format("read_put_packets {}{} <- {}", one_in(dice_, 4) ? "m." : "n.", home, there));
    if (one_in(dice_, 4)) op(b, "flush n");
    take(a, home, a);
    if (one_in(dice_, copies_ == 2 ? 8 : 2)) back(a);
  }

  /// That the other rank may send again.
  void back(uint32_t r) {
    const uint32_t kind = dice_.below(8);
    if (!given_.empty()) {
      sync(r);
      op(1, given_);
      given_.clear();
    }
    if (kind == 0) return;
    const std::string relaxed = kind == 1 ? " relaxed" : "";
    sync(r);
    op(r, "signal m" + relaxed);
    op(1 - r, "wait m" + relaxed);
    sync(1 - r);
  }

  void promise(uint32_t r, uint32_t origin) {
    const std::string text = fmt::format("output[0] at {} = input[0] at {}", r, origin);
    const std::string start = text.substr(0, text.find('='));
    std::erase_if(sketch_.promises, [&](const std::string& p) { return p.starts_with(start); });
    sketch_.promises.push_back(text);
  }

  Dice& dice_;
  const Overlaid all_;
  Sketch sketch_;
  uint32_t slots_ = 1, copies_ = 1, last_ = 0;
  bool taken_ = false;  ///< a credit
  std::string given_;   ///< the signal for it, which is still to come
};

}  // namespace

Sketch make_overlay(Dice& dice, const Overlaid& all) { return Overlay(dice, all).make(); }

}  // namespace mscclc::random_programs
