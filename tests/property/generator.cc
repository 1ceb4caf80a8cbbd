#include "tests/property/generator.h"

#include <fmt/format.h>

#include <random>
#include <set>
#include <vector>

namespace mscclc {
namespace {

/// The ranks whose input chunk (of one position) a chunk is the sum of; empty: not written yet.
using Value = std::set<int>;

/// A chunk that steps may read or write. Chunks of one position have one size for every message,
/// so steps never mix positions.
struct ChunkState {
  std::string text;
  int position;  ///< -1: scratch that holds nothing yet
  int block;     ///< the only block that may touch it, or -1
  bool writable;
  Value value;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {
    ranks_ = 2 + pick(3);
    chunks_ = 1 + pick(3);
    blocks_ = 1 + pick(3);
    free_ = pick(3) == 0;
    bodies_.resize(ranks_);
    channels_.resize(ranks_);
    places_.resize(ranks_);
    slots_.assign(ranks_, 0);
    rings_.resize(ranks_);
    for (int r = 0; r < ranks_; ++r) declare_places(r);
  }

  std::string make() {
    const int steps = 10 + pick(50);
    for (int i = 0; i < steps; ++i) step();
    fill_outputs();
    return text();
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  void declare_places(int r) {
    for (int c = 0; c < chunks_; ++c) {
      places_[r].push_back({fmt::format("input[{}]", c), c, -1, false, {r}});
      places_[r].push_back({fmt::format("output[{}]", c), c, c % blocks_, true, {}});
    }
    for (int i = 0; i < 3; ++i) {
      places_[r].push_back({fmt::format("work[{}]", i), -1, -1, true, {}});
    }
    for (int b = 0; b < blocks_; ++b) {  // where peers put: touched by one block only
      places_[r].push_back({fmt::format("land[{}]", b), -1, b, true, {}});
    }
  }

  static bool is_scratch(const ChunkState& p) { return p.text[0] == 'w' || p.text[0] == 'l'; }

  /// A place of rank r with a value, that `block` may touch; nullptr if the draw finds none.
  ChunkState* draw_source(int r, int block) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      ChunkState& p = places_[r][pick(static_cast<int>(places_[r].size()))];
      if (!p.value.empty() && (p.block < 0 || p.block == block)) return &p;
    }
    return nullptr;
  }

