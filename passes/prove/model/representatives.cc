#include "passes/prove/model/representatives.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "ir/support/precondition.h"
#include "passes/prove/model/chunk_numbers.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {
namespace {

/// Sets of things that are tied together.
class Ties {
 public:
  void resize(size_t things) {
    above_.resize(things);
    std::iota(above_.begin(), above_.end(), 0u);
  }
  uint32_t set_of(uint32_t thing) {
    while (above_[thing] != thing) thing = above_[thing] = above_[above_[thing]];
    return thing;
  }
  void tie(uint32_t a, uint32_t b) {
    const uint32_t x = set_of(a), y = set_of(b);
    above_[std::max(x, y)] = std::min(x, y);
  }

 private:
  std::vector<uint32_t> above_;
};

/// Numbers things as they come up, anew for each component.
class Numbers {
 public:
  void resize(size_t things) { known_.resize(things); }
  void begin(uint32_t component) {
    component_ = component;
    count_ = 0;
  }
  bool has(uint32_t thing) const { return known_[thing].component == component_; }
  uint32_t of(uint32_t thing) {
    if (!has(thing)) known_[thing] = {component_, count_++};
    return known_[thing].number;
  }

 private:
  struct Known {
    uint32_t component = kNone, number = 0;
  };
  std::vector<Known> known_;
  uint32_t component_ = kNone, count_ = 0;
};

struct ChunksHash {
  size_t operator()(const std::vector<CallerChunk>& chunks) const {
    uint64_t hash = chunks.size();
    for (const CallerChunk& c : chunks) {
      hash = (hash ^ (uint64_t{c.rank} << 32 | c.chunk)) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

class Finder {
 public:
  Finder(const Program& program, bool in_place)
      : program_(program),
        ranks_(static_cast<uint32_t>(program.ranks.size())),
        parts_{only_part(program)},
        chunks_(program, parts_, ranks_, in_place) {}

  std::optional<Representatives> find() {
    if (!is_plain() || !number_things()) return std::nullopt;
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (const Op& op : program_.ranks[r].ops) tie_operands(r, op);
    }
    if (!collect() || components_.size() < 2) return std::nullopt;
    choose();
    return chosen();
  }

 private:
  using Description = std::vector<uint64_t>;
  using NumberedInputs = std::unordered_map<std::vector<CallerChunk>, uint64_t, ChunksHash>;

  /// A block with ops, those of `rank` from `first` up to `end`.
  struct Block {
    uint32_t rank, first, end, thing;
  };

  struct Component {
    std::vector<Block> blocks;                           ///< by rank, then by number
    std::vector<std::pair<uint32_t, uint32_t>> outputs;  ///< rank and chunk
  };

  bool is_plain() const {
    const Contract& contract = program_.contract;
    return program_.loops.empty() && program_.functions.empty() && program_.flags.empty() &&
           contract.columns == 0 && contract.kind != CollectiveKind::alltoallv;
  }

  // ---- what ops tie together ----

  bool number_things() {
    uint64_t things = chunks_.count();
    for (const Rank& rank : program_.ranks) {
      first_end_.push_back(static_cast<uint32_t>(things));
      first_semaphore_.push_back(static_cast<uint32_t>(things += rank.channels.size()));
      first_block_.push_back(static_cast<uint32_t>(things += rank.semaphores.size()));
      things += block_offsets(rank).size();
      if (std::ranges::any_of(rank.channels, [](const Channel& c) {
            return c.kind != ChannelKind::memory || c.partner == kNone;
          })) {
        return false;
      }
    }
    if (things >= kNone) return false;
    ties_.resize(things);
    numbers_.resize(things);
    sides_.resize(chunks_.count());
    return true;
  }

  uint32_t chunk(uint32_t rank, uint32_t buffer, uint32_t chunk) const {
    return static_cast<uint32_t>(chunks_.number(rank, buffer, chunk, 0));
  }
  uint32_t end(uint32_t rank, uint32_t channel) const { return first_end_[rank] + channel; }
  /// The end at which what is given through this one is counted.
  uint32_t far_end(uint32_t rank, uint32_t channel) const {
    const Channel& c = program_.ranks[rank].channels[channel];
    return end(c.peer, c.partner);
  }
  uint32_t semaphore(uint32_t rank, const Operand& o) const {
    return first_semaphore_[rank] + o.first;
  }

  void tie_operands(uint32_t rank, const Op& op) {
    const OpInfo& row = info(op.kind);
    const uint32_t block = first_block_[rank] + op.block;
    for (const Operand& o : program_.all_operands(op)) {
      if (row.moves_data()) {
        const bool scratch = o.buffer >= kFirstScratch;
        if (scratch && premise(Premise::components_share_no_chunk, false)) continue;
        const uint32_t owner = program_.owner_of(rank, o);
        for (uint32_t k = 0; k < o.count; ++k) {
          ties_.tie(block, chunk(owner, o.buffer, o.first + k));
        }
      } else if (row.has(kMeets)) {
        ties_.tie(block, first_block_[rank] + o.first);
      } else if (row.has(kReleases) || row.has(kAcquires)) {
        if (premise(Premise::components_share_no_semaphore, false)) continue;
        ties_.tie(block, semaphore(rank, o));
      } else {
        if (premise(Premise::components_share_no_channel, false)) continue;
        ties_.tie(block, row.has(kWaits) ? end(rank, o.channel) : far_end(rank, o.channel));
      }
    }
  }

  // ---- components ----

  /// False if an output that is promised belongs to none.
  bool collect() {
    std::map<uint32_t, uint32_t> of_set;
    for (uint32_t r = 0; r < ranks_; ++r) {
      const std::vector<uint32_t> offsets = block_offsets(program_.ranks[r]);
      for (uint32_t b = 0; b + 1 < offsets.size(); ++b) {
        if (offsets[b] == offsets[b + 1]) continue;
        const uint32_t thing = first_block_[r] + b;
        const uint32_t next = static_cast<uint32_t>(components_.size());
        const auto [entry, fresh] = of_set.try_emplace(ties_.set_of(thing), next);
        if (fresh) components_.emplace_back();
        components_[entry->second].blocks.push_back({r, offsets[b], offsets[b + 1], thing});
      }
    }
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (uint32_t c = 0; c < program_.ranks[r].buffers[kOutput].chunks; ++c) {
        const auto entry = of_set.find(ties_.set_of(chunk(r, kOutput, c)));
        if (entry != of_set.end()) {
          components_[entry->second].outputs.emplace_back(r, c);
        } else if (!premise(Premise::components_have_all_outputs,
                            !program_.contract.promise(r, c, promise_))) {
          return false;
        }
      }
    }
    return true;
  }

  /// One of each kind.
  void choose() {
    std::set<Description> kinds;
    Description description;  // the next one needs as much memory
    for (uint32_t i = 0; i < components_.size(); ++i) {
      numbers_.begin(i);
      classes_.clear();
      inputs_.clear();
      last_inputs_ = nullptr;
      description.clear();
      describe(components_[i], description);
      if (kinds.insert(description).second) chosen_.push_back(i);
    }
  }

  void describe(const Component& component, Description& out) {
    for (const Block& block : component.blocks) {
      out.insert(out.end(), {kNone, block.rank, numbers_.of(block.thing)});
      for (uint32_t i = block.first; i < block.end; ++i) {
        describe(block.rank, program_.ranks[block.rank].ops[i], out);
      }
    }
    if (!premise(Premise::components_promise_alike, false)) describe_outputs(component, out);
  }

  void describe(uint32_t rank, const Op& op, Description& out) {
    const bool all = !premise(Premise::images_of_components, false);
    const OpInfo& row = info(op.kind);
    out.push_back(uint64_t(op.kind) << 48 | uint64_t{op.dsts} << 16 | op.srcs);
    if (all) {
      out.push_back(uint64_t(op.reduce) << 56 | uint64_t(op.summation) << 48 |
                    uint64_t{op.relaxed} << 41 | uint64_t{op.complete} << 40 |
                    uint64_t{op.part} << 16 | op.parts);
    }
    for (const Operand& o : program_.all_operands(op)) {
      if (row.moves_data()) {
        const uint32_t owner = program_.owner_of(rank, o);
        out.push_back(uint64_t{owner} << 32 | o.count);
        out.push_back(o.buffer);
        for (uint32_t k = 0; k < o.count; ++k) describe(owner, o.buffer, o.first + k, out);
      } else if (row.has(kMeets)) {
        out.push_back(numbers_.of(first_block_[rank] + o.first));
      } else if (row.has(kReleases) || row.has(kAcquires)) {
        out.push_back(numbers_.of(semaphore(rank, o)));
        out.push_back(program_.ranks[rank].semaphores[o.first].initial);
      } else {
        const uint32_t peer = program_.ranks[rank].channels[o.channel].peer;
        out.push_back(
            numbers_.of(row.has(kWaits) ? end(rank, o.channel) : far_end(rank, o.channel)));
        out.push_back(peer);
      }
    }
  }

  /// A chunk and, where it is first met as the caller's, its class.
  void describe(uint32_t rank, uint32_t buffer, uint32_t c, Description& out) {
    const uint32_t thing = chunk(rank, buffer, c);
    out.push_back(numbers_.of(thing));
    if (buffer >= kFirstScratch || (sides_[thing] & 1u << buffer) != 0) return;
    sides_[thing] |= static_cast<uint8_t>(1u << buffer);
    if (premise(Premise::components_have_like_lengths, false)) return;
    const Side side = buffer == kInput ? Side::input : Side::output;
    out.push_back(numbered_class(program_.contract.size_class(side, rank, c)));
  }

  /// The first class is the longest; all others are alike.
  uint64_t numbered_class(uint64_t size_class) {
    if (size_class == 0 && !premise(Premise::the_longest_class_has_no_image, false)) return 0;
    return classes_.try_emplace(size_class, classes_.size() + 1).first->second;
  }

  /// In the order in which ops met them, or else in their own.
  void describe_outputs(const Component& component, Description& out) {
    std::vector<std::array<uint32_t, 3>> outputs;
    for (const auto& [r, c] : component.outputs) {
      outputs.push_back({numbers_.of(chunk(r, kOutput, c)), r, c});
    }
    std::ranges::sort(outputs);
    for (const auto& [number, r, c] : outputs) {
      describe(r, kOutput, c, out);
      const bool made = program_.contract.promise(r, c, promise_);
      out.push_back(uint64_t{made} << 33 | uint64_t{made && promise_.reduced} << 32 |
                    (made ? promise_.inputs.size() : 0));
      if (made) describe_inputs(out);
    }
  }

  /// Those of the promise at hand; of many outputs they are the same.
  void describe_inputs(Description& out) {
    const bool again = last_inputs_ != nullptr && last_inputs_->first == promise_.inputs;
    const auto [known, fresh] = again ? std::pair(last_inputs_, false) : number_inputs();
    last_inputs_ = known;
    out.push_back(known->second);
    if (!fresh) return;
    for (const CallerChunk& p : promise_.inputs) {
      out.push_back(p.rank);
      describe(p.rank, kInput, p.chunk, out);
    }
  }

  std::pair<const NumberedInputs::value_type*, bool> number_inputs() {
    const auto [known, fresh] = inputs_.try_emplace(promise_.inputs, inputs_.size());
    return {&*known, fresh};
  }

  // ---- what stands for all ----

  std::optional<Representatives> chosen() const {
    uint64_t all = 0, some = 0;
    for (const Rank& rank : program_.ranks) all += rank.ops.size();
    for (const uint32_t i : chosen_) {
      for (const Block& block : components_[i].blocks) some += block.end - block.first;
    }
    if (some > all / 2) return std::nullopt;
    Representatives result{without_ops(), {}};
    for (const Rank& rank : program_.ranks) {
      result.outputs.emplace_back(rank.buffers[kOutput].chunks);
    }
    for (const uint32_t i : chosen_) {
      for (const Block& block : components_[i].blocks) add_ops(block, result.program);
      for (const auto& [r, c] : components_[i].outputs) result.outputs[r][c] = true;
    }
    for (uint32_t r = 0; r < ranks_; ++r) {
      std::vector<Op>& ops = result.program.ranks[r].ops;
      if (ops.empty() != program_.ranks[r].ops.empty()) return std::nullopt;
      std::ranges::stable_sort(ops, {}, &Op::block);
    }
    return result;
  }

  /// What a run needs of the plan: not its names and places in the text, as nothing that is wrong
  /// with some blocks is reported.
  Program without_ops() const {
    Program plan;
    plan.contract = program_.contract;
    plan.launch = program_.launch;
    plan.split = program_.split;
    plan.foreign = program_.foreign;
    for (const Rank& rank : program_.ranks) {
      plan.ranks.push_back({.buffers = rank.buffers,
                            .channels = rank.channels,
                            .semaphores = rank.semaphores,
                            .ops = {},
                            .blocks = rank.blocks,
                            .removed = {}});
    }
    return plan;
  }

  void add_ops(const Block& block, Program& plan) const {
    for (uint32_t i = block.first; i < block.end; ++i) {
      Op op = program_.ranks[block.rank].ops[i];
      plan.set_operands(op, program_.dsts(op), program_.srcs(op));
      op.locations = {};
      plan.ranks[block.rank].ops.push_back(op);
    }
  }

  const Program& program_;
  const uint32_t ranks_;
  const std::vector<Part> parts_;
  const ChunkNumbers chunks_;
  /// Things: all chunks, then by rank its channel ends, its semaphores, its blocks.
  std::vector<uint32_t> first_end_, first_semaphore_, first_block_;
  Ties ties_;
  std::vector<Component> components_;
  std::vector<uint32_t> chosen_;
  // Of the component that is described:
  Numbers numbers_;
  std::map<uint64_t, uint64_t> classes_;
  NumberedInputs inputs_;  ///< promised ones
  /// Of the output before: one chunk of many ranks often comes in a row, and hashing is slow.
  const NumberedInputs::value_type* last_inputs_ = nullptr;
  std::vector<uint8_t> sides_;  ///< by chunk: as whose its class is known, a bit for each buffer
  Promise promise_;
};

}  // namespace

std::optional<Representatives> Representatives::find(const Program& program, bool in_place) {
  precondition(program.split);
  return Finder(program, in_place).find();
}

}  // namespace mscclc::proof
