#include "plans/format/write/target_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ir/support/precondition.h"
#include "plans/format/plan_json.h"
#include "plans/format/wire/message_bounds.h"

namespace mscclc {
namespace {

bool beyond(uint64_t count, uint64_t limit) { return limit != 0 && count > limit; }

bool has_semaphores(const Op& op) {
  return info(op.kind).has(kReleases) || info(op.kind).has(kAcquires);
}

struct PlacedOp {
  uint32_t rank = 0;
  const Op* op = nullptr;
};

/// The op that reaches farthest into a buffer, counted as largest_offset() does; none if no op
/// moves data.
PlacedOp farthest_op(const Program& program, const WireLayout& layout) {
  const uint64_t copies = (layout.packets ? 2 : 1) * (layout.double_scratch ? 2 : 1);
  PlacedOp found;
  uint64_t most = 0;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (const Op& op : program.ranks[r].ops) {
      if (!info(op.kind).moves_data()) continue;
      for (const Operand& o : program.all_operands(op)) {
        const bool peer =
            o.channel != kNone && program.ranks[r].channels[o.channel].kind != ChannelKind::switch_;
        const WireBuffer& buffer = layout.buffer(peer ? program.owner_of(r, o) : r, o.buffer);
        uint64_t end = uint64_t{buffer.offset} + o.first + o.count;
        if (buffer.type == WireType::scratch) end *= copies;
        if (end <= most) continue;
        most = end;
        found = {r, &op};
      }
    }
  }
  return found;
}

}  // namespace

// Row functions are run by compiled kernels alone, of which several blocks may share a
// multiprocessor: each call asks the device whether all of them are resident.
void check_blocks(const Program& program, const Target& target, ProgramReport& report) {
  if (!program.functions.empty()) return;
  const auto rank = std::ranges::find_if(
      program.ranks, [&](const Rank& r) { return beyond(r.blocks, target.max_blocks); });
  if (rank == program.ranks.end()) return;
  const auto number = static_cast<uint32_t>(rank - program.ranks.begin());
  const std::string message =
      fmt::format("rank {} has {} thread blocks; target '{}' runs at most {} at once", number,
                  rank->blocks, target.name, target.max_blocks);
  const auto op = std::ranges::find_if(
      rank->ops, [&](const Op& o) { return o.block != kNone && o.block >= target.max_blocks; });
  if (op == rank->ops.end()) {
    report.error("target-blocks", message);
  } else {
    report.error("target-blocks", number, *op, message);
  }
}

bool runs_at_once(const Program& program, const Target& target, Diagnostics& diagnostics) {
  precondition(program.split);
  ProgramReport report(program, diagnostics);
  check_blocks(program, target, report);
  return !report.any();
}

TargetLimits::TargetLimits(const Program& program, const Target& target, ProgramReport& report)
    : program_(program), target_(target), report_(report) {}

void TargetLimits::check_program(const WireLayout& layout) {
  if (beyond(program_.launch.threads, target_.max_threads_per_block)) {
    report_.error("target-threads", fmt::format("{} threads per block ('launch threads'); target "
                                                "'{}' has at most {}",
                                                program_.launch.threads, target_.name,
                                                target_.max_threads_per_block));
  }
  if (target_.vector_bytes != 0 && program_.launch.align % target_.vector_bytes != 0) {
    report_.error("target-align",
                  fmt::format("chunks begin at multiples of {} bytes ('launch "
                              "align'); accesses of target '{}' need multiples "
                              "of {}",
                              program_.launch.align, target_.name, target_.vector_bytes));
  }
  check_blocks(program_, target_, report_);
  check_bytes(layout);
}

/// An error at an op that reaches the largest offset.
void TargetLimits::check_bytes(const WireLayout& layout) {
  const uint64_t largest = program_.select.sizes.max;
  if (target_.max_bytes == 0 || largest == ~uint64_t{0}) return;
  const unsigned __int128 bytes = static_cast<unsigned __int128>(chunk_bytes(program_, largest)) *
                                  largest_offset(program_, layout);
  if (bytes <= target_.max_bytes) return;
  const std::string message = fmt::format(
      "messages of {} bytes ('select sizes') reach offsets beyond {}, the largest of "
      "target '{}'",
      largest, target_.max_bytes, target_.name);
  const auto [rank, op] = farthest_op(program_, layout);
  if (op == nullptr) {
    report_.error("target-bytes", message);
  } else {
    report_.error("target-bytes", rank, *op, message);
  }
}

