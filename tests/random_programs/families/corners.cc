// Small programs at the corners of single rules: threads that meet or not, packets that only say
// that others are there, parts and formats that are cut elsewhere.
#include <fmt/format.h>

#include <map>

#include "ir/ops/ops.h"
#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

const PacketFormatInfo& any_format(Dice& dice) {
  return packet_formats()[dice.below(static_cast<uint32_t>(packet_formats().size()))];
}

/// Copies and sums of one block, or two that meet, in an order that one thread would keep.
class Locals {
 public:
  explicit Locals(Dice& dice) : dice_(dice) {}

  Sketch make() {
    sketch_.family = "locals";
    sketch_.collective = "custom(ranks: 1, input: 2, output: 2, inplace: false)";
    sketch_.ranks.resize(1);
    rank().blocks.resize(1 + dice_.below(2));
    for (const char* name : {"s", "t", "u"}) rank().buffers.push_back({.name = name});
    for (const char* name : {"input[0]", "input[1]"}) {
      values_[name] = {static_cast<uint32_t>(name[6] - '0')};
    }
    const uint32_t ops = 3 + dice_.below(8), dense = dice_.below(4);
    for (uint32_t i = 0; i < ops; ++i) {
      add_op();
      if (dice_.below(4) >= dense) rank().op(block_, "sync");
      if (rank().blocks.size() == 2 && one_in(dice_, 4)) change_block();
    }
    for (uint32_t i = 0; i < 2; ++i) finish(fmt::format("output[{}]", i), i);
    return std::move(sketch_);
  }

 private:
  RankSketch& rank() { return sketch_.ranks[0]; }

  void change_block() {
    rank().op(0, "barrier 0..2");
    rank().op(1, "barrier 0..2");
    block_ = 1 - block_;
  }

  /// A place with a value, of one size with it.
  std::string draw_source(uint32_t size) {
    std::vector<std::string> all;
    for (const auto& [name, value] : values_) {
      if (size_of(name, value) == size && !value.empty()) all.push_back(name);
    }
    return all.empty() ? "" : all[dice_.below(static_cast<uint32_t>(all.size()))];
  }

  /// Chunks of the two positions differ in length.
  static uint32_t size_of(const std::string& name, const std::vector<uint32_t>& value) {
    if (name.find("put[") != std::string::npos)
      return static_cast<uint32_t>(name[name.find('[') + 1] - '0');
    return value.empty() ? 2 : value[0];
  }

  void add_op() {
    const uint32_t size = dice_.below(2);
    const std::string from = draw_source(size);
    static constexpr std::array<const char*, 3> kScratch = {"s[0]", "t[0]", "u[0]"};
    std::string to = kScratch[dice_.below(3)];
    if (one_in(dice_, 4)) to = fmt::format("output[{}]", size);
    if (from.empty() || to == from) return;
    if (one_in(dice_, 4)) {
      const std::string other = draw_source(size);
      if (other != from && other != to) return add_sum(to, from, other, size);
    }
    std::string op = fmt::format("copy {} <- {}", to, from);
    if (one_in(dice_, 5)) {
      rank().op(block_, op + " part: [0, 2]");
      op += " part: [1, 2]";
    }
    rank().op(block_, op);
    values_[to] = values_[from];
  }

  /// No contract promises a value plus itself: the sum goes where nothing looks.
  void add_sum(const std::string& to, const std::string& from, const std::string& other,
               uint32_t size) {
    if (to.starts_with("output")) return;
    rank().op(block_, fmt::format("reduce {} <- {}, {}", to, from, other));
    values_[to].clear();
    if (one_in(dice_, 2)) return;
    rank().op(block_, fmt::format("copy {} <- {}", to, fmt::format("input[{}]", size)));
    values_[to] = {size};
  }

  void finish(const std::string& output, uint32_t i) {
    if (!values_[output].empty() && values_[output][0] == i) {
      sketch_.promises.push_back(fmt::format("{} at 0 = input[{}] at 0", output, i));
      return;
    }
    std::string from = draw_source(i);
    if (from.empty()) from = fmt::format("input[{}]", i);
    rank().op(block_, fmt::format("copy {} <- {}", output, from));
    sketch_.promises.push_back(fmt::format("{} at 0 = input[{}] at 0", output, i));
  }

  Dice& dice_;
  Sketch sketch_;
  std::map<std::string, std::vector<uint32_t>> values_;  ///< by place: the input chunk it holds
  uint32_t block_ = 0;
};

std::string draw_part(Dice& dice) {
  if (one_in(dice, 3)) return "";
  const uint32_t n = 2 + dice.below(2);
  return fmt::format(" part: [{}, {}]", dice.below(n), n);
}

}  // namespace

Sketch make_locals(Dice& dice) { return Locals(dice).make(); }

