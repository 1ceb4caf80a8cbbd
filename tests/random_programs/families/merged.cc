// Merged: neighbouring ops of a block that the compiler fuses, or an engine does as one step, where
// operands coincide: copies onto themselves, sums and packets that go where they come from, slots
// that one op takes from and the next fills again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "tests/random_programs/families/families.h"

namespace mscclc::random_programs {
namespace {

/// Rank 0 does what matters; the others send packets, or put into its output meanwhile.
class Merged {
 public:
  explicit Merged(Dice& dice) : dice_(dice) {}

  Sketch make() {
    sketch_.family = "merged";
    sketch_.compiled = true;
    ranks_ = 2 + dice_.below(2);
    sketch_.ranks.resize(ranks_);
    for (RankSketch& rank : sketch_.ranks) rank.blocks.resize(1);
    static constexpr const char* kFormats[] = {"LL8", "LL16", "LL128", "sentinel", "sentinel"};
    format_ = kFormats[dice_.below(5)];
    if (format_ == "sentinel") sketch_.types = "[f32]";
    in_place_ = one_in(dice_, 2);
    foreign_ = one_in(dice_, in_place_ ? 2 : 4);
    density_ = dice_.below(3);
    for (const char* name : {"x", "y", "z"}) rank().buffers.push_back({.name = name});
    values_ = {{"input[0]", {0}}};
    for (uint32_t r = 1; r < ranks_; ++r) connect(sketch_, "memory", fmt::format("c{}", r), 0, r);
    if (foreign_) put_meanwhile();
    for (uint32_t r = 1; r < ranks_; ++r) send(r);
    const uint32_t steps = 2 + dice_.below(5);
    for (uint32_t i = 0; i < steps; ++i) step();
    finish();
    return std::move(sketch_);
  }

 private:
  using Value = std::set<uint32_t>;  ///< whose inputs are added up; none: not known

  RankSketch& rank() { return sketch_.ranks[0]; }
  void op(const std::string& text) {
    rank().op(0, text);
    if (dice_.below(3) < density_) rank().op(0, "sync");
  }

  // ---- places

  /// In place, the input is the output.
  std::string place(const std::string& cell) const {
    return in_place_ && cell == "output[0]" ? "input[0]" : cell;
  }
  std::string target() {
    static constexpr const char* kCells[] = {"x[0]", "y[0]", "z[0]", "output[0]"};
    return kCells[dice_.below(foreign_ ? 3 : 4)];
  }
  std::string source() {
    std::vector<std::string> all;
    for (const auto& [cell, value] : values_) {
      if (!value.empty() && !(foreign_ && in_place_ && cell == "input[0]")) all.push_back(cell);
    }
    return all.empty() ? "" : all[dice_.below(static_cast<uint32_t>(all.size()))];
  }
  /// Where what an op stores goes: every other time where it comes from.
  std::string near(const std::string& from) {
    const bool callers = from == "input[0]" && !in_place_;
    return one_in(dice_, 2) && !callers && !from.empty() ? from : target();
  }
  void set(const std::string& cell, const Value& value) { values_[place(cell)] = value; }
  Value value(const std::string& cell) const {
    const auto found = values_.find(place(cell));
    return found == values_.end() ? Value{} : found->second;
  }
  static Value sum(const Value& a, const Value& b) {
    Value all = a;
    all.insert(b.begin(), b.end());
    return a.empty() || b.empty() || all.size() < a.size() + b.size() ? Value{} : all;
  }

  std::string new_slot(uint32_t r) {
    const std::string name = fmt::format("k{}", slots_++);
    sketch_.ranks[r].buffers.push_back({.name = name, .copies = 2, .packets = format_});
    return name + "[0]";
  }

  // ---- what others do

  /// The output is put by rank 1, while rank 0 does other things, or copies it onto itself.
  void put_meanwhile() {
    const uint32_t block = one_in(dice_, 4) ? 0 : 1;
    rank().ops(block, {"signal c1", "wait c1"});
    sketch_.ranks[1].ops(0, {"wait c1", "put c1.output[0] <- input[0]", "sync", "signal c1"});
  }

  void send(uint32_t r) {
    const uint32_t count = 1 + dice_.below(2);
    for (uint32_t i = 0; i < count; ++i) {
      const std::string slot = new_slot(0);
      sketch_.ranks[r].op(0, fmt::format("put_packets c{}.{} <- input[0]", r, slot));
      full_.emplace_back(slot, Value{r});
    }
  }

  // ---- steps

  std::pair<std::string, Value> take() {
    const size_t i = dice_.below(static_cast<uint32_t>(full_.size()));
    const auto slot = full_[i];
    full_.erase(full_.begin() + static_cast<ptrdiff_t>(i));
    emptied_ = slot.first;
    return slot;
  }
  /// A slot to fill: every other time the one that has just been taken from.
  std::string slot_to_fill() {
    return one_in(dice_, 2) && !emptied_.empty() ? emptied_ : new_slot(0);
  }