void TargetLimits::check_channels(const WireLayout& layout, uint32_t rank) {
  if (target_.max_channels == 0) return;
  const std::vector<Channel>& channels = program_.ranks[rank].channels;
  for (const ChannelKind kind : {ChannelKind::memory, ChannelKind::port}) {
    const auto count = static_cast<uint64_t>(
        std::ranges::count_if(channels, [&](const Channel& c) { return c.kind == kind; }));
    if (!beyond(count, target_.max_channels)) continue;
    const std::string message =
        fmt::format("{} {} channels on rank {}; target '{}' has at most {}", count, name(kind),
                    rank, target_.name, target_.max_channels);
    const auto beyond_limit = [&](const Op& op) {
      return std::ranges::any_of(program_.all_operands(op), [&](const Operand& o) {
        return o.channel != kNone && channels[o.channel].kind == kind &&
               layout.channel_id(rank, o.channel) >= target_.max_channels;
      });
    };
    const auto op = std::ranges::find_if(program_.ranks[rank].ops, beyond_limit);
    if (op == program_.ranks[rank].ops.end()) {
      report_.error("target-channels", message);
    } else {
      report_.error("target-channels", rank, *op, message);
    }
  }
}

bool TargetLimits::exceeds(const Op& op, const OpFacts& facts) const {
  if (info(op.kind).moves_data()) {
    return beyond(std::max(op.dsts, op.srcs), target_.max_operands_per_op) ||
           beyond(facts.ids, target_.max_channels_per_op);
  }
  if (has_semaphores(op)) return beyond(facts.ids, target_.max_semaphores_per_op);
  return beyond(facts.ids, target_.max_channels_per_op);
}

void TargetLimits::report_op(uint32_t rank, const Op& op, const OpFacts& facts) {
  const uint64_t operands = std::max(op.dsts, op.srcs);
  if (has_semaphores(op)) {
    too_many(rank, op, "semaphores in an op", facts.ids, target_.max_semaphores_per_op);
  } else if (info(op.kind).moves_data() && beyond(operands, target_.max_operands_per_op)) {
    too_many(rank, op, "operands on one side", operands, target_.max_operands_per_op);
  } else {
    too_many(rank, op, "channels in an op", facts.ids, target_.max_channels_per_op);
  }
}

void TargetLimits::check_block(uint32_t rank, const Op& last, uint64_t ops, uint64_t channels,
                               uint64_t remote_buffers) {
  if (beyond(ops, target_.max_ops_per_block)) {
    too_many(rank, last, "ops in a thread block", ops, target_.max_ops_per_block);
  }
  if (beyond(channels, target_.max_channels_per_block)) {
    too_many(rank, last, "channels of a kind in a thread block", channels,
             target_.max_channels_per_block);
  }
  if (beyond(ops * target_.shared_bytes_per_op, target_.max_shared_bytes)) {
    too_many(rank, last, "bytes of shared memory for the ops of a thread block",
             ops * target_.shared_bytes_per_op, target_.max_shared_bytes);
  }
  if (beyond(remote_buffers, target_.max_remote_buffers_per_block)) {
    too_many(rank, last, "remote buffers in a thread block", remote_buffers,
             target_.max_remote_buffers_per_block);
  }
}

void TargetLimits::check_barriers(uint32_t rank, const Op& op, uint64_t barriers) {
  if (!beyond(barriers, target_.max_barriers)) return;
  too_many(rank, op, "barriers on a rank", barriers, target_.max_barriers);
}

void TargetLimits::check_name(uint32_t rank, const Op& op, MscclppFault fault) {
  if (!target_.mscclpp_wire_only) return;
  if (!reported_.insert(std::string(name(fault))).second) return;
  report_.error("mscclpp-" + std::string(name(fault)), rank, op,
                fmt::format("target '{}' cannot run '{}' here: MSCCL++'s executor {}", target_.name,
                            info(op.kind).name, text(fault)));
}

void TargetLimits::too_many(uint32_t rank, const Op& op, std::string what, uint64_t count,
                            uint64_t limit) {
  if (!reported_.insert(what).second) return;
  report_.error("target-limit", rank, op,
                fmt::format("{} {}; target '{}' has at most {}", count, what, target_.name, limit));
}

}  // namespace mscclc