/// Two ranks put into each other's output. That the other is in this call they know from packets,
/// perhaps of a part only, or from relaxed signals; that it has the data, from signals.
Sketch make_tokens(Dice& dice) {
  Sketch sketch{.family = "tokens",
                .collective = "custom(ranks: 2, input: 1, output: 1, inplace: false)",
                .ranks = std::vector<RankSketch>(2)};
  const PacketFormatInfo& format = any_format(dice);
  const bool by_packets = !one_in(dice, 4), both = one_in(dice, 2);
  const uint32_t copies = one_in(dice, 3) ? 1 + dice.below(3) : 2;
  const std::string part = draw_part(dice);
  const bool twice = one_in(dice, 4), pairwise = one_in(dice, 6);
  connect(sketch, "memory", "c", 0, 1);
  if (is_sentinel(format.format)) sketch.types = "[f32]";
  for (uint32_t r = 0; r < 2; ++r) {
    RankSketch& rank = sketch.ranks[r];
    rank.buffers = {
        {.name = fmt::format("s{}", r), .copies = copies, .packets = std::string(format.name)},
        {.name = "t"},
        {.name = "v"}};
    if (by_packets) {
      const std::string put = fmt::format("put_packets c.s{}[0] <- input[0]{}", 1 - r, part);
      rank.op(0, put);
      if (twice) rank.op(0, put);
      rank.op(0, pairwise ? fmt::format("unpack_packets t[0], v[0] <- s{}[0], s{}[0]{}", r, r, part)
                          : fmt::format("unpack_packets t[0] <- s{}[0]{}", r, part));
    } else {
      rank.ops(0, {"signal c relaxed", "wait c relaxed"});
    }
    if (r == 1 && !both) {
      rank.ops(0, {"wait c", "sync", "signal c relaxed"});
      continue;
    }
    sketch.promises.push_back(fmt::format("output[0] at {} = input[0] at {}", 1 - r, r));
    rank.ops(0, {"sync", "put c.output[0] <- input[0]", "sync", "signal c",
                 both ? "wait c" : "wait c relaxed"});
  }
  return sketch;
}

/// From rank to rank in packets of perhaps different formats, unpacked and packed again, part by
/// part, with or without a meeting of the threads between. Back go tokens.
Sketch make_relays(Dice& dice) {
  Sketch sketch{.family = "relays",
                .collective = "custom(ranks: 3, input: 1, output: 1, inplace: false)",
                .promises = {"output[0] at 2 = input[0] at 0"},
                .ranks = std::vector<RankSketch>(3)};
  const PacketFormatInfo& first = any_format(dice);
  const PacketFormatInfo& second = one_in(dice, 2) ? first : any_format(dice);
  if (is_sentinel(first.format) || is_sentinel(second.format)) sketch.types = "[f32]";
  const uint32_t copies = one_in(dice, 3) ? 1 + dice.below(3) : 2;
  const uint32_t parts = 1 + dice.below(3);
  const bool meets = one_in(dice, 2), box = one_in(dice, 4) && second.goes_everywhere();
  const auto part = [&](uint32_t i) {
    return parts == 1 ? "" : fmt::format(" part: [{}, {}]", i, parts);
  };
  connect(sketch, "memory", "a", 0, 1);
  connect(sketch, box ? "port" : "memory", "b", 1, 2);
  connect(sketch, "memory", "w", 1, 2);
  auto& ranks = sketch.ranks;
  ranks[1].buffers = {{.name = "s1", .copies = copies, .packets = std::string(first.name)},
                      {.name = "t"}};
  ranks[2].buffers = {{.name = "s2", .copies = copies, .packets = std::string(second.name)}};
  if (box)
    ranks[1].buffers.push_back(
        {.name = "o", .copies = copies, .packets = std::string(second.name)});
  for (uint32_t i = 0; i < parts; ++i) {
    ranks[0].op(0, "put_packets a.s1[0] <- input[0]" + part(i));
    ranks[1].op(0, "unpack_packets t[0] <- s1[0]" + part(i));
    if (meets) ranks[1].op(0, "sync");
    if (box) {
      ranks[1].op(0, "copy_packets o[0] <- t[0]" + part(i));
      ranks[1].op(0, "sync");
      ranks[1].op(0, "put_packets b.s2[0] <- o[0]" + part(i));
    } else {
      ranks[1].op(0, "put_packets b.s2[0] <- t[0]" + part(i));
    }
  }
  if (box && one_in(dice, 2)) ranks[1].op(0, "flush b");
  if (box && is_sentinel(second.format) && one_in(dice, 2)) {
    ranks[1].op(0, "unpack_packets t[0] <- o[0]");
  }
  const uint32_t whole = one_in(dice, 2) ? 1 : parts;
  for (uint32_t i = 0; i < whole; ++i) {
    ranks[2].op(0, "unpack_packets output[0] <- s2[0]" + (whole == 1 ? "" : part(i)));
  }
  // The reader says so; the packets of this call carry what the one before knew.
  ranks[2].ops(0, {"sync", "signal w"});
  ranks[1].ops(0, {"wait w", "sync", "signal a"});
  ranks[0].op(0, "wait a");
  return sketch;
}

}  // namespace mscclc::random_programs