  void step() {
    switch (dice_.below(foreign_ ? 12 : 8)) {
      case 0:
      case 1:
      case 8:
      case 9:
        return onto_itself();
      case 2:
        return copy();
      case 3:
        return add();
      case 4:
        return fill();
      case 5:
      case 10:
      case 11:
        return full_.empty() ? copy() : unpack();
      default:
        return full_.empty() ? add() : add_packets();
    }
  }

  void onto_itself() {
    const std::string cell = foreign_ ? "output[0]" : near(source());
    const bool both = in_place_ && cell == "output[0]" && !one_in(dice_, 4);
    op(fmt::format("copy {} <- {}", cell, both ? "input[0]" : cell));
  }

  void copy() {
    const std::string from = source(), to = target();
    if (from.empty() || place(to) == from) return;
    op(fmt::format("copy {} <- {}", to, from));
    set(to, value(from));
  }

  void add() {
    const std::string a = source(), b = source();
    if (a.empty()) return;
    const std::string to = near(a);
    op(fmt::format("reduce {} <- {}, {}", to, a, b));
    set(to, sum(value(a), value(b)));
  }

  void fill() {
    const std::string from = source();
    if (from.empty()) return;
    const std::string slot = slot_to_fill();
    op(fmt::format("copy_packets {} <- {}", slot, from));
    full_.emplace_back(slot, value(from));
    emptied_.clear();
  }

  void unpack() {
    const auto [slot, sent] = take();
    const std::string to = target();
    op(fmt::format("unpack_packets {} <- {}", to, slot));
    set(to, sent);
  }

  /// Adds packets to a cell; perhaps keeps the sum in packets, too, or sends it to another rank.
  void add_packets() {
    const std::string from = source();
    if (from.empty()) return;
    const auto [slot, sent] = take();
    const std::string to = near(from);
    const Value all = sum(value(from), sent);
    const uint32_t kind = dice_.below(4);
    const std::string srcs = one_in(dice_, 2) ? from + ", " + slot : slot + ", " + from;
    if (kind == 0) {
      const std::string next = slot_to_fill();
      op(fmt::format("reduce_copy_packets {}, {} <- {}", to, next, srcs));
      full_.emplace_back(next, all);
    } else {
      op(fmt::format("reduce_packets {} <- {}", to, srcs));
    }
    set(to, all);
    if (kind == 1) send_on(to);
  }

  void send_on(const std::string& from) {
    const uint32_t r = 1 + dice_.below(ranks_ - 1);
    const std::string slot = new_slot(r);
    op(fmt::format("put_packets c{}.{} <- {}", r, slot, from));
    sketch_.ranks[r].op(0, "unpack_packets output[0] <- " + slot);
    promise(r, value(from));
  }

  // ---- the end

  void promise(uint32_t r, const Value& value) {
    const std::string start = fmt::format("output[0] at {} =", r);
    std::erase_if(sketch_.promises, [&](const std::string& p) { return p.starts_with(start); });
    if (value.empty()) return;
    std::vector<std::string> terms;
    for (const uint32_t from : value) terms.push_back(fmt::format("input[0] at {}", from));
    const std::string all = fmt::format("{}", fmt::join(terms, ", "));
    sketch_.promises.push_back(start + (terms.size() == 1 ? " " + all : " reduce(" + all + ")"));
  }

  void finish() {
    while (!full_.empty()) unpack();
    if (foreign_) {
      promise(0, {1});
    } else {
      if (value("output[0]").empty() && !in_place_) {
        const std::string from = source();
        op("copy output[0] <- " + from);
        set("output[0]", value(from));
      }
      promise(0, value("output[0]"));
    }
    rank().op(0, "sync");
    for (uint32_t r = 1; r < ranks_; ++r) {
      // Of channels of its own: what the other block waits for is not meant for this one.
      connect(sketch_, "memory", fmt::format("d{}", r), 0, r);
      rank().op(0, fmt::format("signal d{}", r));
      sketch_.ranks[r].op(0, fmt::format("wait d{}", r));
    }
    sketch_.collective = fmt::format("custom(ranks: {}, input: 1, output: 1, inplace: {})", ranks_,
                                     in_place_ ? "true" : "false");
  }

  Dice& dice_;
  Sketch sketch_;
  std::string format_;
  bool in_place_ = false;
  bool foreign_ = false;  ///< another rank puts the output
  uint32_t ranks_ = 2, slots_ = 0, density_ = 1;
  std::map<std::string, Value> values_;              ///< by place
  std::vector<std::pair<std::string, Value>> full_;  ///< slots that nothing has taken from
  std::string emptied_;
};

}  // namespace

Sketch make_merged(Dice& dice) { return Merged(dice).make(); }

}  // namespace mscclc::random_programs
