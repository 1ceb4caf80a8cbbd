#include "tests/random_programs/families/edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace mscclc::random_programs {
namespace {

/// One op of a sketch.
struct OpIndex {
  uint32_t rank, block;
  size_t stretch, op;
};

class Edge {
 public:
  Edge(Sketch& sketch, Dice& dice) : sketch_(sketch), dice_(dice) {
    for (uint32_t r = 0; r < sketch.ranks.size(); ++r) {
      for (uint32_t b = 0; b < sketch.ranks[r].blocks.size(); ++b) {
        const std::vector<Stretch>& block = sketch.ranks[r].blocks[b];
        for (size_t s = 0; s < block.size(); ++s) {
          for (size_t i = 0; i < block[s].ops.size(); ++i) places_.push_back({r, b, s, i});
        }
      }
    }
  }

  void cross() {
    if (places_.empty()) return;
    const uint32_t kind = dice_.below(22);
    const OpIndex at = places_[dice_.below(static_cast<uint32_t>(places_.size()))];
    if (kind < 3) return change_credit();
    if (kind < 6) return change_numbers(at.rank);
    if (kind == 6) return change_loops(at);
    const bool everywhere = one_in(dice_, 3);
    const uint32_t draw = dice_.below(1000);
    for (uint32_t r = 0; r < sketch_.ranks.size(); ++r) {
      if (everywhere || r == at.rank) change_op(kind, {r, at.block, at.stretch, at.op}, draw);
    }
  }

 private:
  void note(const std::string& what) { sketch_.edges.push_back(what); }

  std::vector<std::string>* ops_at(const OpIndex& at) {
    auto& blocks = sketch_.ranks[at.rank].blocks;
    if (at.block >= blocks.size() || at.stretch >= blocks[at.block].size()) return nullptr;
    std::vector<std::string>& ops = blocks[at.block][at.stretch].ops;
    return at.op < ops.size() ? &ops : nullptr;
  }

  /// Where ops outside pipelines are `text`.
  std::vector<OpIndex> straight(std::string_view text) const {
    std::vector<OpIndex> found;
    for (const OpIndex& p : places_) {
      const Stretch& s = sketch_.ranks[p.rank].blocks[p.block][p.stretch];
      if (s.unit == 0 && s.ops[p.op].starts_with(text)) found.push_back(p);
    }
    return found;
  }

  /// A signal and its wait outside pipelines more, or less: counts still balance.
  void change_credit() {
    const std::vector<OpIndex> signals = straight("signal ");
    if (signals.empty())
      return change_numbers(dice_.below(static_cast<uint32_t>(sketch_.ranks.size())));
    const OpIndex given = signals[dice_.below(static_cast<uint32_t>(signals.size()))];
    std::string channel = (*ops_at(given))[given.op].substr(7);
    channel = channel.substr(0, channel.find(' '));
    std::vector<OpIndex> taken = straight("wait " + channel);
    std::erase_if(taken, [&](const OpIndex& p) { return p.rank == given.rank; });
    if (taken.empty()) return;
    const OpIndex wait = taken[dice_.below(static_cast<uint32_t>(taken.size()))];
    const bool more = one_in(dice_, 2);
    for (const OpIndex& p : {given, wait}) {
      std::vector<std::string>& ops = *ops_at(p);
      const auto here = ops.begin() + static_cast<ptrdiff_t>(p.op);
      more ? static_cast<void>(ops.insert(here, std::string(*here)))
           : static_cast<void>(ops.erase(here));
    }
    note(fmt::format("a credit {} on {}", more ? "more" : "less", channel));
  }

  /// Of units, copies, or what a semaphore begins with.
  void change_numbers(uint32_t r) {
    RankSketch& rank = sketch_.ranks[r];
    const auto sizes = static_cast<uint32_t>(rank.buffers.size());
    const auto semaphores = static_cast<uint32_t>(rank.semaphores.size());
    if (sizes + semaphores == 0) return;
    const uint32_t i = dice_.below(sizes + semaphores);
    const bool more = one_in(dice_, 2);
    const auto change = [&](uint32_t& number, uint32_t least, const std::string& what) {
      if (!more && number <= least) return;
      more ? ++number : --number;
      note(fmt::format("{} of rank {}: {}", what, r, number));
    };
    if (i >= sizes) {
      SemaphoreSketch& s = rank.semaphores[i - sizes];
      return change(s.initial, 0, "semaphore " + s.name);
    }
    BufferSketch& b = rank.buffers[i];
    if (b.units != 0) return change(b.units, 2, "units of " + b.name);
    if (!b.packets.empty() && one_in(dice_, 3)) {
      b.packets = b.packets == "LL16" ? "LL128" : "LL16";
      return note(fmt::format("format of {} of rank {}", b.name, r));
    }
    change(b.copies, 1, "copies of " + b.name);
  }

  /// Another unit, or two stretches that change places.
  void change_loops(const OpIndex& at) {
    std::vector<Stretch>& block = sketch_.ranks[at.rank].blocks[at.block];
    if (block.size() > 1 && one_in(dice_, 2)) {
      const size_t i = dice_.below(static_cast<uint32_t>(block.size() - 1));
      const size_t j = i + 1 + dice_.below(static_cast<uint32_t>(block.size() - 1 - i));
      std::swap(block[i], block[j]);
      return note(fmt::format("stretches {} and {} of rank {} tb {}", i, j, at.rank, at.block));
    }
    Stretch& s = block[at.stretch];
    if (s.unit == 0) return;
    s.unit = s.unit == 16 || one_in(dice_, 2) ? s.unit + 16 : s.unit - 16;
    note(fmt::format("a pipeline of rank {} has units of {}", at.rank, s.unit));
  }

