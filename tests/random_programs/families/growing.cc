// Boxes in parts, each from another sender. Where a part ends depends on the size of a call, so
// what one sender knows of its own part does not protect it from another's in a call of another
// size.
#include <fmt/format.h>

#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

/// Ranks 0 and 2 (and perhaps 1 to itself) send an input each to rank 1, in as many parts as there
/// are senders. Part i of sender q lies in box (q + i) mod senders, or each in a box of its own.
class Growing {
 public:
  explicit Growing(Dice& dice) : dice_(dice) {}

  Sketch make() {
    sketch_.family = "growing";
    sketch_.ranks.resize(3);
    sketch_.collective = "custom(ranks: 3, input: 2, output: 2, inplace: false)";
    static constexpr const char* kFormats[] = {"", "", "", "LL8", "LL16", "sentinel"};
    format_ = kFormats[dice_.below(6)];
    if (format_ == "sentinel") sketch_.types = "[f32]";
    copies_ = 1 + dice_.below(format_.empty() ? 2 : 3);
    apart_ = one_in(dice_, 4);
    chunks_ = one_in(dice_, 4);
    blocks_ = 1 + dice_.below(2);
    static constexpr Answer kAnswers[] = {Answer::own, Answer::own, Answer::own, Answer::all,
                                          Answer::entry};
    answer_ = kAnswers[dice_.below(5)];
    port_ = one_in(dice_, 5);
    for (uint32_t q = 0; q < kSenders; ++q) {
      connect(sketch_, port_ ? "port" : "memory", channel(q), rank_of(q), 1);
      sketch_.promises.push_back(
          fmt::format("output[{0}] at 1 = input[{0}] at {1}", q, rank_of(q)));
    }
    boxes();
    for (uint32_t q = 0; q < kSenders; ++q) send(q);
    receive();
    return std::move(sketch_);
  }

 private:
  static constexpr uint32_t kSenders = 2;
  /// What a sender waits for before its next call: that its own parts are read, that all are, or
  /// that the next call has begun.
  enum class Answer : uint8_t { own, all, entry };

  RankSketch& rank(uint32_t r) { return sketch_.ranks[r]; }
  RankSketch& reader() { return rank(1); }
  static uint32_t rank_of(uint32_t sender) { return 2 * sender; }
  static std::string channel(uint32_t sender) { return fmt::format("c{}", sender); }
  std::string op(const char* plain) const {
    return format_.empty() ? plain : fmt::format("{}_packets", plain);
  }

  /// Two chunks of one buffer, or two buffers.
  std::string box(uint32_t sender, uint32_t part) const {
    const uint32_t i = apart_ ? sender : (sender + part) % kSenders;
    return chunks_ ? fmt::format("s[{}]", i) : fmt::format("s{}[0]", i);
  }
  void boxes() {
    for (uint32_t i = 0; i < (chunks_ ? 1 : kSenders); ++i) {
      reader().buffers.push_back({.name = chunks_ ? "s" : fmt::format("s{}", i),
                                  .chunks = chunks_ ? kSenders : 1,
                                  .copies = copies_,
                                  .packets = format_});
    }
  }

  static std::string part(uint32_t i) { return fmt::format(" part: [{}, {}]", i, kSenders); }

  void send(uint32_t q) {
    RankSketch& sender = rank(rank_of(q));
    const std::string c = channel(q);
    const std::string relaxed = one_in(dice_, 2) ? " relaxed" : "";
    if (answer_ == Answer::entry) {
      reader().op(0, "signal " + c + relaxed);
      sender.ops(0, {"wait " + c + relaxed, "sync"});
    }
    std::string source = fmt::format("input[{}]", q);
    if (port_ && !format_.empty()) {
      sender.buffers.push_back({.name = "o", .copies = copies_, .packets = format_});
      sender.ops(0, {"copy_packets o[0] <- " + source, "sync"});
      source = "o[0]";
    }
    for (uint32_t i = 0; i < kSenders; ++i) {
      sender.op(0, fmt::format("{} {}.{} <- {}{}", op("put"), c, box(q, i), source, part(i)));
    }
    if (format_.empty()) {
      if (!port_) sender.op(0, "sync");
      sender.op(0, "signal " + c);
    }
    if (port_) sender.op(0, "flush " + c);
    if (answer_ != Answer::entry) sender.op(0, "wait " + c);
  }

  /// Block q reads what sender q has sent; or one block reads all.
  void receive() {
    const std::string read = format_.empty() ? "copy" : "unpack_packets";
    for (uint32_t q = 0; q < kSenders; ++q) {
      const uint32_t block = q % blocks_;
      if (format_.empty()) reader().ops(block, {"wait " + channel(q), "sync"});
      for (uint32_t i = 0; i < kSenders; ++i) {
        reader().op(block, fmt::format("{} output[{}] <- {}{}", read, q, box(q, i), part(i)));
      }
      if (answer_ == Answer::own) reader().ops(block, {"sync", "signal " + channel(q)});
    }
    if (answer_ != Answer::all) return;
    for (uint32_t b = 0; b < blocks_; ++b) {
      reader().op(b, blocks_ == 2 ? "barrier 0..2" : "sync");
    }
    for (uint32_t q = 0; q < kSenders; ++q) reader().op(0, "signal " + channel(q));
  }

  Dice& dice_;
  Sketch sketch_;
  std::string format_;
  uint32_t copies_ = 1, blocks_ = 1;
  bool apart_ = false, chunks_ = false, port_ = false;
  Answer answer_ = Answer::own;
};

}  // namespace

Sketch make_growing(Dice& dice) { return Growing(dice).make(); }

}  // namespace mscclc::random_programs