  /// A place of rank r that `block` may write with a value of this position.
  ChunkState* draw_target(int r, int block, int position, bool landing) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      ChunkState& p = places_[r][pick(static_cast<int>(places_[r].size()))];
      if (!p.writable || (landing ? p.block < 0 : p.block >= 0 && p.block != block)) continue;
      if (is_scratch(p) || p.position == position) return &p;
    }
    return nullptr;
  }

  void store(ChunkState& target, int position, Value value) {
    target.position = position;
    target.value = std::move(value);
  }

  /// "tb 1 { OP }", or only the op where the program names no blocks.
  std::string in_block(int block, const std::string& op) const {
    return free_ ? op : fmt::format("tb {} {{ {} }}", block, op);
  }

  void emit(int r, const std::string& line) { bodies_[r] += "  " + line + "\n"; }

  /// Puts a local op into a block, a group, or nowhere.
  void emit_local(int r, int block, bool free, const std::string& op) {
    const int form = pick(6);
    if (free_ && form == 2) {
      emit(r, fmt::format("pipeline unit: {} {{ {} }}", 16 << pick(6), op));
    } else if (free_ || (free && form == 0)) {
      emit(r, op);
    } else if (free && form == 1 && blocks_ > 1) {
      emit(r, fmt::format("group 0..{} {{ {} }}", blocks_, op));
    } else if (form == 2) {
      emit(r, fmt::format("pipeline unit: {} {{ tb {} {{ {} }} }}", 16 << pick(6), block, op));
    } else {
      emit(r, in_block(block, op));
    }
  }

  void step() {
    switch (pick(5)) {
      case 0:
        return local_copy();
      case 1:
        return local_sum();
      case 2:
        return put();
      case 3:
        return exchange();
      default:
        return packets();
    }
  }

  void local_copy() {
    const int r = pick(ranks_), block = pick(blocks_);
    const ChunkState* from = draw_source(r, block);
    ChunkState* to = from ? draw_target(r, block, from->position, false) : nullptr;
    if (!to || to == from) return;
    emit_local(r, block, from->block < 0 && to->block < 0,
               fmt::format("copy {} <- {}", to->text, from->text));
    store(*to, from->position, from->value);
  }

  const char* summation() {
    constexpr const char* kForms[] = {" tree", " exact", "", "", "", ""};
    return kForms[pick(6)];
  }

  void local_sum() {
    const int r = pick(ranks_), block = pick(blocks_);
    const ChunkState* a = draw_source(r, block);
    const ChunkState* b = a ? draw_source(r, block) : nullptr;
    if (!b || a->position != b->position) return;
    Value sum = a->value;
    sum.insert(b->value.begin(), b->value.end());
    if (sum.size() != a->value.size() + b->value.size()) return;  // something would count twice
    ChunkState* to = pick(2) == 0 && a->writable ? const_cast<ChunkState*>(a)
                                                 : draw_target(r, block, a->position, false);
    if (!to || to == b) return;
    emit_local(r, block, a->block < 0 && b->block < 0 && to->block < 0,
               fmt::format("reduce {} <- {}, {}{}", to->text, a->text, b->text, summation()));
    store(*to, a->position, std::move(sum));
  }

  /// "c[1, 0, 2]": rank r's end, in its block t, of the channel to block u of rank q.
  std::string channel(int r, int q, int t, int u) {
    const auto end = [](int peer, int mine, int theirs) {
      return fmt::format("c[{}, {}, {}]", peer, mine, theirs);
    };
    channels_[r].insert(
        fmt::format("channel {} = memory({}) to {}", end(q, t, u), q, end(r, u, t)));
    channels_[q].insert(
        fmt::format("channel {} = memory({}) to {}", end(r, u, t), r, end(q, t, u)));
    return end(q, t, u);
  }

  std::pair<int, int> two_ranks() {
    const int r = pick(ranks_);
    return {r, (r + 1 + pick(ranks_ - 1)) % ranks_};
  }

  /// The receiver says that its chunk is free, the sender writes and says so.
  void put() {
    const auto [r, q] = two_ranks();
    const int t = pick(blocks_), u = pick(blocks_);
    const ChunkState* from = draw_source(r, t);
    ChunkState* to = from ? draw_target(q, u, from->position, true) : nullptr;
    if (!to || to->block != u) return;
    const std::string here = channel(r, q, t, u), there = channel(q, r, u, t);
    emit(q, in_block(u, fmt::format("signal {}", there)));
    emit(r, in_block(t, fmt::format("wait {} ; put {}.{} <- {} ; signal {}", here, here, to->text,
                                    from->text, here)));
    emit(q, in_block(u, fmt::format("wait {}", there)));
    store(*to, from->position, from->value);
  }

  /// What one side of an exchange works with.
  struct Partner {
    int rank, block;
    const ChunkState* from;
    ChunkState *land, *to;
    std::string channel;
  };

  /// Two ranks send each other a chunk unit by unit, and copy what comes out of where it lands.
  void exchange() {
    const auto [r, q] = two_ranks();
    Partner a = {r, pick(blocks_), nullptr, nullptr, nullptr, ""};
    Partner b = {q, pick(blocks_), nullptr, nullptr, nullptr, ""};
    if (!draw_partner(a) || !draw_partner(b) || !draw_landing(a, b) || !draw_landing(b, a)) return;
    a.channel = channel(r, q, a.block, b.block);
    b.channel = channel(q, r, b.block, a.block);
    const int unit = 16 << pick(6);
    for (const char* op : {"signal", "wait"}) {  // both have come so far
      for (const Partner* p : {&a, &b}) {
        emit(p->rank, in_block(p->block, fmt::format("{} {}", op, p->channel)));
      }
    }
    emit_exchange(a, *b.land, unit);
    emit_exchange(b, *a.land, unit);
    const Value from_a = a.from->value, from_b = b.from->value;
    const int position_a = a.from->position, position_b = b.from->position;
    for (ChunkState* p : {a.land, a.to}) store(*p, position_b, from_b);
    for (ChunkState* p : {b.land, b.to}) store(*p, position_a, from_a);
  }

  bool draw_partner(Partner& p) {
    p.from = draw_source(p.rank, p.block);
    return p.from != nullptr;
  }

  bool draw_landing(Partner& p, const Partner& sender) {
    p.land = draw_target(p.rank, p.block, sender.from->position, true);
    p.to = draw_target(p.rank, p.block, sender.from->position, false);
    return p.land && p.to && p.land->block == p.block && p.land != p.to && p.land != p.from;
  }

  void emit_exchange(const Partner& p, const ChunkState& there, int unit) {
    std::string first, from = p.from->text;
    if (pick(2) == 0) {  // through scratch of a few units, perhaps filled by another block
      const int block = p.from->block < 0 ? pick(blocks_) : p.block;
      const std::string stage = fmt::format("units{}[0]", rings_[p.rank].size());
      rings_[p.rank].push_back(2 + pick(pick(2) == 0 ? 2 : 19));
      first = in_block(block, fmt::format("copy {} <- {}", stage, from)) + " ; ";
      from = stage;
    }
    const std::string body =
        fmt::format("put {}.{} <- {} ; signal {} ; wait {} ; copy {} <- {}", p.channel, there.text,
                    from, p.channel, p.channel, p.to->text, p.land->text);
    emit(p.rank, fmt::format("pipeline unit: {} {{ {}{} }}", unit, first, in_block(p.block, body)));
  }

  /// Packets of one or two senders, unpacked or added to something here. Slots are used once.
  void packets() {
    const auto [r, q] = two_ranks();
    const int t = pick(blocks_), v = pick(blocks_);
    const ChunkState* from = draw_source(r, t);
    if (!from) return;
    const ChunkState* plain = pick(2) == 0 ? draw_source(q, v) : nullptr;
    Value value = from->value;
    if (plain) {
      value.insert(plain->value.begin(), plain->value.end());
      if (plain->position != from->position ||
          value.size() != from->value.size() + plain->value.size()) {
        return;
      }
    }
    ChunkState* to = draw_target(q, v, from->position, false);
    if (!to) return;
    const std::string slot = fmt::format("slots[{}]", slots_[q]++);
    emit(r, in_block(
                t, fmt::format("put_packets {}.{} <- {}", channel(r, q, t, v), slot, from->text)));
    emit(q, in_block(v, plain ? fmt::format("reduce_packets {} <- {}, {}{}", to->text, plain->text,
                                            slot, summation())
                              : fmt::format("unpack_packets {} <- {}", to->text, slot)));
    store(*to, from->position, std::move(value));
  }

  /// Outputs that nothing was written to get the rank's own input.
  void fill_outputs() {
    for (int r = 0; r < ranks_; ++r) {
      for (int c = 0; c < chunks_; ++c) {
        ChunkState& output = places_[r][2 * c + 1];
        if (!output.value.empty()) continue;
        emit(r, in_block(output.block, fmt::format("copy output[{}] <- input[{}]", c, c)));
        output.value = {r};
      }
    }
  }

  std::string promises() {
    std::string out;
    for (int r = 0; r < ranks_; ++r) {
      for (int c = 0; c < chunks_; ++c) {
        const Value& value = places_[r][2 * c + 1].value;
        if (value.size() == 1) {
          out += fmt::format("ensure     output[{}] at q = input[{}] at {} for q in [{}]\n", c, c,
                             *value.begin(), r);
        } else {
          out += fmt::format(
              "ensure     output[{}] at q = reduce(input[{}] at p for p in [{}]) for q in [{}]\n",
              c, c, fmt::join(value, ", "), r);
        }
      }
    }
    return out;
  }

  /// No rank leaves before all are done, so that calls cannot disturb each other.
  std::string farewell(int r) {
    const std::string open = fmt::format("  barrier 0..{}\n  tb 0 {{\n", blocks_);
    std::string out = free_ ? "" : open;
    for (const char* op : {"signal", "wait"}) {
      for (int q = 0; q < ranks_; ++q) {
        if (q != r) out += fmt::format("    {} bye[{}]\n", op, q);
      }
    }
    return free_ ? out : out + "  }\n";
  }

  std::string text() {
    static const char* const kFormats[] = {"LL8", "LL16", "LL128"};
    std::string out = fmt::format(
        "program    random\ncollective custom(ranks: {}, input: {}, output: {}, inplace: false)\n",
        ranks_, chunks_, chunks_);
    out += promises();
    out += fmt::format("launch     instances: {}, policy: {}\n", 1 + pick(3),
                       pick(2) == 0 ? "interleaved" : "blocked");
    const std::string format = kFormats[pick(3)];
    for (int r = 0; r < ranks_; ++r) {
      out += fmt::format("\nrank {} {{\n  buffer work[3]\n  buffer land[{}]\n", r, blocks_);
      if (slots_[r] > 0) out += fmt::format("  buffer slots[{}] packets: {}\n", slots_[r], format);
      for (size_t i = 0; i < rings_[r].size(); ++i) {
        out += fmt::format("  buffer units{}[1] units: {}\n", i, rings_[r][i]);
      }
      for (int q = 0; q < ranks_; ++q) {
        if (q != r) out += fmt::format("  channel bye[{}] = memory({})\n", q, q);
      }
      for (const std::string& line : channels_[r]) out += "  " + line + "\n";
      out += bodies_[r] + farewell(r) + "}\n";
    }
    return out;
  }

  std::mt19937_64 random_;
  int ranks_, chunks_, blocks_;
  bool free_;  ///< nothing names a thread block
  std::vector<std::string> bodies_;
  std::vector<std::set<std::string>> channels_;
  std::vector<std::vector<ChunkState>> places_;
  std::vector<int> slots_;
  std::vector<std::vector<int>> rings_;  ///< by rank: how many units its buffers of units hold
};

}  // namespace

std::string random_program(uint64_t seed) { return Generator(seed).make(); }

}  // namespace mscclc
