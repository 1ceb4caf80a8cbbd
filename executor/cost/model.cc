#include "executor/cost/model.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc::cost {
namespace {

/// Calls that are simulated: as many as show what each further one takes. Of large plans the first
/// alone, as it takes time.
constexpr uint32_t kCallsOfSmall = 12, kCalls = 5, kCallsOfLarge = 1;
constexpr size_t kSmall = 20000;
constexpr size_t kLarge = 400000;  ///< operands

}  // namespace

bool Model::lower_once(Diagnostics& diagnostics) {
  if (!lowered_) lowered_ = lower(program_, device_, diagnostics, RowSteps::together);
  return lowered_;
}

bool fits(const Program& program, const Machine& machine, Diagnostics& diagnostics) {
  const size_t ranks = program.ranks.size();
  const auto refuse = [&](const std::string& text) {
    diagnostics.error("machine-ranks", {}, text);
    return false;
  };
  if (ranks > machine.ranks()) {
    return refuse(fmt::format("the plan has {} ranks; the machine '{}' has {} GPUs", ranks,
                              machine.name, machine.ranks()));
  }
  for (uint32_t r = 0; r < ranks; ++r) {
    for (const Channel& channel : program.ranks[r].channels) {
      if (channel.kind == ChannelKind::port) continue;
      uint32_t peer = channel.peer == kNone ? r : channel.peer;
      for (const int64_t value : program.values(channel.group)) {
        const auto member = static_cast<uint32_t>(value);
        if (!machine.same_node(member, r)) peer = member;
      }
      if (machine.same_node(peer, r)) continue;
      return refuse(
          fmt::format("ranks {} and {} share memory in the plan, and are on two nodes of "
                      "the machine '{}' ({} GPU{} each)",
                      r, peer, machine.name, machine.gpus, machine.gpus == 1 ? "" : "s"));
    }
  }
  return true;
}

std::optional<Timeline> Model::predict(Call call, const Machine& machine, Diagnostics& diagnostics,
                                       Detail detail) {
  if (!fits(program_, machine, diagnostics) || !lower_once(diagnostics) ||
      !check_call(program_, call, diagnostics) ||
      !fit_to_size(device_, program_, call, diagnostics)) {
    return std::nullopt;
  }
  size_t size = 0;
  for (const RankProgram& rank : device_.ranks) size += rank.operands.size() + rank.targets.size();
  const uint32_t calls = size > kLarge ? kCallsOfLarge : size > kSmall ? kCalls : kCallsOfSmall;
  return run_timeline(program_, device_, call, machine, calls, diagnostics, detail);
}

Call call_of(const Program& program, uint64_t bytes, Dtype dtype, ReduceOp reduce) {
  Call call;
  call.part_bytes = Chunking::part_for_message(program.contract, bytes, info(dtype).bytes);
  if (program.contract.columns != 0 && rows::can_be_t(dtype)) {
    const uint64_t row = program.granule(dtype);
    call.part_bytes = std::max(call.part_bytes / row, uint64_t{1}) * row;
  }
  call.dtype = dtype;
  call.accumulate = info(dtype).accumulate;
  call.reduce = reduce;
  return call;
}

}  // namespace mscclc::cost
