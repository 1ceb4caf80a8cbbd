#include "passes/prove/model/symmetry.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/support/precondition.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/model/values.h"

namespace mscclc::proof {

uint64_t Symmetry::size_class(uint64_t size_class, uint32_t turns) const {
  if (turns == 0) return size_class;
  const InOrbit& at = classes_.at(size_class);
  const std::vector<uint64_t>& orbit = orbits_[at.orbit];
  return orbit[(at.position + turns) % orbit.size()];
}

bool Symmetry::keeps(uint64_t size_class) const {
  const auto at = classes_.find(size_class);
  return at == classes_.end() || orbits_[at->second.orbit].size() == 1;
}

/// Looks for the renumbering with one step.
class SymmetryFinder {
 public:
  SymmetryFinder(const Program& program, uint32_t step)
      : program_(program),
        ranks_(static_cast<uint32_t>(program.ranks.size())),
        step_(step),
        rotations_(program.ranks[0].buffers.size()) {}

  std::optional<Symmetry> find() {
    for (uint32_t r = 0; r < ranks_; ++r) {
      if (!same_rank(r, next(r))) return std::nullopt;
    }
    Symmetry result(program_);
    result.step_ = step_;
    result.turns_ = ranks_ / step_;
    for (const auto& rotation : rotations_) {
      result.rotations_.push_back(rotation.value_or(Symmetry::Rotation{}));
    }
    if (!same_aliases(result) || !premise(Premise::images_of_promises, same_promises(result)) ||
        !turn_classes(result)) {
      return std::nullopt;
    }
    return result;
  }

 private:
  uint32_t next(uint32_t rank) const { return (rank + step_) % ranks_; }

  bool same_rank(uint32_t from, uint32_t to) {
    const Rank &a = program_.ranks[from], &b = program_.ranks[to];
    const auto same_buffer = [](const Buffer& x, const Buffer& y) {
      return x.packets == y.packets && x.copies == y.copies && x.units == y.units &&
             x.form == y.form && x.unit == y.unit && x.chunks == y.chunks;
    };
    const auto same_channel = [&](const Channel& x, const Channel& y) {
      return x.kind == y.kind && x.kind != ChannelKind::switch_ && x.partner == y.partner &&
             x.credits == y.credits && x.peer != kNone && y.peer == next(x.peer);
    };
    const auto same_semaphore = [](const Semaphore& x, const Semaphore& y) {
      return x.initial == y.initial;
    };
    return a.blocks == b.blocks &&
           premise(Premise::images_of_buffers,
                   std::ranges::equal(a.buffers, b.buffers, same_buffer)) &&
           premise(Premise::images_of_channels,
                   std::ranges::equal(a.channels, b.channels, same_channel)) &&
           premise(Premise::images_of_semaphores,
                   std::ranges::equal(a.semaphores, b.semaphores, same_semaphore)) &&
           same_ops(from, a, b);
  }

  bool same_ops(uint32_t rank, const Rank& a, const Rank& b) {
    if (a.ops.size() != b.ops.size()) return false;
    for (size_t i = 0; i < a.ops.size(); ++i) {
      if (!same_op(rank, a.ops[i], b.ops[i])) return false;
      // Pipelines have numbers of their own, and end where the number changes.
      const bool same_loop = i > 0 && a.ops[i].loop == a.ops[i - 1].loop;
      if (i > 0 && same_loop != (b.ops[i].loop == b.ops[i - 1].loop)) return false;
    }
    return true;
  }

  bool same_loop(uint32_t a, uint32_t b) const {
    if (a == b) return true;
    if (a == kNone || b == kNone) return false;
    const Loop &x = program_.loops[a], &y = program_.loops[b];
    return x.unit == y.unit && x.chunks == y.chunks;
  }

  bool same_op(uint32_t rank, const Op& a, const Op& b) {
    if (a.kind != b.kind || a.dsts != b.dsts || a.srcs != b.srcs) return false;
    if (premise(Premise::images_of_ops, false)) return true;
    if (a.reduce != b.reduce || a.relaxed != b.relaxed || a.summation != b.summation ||
        a.complete != b.complete || a.part != b.part || a.parts != b.parts || a.dsts != b.dsts ||
        a.srcs != b.srcs || a.block != b.block || !same_loop(a.loop, b.loop)) {
      return false;
    }
    const bool moves = info(a.kind).moves_data();
    for (uint32_t i = 0; i < uint32_t{a.dsts} + a.srcs; ++i) {
      const Operand &x = program_.operands[a.operands + i], &y = program_.operands[b.operands + i];
      if (x.channel != y.channel || x.buffer != y.buffer || x.count != y.count) return false;
      if (moves ? !premise(Premise::images_of_chunks, same_chunks(rank, x, y)) : x.first != y.first)
        return false;
    }
    return true;
  }