  void change_op(uint32_t kind, const OpIndex& at, uint32_t draw) {
    std::vector<std::string>* ops = ops_at(at);
    if (ops == nullptr) return;
    const auto here = ops->begin() + static_cast<ptrdiff_t>(at.op);
    const std::string op = *here;
    const std::string where = fmt::format("'{}' of rank {} tb {}", op, at.rank, at.block);
    switch (kind) {
      case 7:
      case 8:
        ops->erase(here);
        return note("without " + where);
      case 9:
        ops->insert(here, op);
        return note("twice " + where);
      case 10:
      case 11:
      case 12:
        return swap(*ops, at.op, 1 + draw % 3, where);
      case 13:
        return move_out(at, draw, where);
      case 14:
        return relax(*here, where);
      case 15:
      case 16:
        return late(at, where);
      case 17:
        return change_part(*here, draw, where);
      case 18:
        return move_block(at, where);
      case 19:
      case 20:
        return copy_onto_itself(*ops, at.op, draw, where);
      default:
        std::erase(*ops, "sync");
        return note("no sync around " + where);
    }
  }

  void swap(std::vector<std::string>& ops, size_t i, size_t by, const std::string& where) {
    if (i + by >= ops.size()) return;
    std::swap(ops[i], ops[i + by]);
    note(fmt::format("{} and the op {} on change places", where, by));
  }

  /// From a pipeline to its front or back, or from straight code into the pipeline.
  void move_out(const OpIndex& at, uint32_t draw, const std::string& where) {
    std::vector<Stretch>& block = sketch_.ranks[at.rank].blocks[at.block];
    const size_t to = draw % 2 == 0 ? at.stretch + 1 : at.stretch - 1;
    if (to >= block.size()) return;
    const std::string op = block[at.stretch].ops[at.op];
    block[at.stretch].ops.erase(block[at.stretch].ops.begin() + static_cast<ptrdiff_t>(at.op));
    std::vector<std::string>& there = block[to].ops;
    there.insert(to > at.stretch ? there.begin() : there.end(), op);
    note("moved out: " + where);
  }

  void relax(std::string& op, const std::string& where) {
    if (!op.starts_with("signal ") && !op.starts_with("wait ")) return;
    if (op.ends_with(" relaxed")) {
      op.resize(op.size() - 8);
    } else {
      op += " relaxed";
    }
    note("relaxed, or not: " + where);
  }

  /// The pipeline's first op is done once before it, and then last in each round.
  void late(const OpIndex& at, const std::string& where) {
    std::vector<Stretch>& block = sketch_.ranks[at.rank].blocks[at.block];
    Stretch& s = block[at.stretch];
    if (s.unit == 0 || s.ops.empty()) return;
    const std::string first = s.ops.front();
    std::ranges::rotate(s.ops, s.ops.begin() + 1);
    if (first.find("<-") == std::string::npos) {
      block.insert(block.begin() + static_cast<ptrdiff_t>(at.stretch), Stretch{.ops = {first}});
    }
    note("a round late, from " + where);
  }

  void change_part(std::string& op, uint32_t draw, const std::string& where) {
    if (op.find("<-") == std::string::npos) return;
    const size_t option = op.find(" part:");
    if (option != std::string::npos) {
      op = op.substr(0, option) +
           (draw % 3 == 0 ? "" : fmt::format(" part: [{}, {}]", draw % 2, 2 + draw % 2));
    } else {
      op += fmt::format(" part: [{}, 2]", draw % 2);
    }
    note("another part: " + where);
  }

  /// What an op names here is copied onto itself beside it, which does nothing.
  void copy_onto_itself(std::vector<std::string>& ops, size_t i, uint32_t draw,
                        const std::string& where) {
    const std::string op = ops[i];
    std::vector<std::string> names;
    for (size_t at = op.find(' '); at != std::string::npos; at = op.find(' ', at + 1)) {
      const std::string name = op.substr(at + 1, op.find_first_of(", ", at + 1) - at - 1);
      if (name.ends_with("]") && name.find('.') == std::string::npos && name[0] != '[')
        names.push_back(name);
    }
    if (names.empty() || op.find("packets") < op.find(' ')) return;
    const std::string& name = names[draw % names.size()];
    const size_t to = i + draw / 2 % 2;
    ops.insert(ops.begin() + static_cast<ptrdiff_t>(to), fmt::format("copy {0} <- {0}", name));
    note(fmt::format("{} is copied onto itself beside {}", name, where));
  }

  void move_block(const OpIndex& at, const std::string& where) {
    auto& blocks = sketch_.ranks[at.rank].blocks;
    if (blocks.size() < 2) return;
    std::vector<Stretch>& to = blocks[1 - at.block % 2];
    Stretch& from = blocks[at.block][at.stretch];
    const auto same = std::ranges::find_if(
        to, [&](const Stretch& s) { return s.unit == from.unit && s.loop == from.loop; });
    if (&to == &blocks[at.block] || same == to.end()) return;
    same->ops.push_back(from.ops[at.op]);
    from.ops.erase(from.ops.begin() + static_cast<ptrdiff_t>(at.op));
    note("in the other block: " + where);
  }

  Sketch& sketch_;
  Dice& dice_;
  std::vector<OpIndex> places_;
};

}  // namespace

void cross_edge(Sketch& sketch, Dice& dice) { Edge(sketch, dice).cross(); }

}  // namespace mscclc::random_programs
