#include "plans/write/target_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "plans/wire/message_bounds.h"

namespace mscclc {
namespace {

bool beyond(uint64_t count, uint64_t limit) { return limit != 0 && count > limit; }

bool has_semaphores(const Op& op) {
  return info(op.kind).has(kReleases) || info(op.kind).has(kAcquires);
}

}  // namespace

TargetLimits::TargetLimits(const Program& program, const Target& target, OpReport& report)
    : program_(program), target_(target), report_(report) {}

void TargetLimits::check_program(const WireLayout& layout) {
  if (beyond(program_.launch.threads, target_.max_threads_per_block)) {
    report_.error("target-threads", fmt::format("{} threads per block; target '{}' has at most {}",
                                                program_.launch.threads, target_.name,
                                                target_.max_threads_per_block));
  }
  for (size_t r = 0; r < program_.ranks.size(); ++r) {
    const uint32_t blocks = program_.ranks[r].blocks;
    if (!beyond(blocks, target_.max_blocks)) continue;
    report_.error("target-blocks", fmt::format("rank {} has {} thread blocks; target '{}' runs at "
                                               "most {} at once",
                                               r, blocks, target_.name, target_.max_blocks));
    break;
  }
  const uint64_t largest = program_.select.sizes.max;
  if (target_.max_bytes == 0 || largest == ~uint64_t{0}) return;
  const unsigned __int128 bytes = static_cast<unsigned __int128>(chunk_bytes(program_, largest)) *
                                  largest_offset(program_, layout);
  if (bytes <= target_.max_bytes) return;
  report_.error("target-bytes",
                fmt::format("messages of {} bytes ('select sizes') reach offsets beyond {}, the "
                            "largest of target '{}'",
                            largest, target_.max_bytes, target_.name));
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
  if (beyond(remote_buffers, target_.max_remote_buffers_per_block)) {
    too_many(rank, last, "remote buffers in a thread block", remote_buffers,
             target_.max_remote_buffers_per_block);
  }
}

void TargetLimits::check_barriers(uint32_t rank, const Op& op, uint64_t barriers) {
  if (!beyond(barriers, target_.max_barriers)) return;
  too_many(rank, op, "barriers on a rank", barriers, target_.max_barriers);
}

void TargetLimits::check_name(uint32_t rank, const Op& op, PeerFault fault) {
  if (!target_.peer_wire_only) return;
  report_.error("peer-" + std::string(name(fault)), rank, op,
                fmt::format("target '{}' cannot run '{}' here: the peer's executor {}",
                            target_.name, info(op.kind).name, text(fault)));
}

void TargetLimits::too_many(uint32_t rank, const Op& op, std::string what, uint64_t count,
                            uint64_t limit) {
  report_.error("target-limit", rank, op,
                fmt::format("{} {}; target '{}' has at most {}", count, what, target_.name, limit));
}

}  // namespace mscclc