  /// The first chunks of a buffer that are compared show how it turns.
  bool same_chunks(uint32_t rank, const Operand& a, const Operand& b) {
    std::optional<Symmetry::Rotation>& rotation = rotations_[a.buffer];
    const uint32_t chunks = program_.buffer_of(rank, a).chunks;
    if (!rotation) rotation = guess(chunks, a.first, b.first);
    if (!rotation) return false;
    const uint32_t within = a.first % rotation->modulus;
    if (a.first - within + (within + rotation->distance) % rotation->modulus != b.first) {
      return false;
    }
    // All chunks of the operand turn by as much as its first.
    const uint32_t moved = (within + rotation->distance) % rotation->modulus;
    return rotation->modulus == 1 || a.count <= rotation->modulus - std::max(within, moved);
  }

  std::optional<Symmetry::Rotation> guess(uint32_t chunks, uint32_t from, uint32_t to) const {
    if (from == to) return Symmetry::Rotation{};
    if (chunks % ranks_ != 0) return std::nullopt;
    const uint32_t each = chunks / ranks_;
    for (const Symmetry::Rotation r :
         {Symmetry::Rotation{chunks, step_ * each}, Symmetry::Rotation{ranks_, step_}}) {
      const uint32_t within = from % r.modulus;
      if (from - within + (within + r.distance) % r.modulus == to) return r;
    }
    return std::nullopt;
  }

  /// In place, chunks that coincide still do when they have turned.
  bool same_aliases(const Symmetry& s) const {
    const Contract& contract = program_.contract;
    if (contract.in_place == InPlace::no || !contract.can_alias()) return true;
    for (uint32_t r = 0; r < ranks_; ++r) {
      const auto a = contract.alias(r), b = contract.alias(next(r));
      if (a.has_value() != b.has_value()) return false;
      if (!a) continue;
      const std::vector<Buffer>& buffers = program_.ranks[r].buffers;
      for (uint32_t c = 0; c < buffers[kInput].chunks; ++c) {
        const int64_t in_output = int64_t{c} + a->output_chunk - a->input_chunk;
        if (in_output < 0 || in_output >= buffers[kOutput].chunks) continue;
        const int64_t turned = int64_t{s.chunk(kInput, c, 1)} + b->output_chunk - b->input_chunk;
        if (turned != s.chunk(kOutput, static_cast<uint32_t>(in_output), 1)) return false;
      }
    }
    return true;
  }

  /// What is promised turns into what is promised. Random numbers distinguish contributions.
  bool same_promises(const Symmetry& s) const {
    const Symbols symbols;
    const uint32_t looked_at = program_.contract.uniform() ? 1 : ranks_;
    Promise a, b;
    for (uint32_t r = 0; r < looked_at; ++r) {
      for (uint32_t c = 0; c < program_.ranks[r].buffers[kOutput].chunks; ++c) {
        const bool made = program_.contract.promise(r, c, a);
        if (made != program_.contract.promise(next(r), s.chunk(kOutput, c, 1), b)) return false;
        if (!made) continue;
        if (a.reduced != b.reduced || a.inputs.size() != b.inputs.size()) return false;
        Symbol turned, wanted;
        for (const CallerChunk& p : a.inputs) {
          const uint32_t chunk = s.chunk(kInput, p.chunk, 1);
          turned = symbols.add(turned, symbols.contribution(next(p.rank), chunk, 0));
        }
        for (const CallerChunk& p : b.inputs) {
          wanted = symbols.add(wanted, symbols.contribution(p.rank, p.chunk, 0));
        }
        if (!turned.same_contributions(wanted)) return false;
      }
    }
    return true;
  }

  /// Chunks are equally long if and only if the chunks are that they turn into.
  bool turn_classes(Symmetry& s) const {
    std::unordered_map<uint64_t, uint64_t> to, from;
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (const Side side : {Side::input, Side::output}) {
        const uint32_t buffer = side == Side::input ? kInput : kOutput;
        for (uint32_t c = 0; c < program_.ranks[r].buffers[buffer].chunks; ++c) {
          const uint64_t a = program_.contract.size_class(side, r, c);
          const uint64_t b = program_.contract.size_class(side, next(r), s.chunk(buffer, c, 1));
          if (to.try_emplace(a, b).first->second != b) return false;
          if (from.try_emplace(b, a).first->second != a) return false;
        }
      }
    }
    for (const auto& [first, second] : to) {
      if (s.classes_.contains(first)) continue;
      std::vector<uint64_t>& orbit = s.orbits_.emplace_back();
      for (uint64_t c = first; orbit.empty() || c != first; c = to.at(c)) {
        s.classes_[c] = {static_cast<uint32_t>(s.orbits_.size() - 1),
                         static_cast<uint32_t>(orbit.size())};
        orbit.push_back(c);
      }
    }
    return true;
  }

  const Program& program_;
  const uint32_t ranks_, step_;
  std::vector<std::optional<Symmetry::Rotation>> rotations_;  ///< by buffer, once known
};

Symmetry Symmetry::find(const Program& program) {
  precondition(program.split);
  const uint32_t ranks = static_cast<uint32_t>(program.ranks.size());
  if (program.contract.kind == CollectiveKind::alltoallv) return Symmetry(program);
  if (!program.functions.empty() || !program.flags.empty()) return Symmetry(program);
  for (uint32_t step = 1; step < ranks; ++step) {
    if (ranks % step != 0) continue;
    if (auto found = SymmetryFinder(program, step).find()) return *std::move(found);
  }
  return Symmetry(program);
}

}  // namespace mscclc::proof
