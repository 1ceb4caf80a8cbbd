#include "passes/prove/model/joint.h"

#include <algorithm>
#include <numeric>

#include "ir/support/precondition.h"

namespace mscclc::proof {
namespace {

class Joiner {
 public:
  explicit Joiner(std::span<const SharedPlan> plans) : plans_(plans) {}

  Joint join() {
    uint32_t ranks = 0;
    for (const SharedPlan& plan : plans_) {
      for (const uint32_t r : plan.ranks) ranks = std::max(ranks, r + 1);
    }
    to_.program.split = true;
    to_.program.contract.ranks = ranks;
    to_.program.ranks.resize(ranks);
    for (Rank& rank : to_.program.ranks) rank.buffers.resize(2 * plans_.size());
    for (const SharedPlan& plan : plans_) declare(plan);
    for (size_t i = 0; i < plans_.size(); ++i) fill(to_.parts[i]);
    return std::move(to_);
  }

 private:
  /// Says where everything of a plan goes, and puts there what ops refer to.
  void declare(const SharedPlan& plan) {
    Part part{.program = plan.program, .name = plan.name, .world = plan.ranks};
    part.input = static_cast<uint32_t>(2 * to_.parts.size());
    const size_t ranks = to_.program.ranks.size();
    part.local.assign(ranks, kNone);
    part.first_scratch.resize(ranks);
    part.first_block.resize(ranks);
    part.first_op.resize(ranks);
    first_channel_.emplace_back(ranks);
    first_semaphore_.emplace_back(ranks);
    for (uint32_t r = 0; r < ranks; ++r) {
      const Rank& rank = to_.program.ranks[r];
      part.first_scratch[r] = static_cast<uint32_t>(rank.buffers.size());
      part.first_block[r] = rank.blocks;
      first_channel_.back()[r] = static_cast<uint32_t>(rank.channels.size());
      first_semaphore_.back()[r] = static_cast<uint32_t>(rank.semaphores.size());
    }
    for (uint32_t l = 0; l < plan.ranks.size(); ++l) {
      part.local[plan.ranks[l]] = l;
      add_declarations(part, plan.program->ranks[l], to_.program.ranks[plan.ranks[l]]);
    }
    to_.parts.push_back(std::move(part));
  }

  void add_declarations(const Part& part, const Rank& from, Rank& to) {
    for (uint32_t b = 0; b < from.buffers.size(); ++b) {
      Buffer buffer = from.buffers[b];
      // Found by name at the members of a switch: no two parts may share one.
      buffer.name = to_.program.intern(std::to_string(part.input) + "/" +
                                       std::string(part.program->name_of(buffer.name)));
      if (b < kFirstScratch) {
        to.buffers[part.input + b] = buffer;
      } else {
        to.buffers.push_back(buffer);
      }
    }
    for (Channel channel : from.channels) {
      channel.group = group(part, channel);
      channel.label = label(*part.program, channel.label);
      to.channels.push_back(channel);
    }
    for (Semaphore semaphore : from.semaphores) {
      semaphore.label = label(*part.program, semaphore.label);
      to.semaphores.push_back(semaphore);
    }
    to.blocks += from.blocks;
  }

  /// The members of a switch as world ranks.
  Slice group(const Part& part, const Channel& channel) {
    std::vector<int64_t> ranks;
    for (const int64_t r : part.program->values(channel.group)) {
      ranks.push_back(part.world[static_cast<size_t>(r)]);
    }
    return to_.program.append(ranks);
  }
  Label label(const Program& from, const Label& label) {
    return {to_.program.intern(from.name_of(label.name)),
            to_.program.append(from.values(label.keys))};
  }

  /// Connects the channels of a plan, and copies its ops.
  void fill(Part& part) {
    const uint32_t i = part.input / 2;
    const auto loops = static_cast<uint32_t>(to_.program.loops.size());
    to_.program.loops.insert(to_.program.loops.end(), part.program->loops.begin(),
                             part.program->loops.end());
    for (uint32_t l = 0; l < part.world.size(); ++l) {
      const uint32_t r = part.world[l];
      Rank& to = to_.program.ranks[r];
      const Rank& from = part.program->ranks[l];
      for (uint32_t c = 0; c < from.channels.size(); ++c) {
        Channel& channel = to.channels[first_channel_[i][r] + c];
        if (channel.peer == kNone) continue;
        channel.peer = part.world[channel.peer];
        if (channel.partner != kNone) channel.partner += first_channel_[i][channel.peer];
      }
      part.first_op[r] = static_cast<uint32_t>(to.ops.size());
      for (const Op& op : from.ops) add_op(part, l, op, loops);
    }
  }

  void add_op(const Part& part, uint32_t l, const Op& from, uint32_t loops) {
    const uint32_t r = part.world[l];
    Op op = from;
    op.locations = {};
    op.block += part.first_block[r];
    if (op.loop != kNone) op.loop += loops;
    dsts_.clear();
    srcs_.clear();
    for (const Operand& o : part.program->dsts(from)) dsts_.push_back(operand(part, l, from, o));
    for (const Operand& o : part.program->srcs(from)) srcs_.push_back(operand(part, l, from, o));
    to_.program.set_operands(op, dsts_, srcs_);
    to_.program.ranks[r].ops.push_back(op);
  }

  Operand operand(const Part& part, uint32_t l, const Op& op, Operand o) const {
    const uint32_t i = part.input / 2, r = part.world[l];
    const OpInfo& row = info(op.kind);
    if (row.has(kMeets)) o.first += part.first_block[r];
    if (row.has(kAcquires) || row.has(kReleases)) o.first += first_semaphore_[i][r];
    if (o.buffer != kNone) {
      const Channel* channel =
          o.channel == kNone ? nullptr : &part.program->ranks[l].channels[o.channel];
      const bool far = channel != nullptr && channel->kind != ChannelKind::switch_;
      const uint32_t owner = far ? part.world[channel->peer] : r;
      o.buffer = o.buffer < kFirstScratch ? part.input + o.buffer
                                          : part.first_scratch[owner] + o.buffer - kFirstScratch;
    }
    if (o.channel != kNone) o.channel += first_channel_[i][r];
    return o;
  }

  std::span<const SharedPlan> plans_;
  Joint to_;
  /// By part and world rank.
  std::vector<std::vector<uint32_t>> first_channel_, first_semaphore_;
  std::vector<Operand> dsts_, srcs_;
};

}  // namespace

Part only_part(const Program& program) {
  const size_t ranks = program.ranks.size();
  Part part{.program = &program, .world = std::vector<uint32_t>(ranks)};
  std::iota(part.world.begin(), part.world.end(), 0u);
  part.local = part.world;
  part.first_scratch.assign(ranks, kFirstScratch);
  part.first_block.assign(ranks, 0);
  part.first_op.assign(ranks, 0);
  return part;
}

Joint join(std::span<const SharedPlan> plans) {
  precondition([&] {
    return std::ranges::all_of(plans, [](const SharedPlan& plan) {
      return plan.program->split && plan.ranks.size() == plan.program->ranks.size();
    });
  });
  return Joiner(plans).join();
}

}  // namespace mscclc::proof
