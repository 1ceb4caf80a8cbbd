// What passes share: counts, and questions about places and channels.
#include "passes/framework/passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/report/op_error.h"

namespace mscclc {

void RunClock::stop(PassRecord& record) const {
  record.cpu_seconds = static_cast<double>(std::clock() - cpu_) / CLOCKS_PER_SEC;
  record.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count();
}

void PassContext::count(std::string_view what, uint64_t by) {
  if (record == nullptr || by == 0) return;
  auto& counts = record->counts;
  const auto found = std::ranges::find(counts, what, &std::pair<std::string, uint64_t>::first);
  if (found == counts.end()) {
    counts.emplace_back(what, by);
  } else {
    found->second += by;
  }
}

bool settle_blocks(Program& program, uint32_t rank, std::string_view pass,
                   Diagnostics& diagnostics) {
  uint32_t blocks = program.ranks[rank].blocks;
  for (const Op& op : program.ranks[rank].ops) {
    if (op.block == kNone) {
      const std::string_view first = op.group == kNone ? "assign" : "groups";
      diagnostics
          .error("op-not-placed", span_of(program, op),
                 fmt::format("{} has no thread block of its own", describe_op(program, rank, op)))
          .notes.push_back({fmt::format("'{}' must run before '{}'", first, pass), {}});
      return false;
    }
    blocks = std::max(blocks, op.block + 1);
  }
  program.ranks[rank].blocks = blocks;
  return true;
}

uint32_t count_blocks(const Rank& rank) {
  uint32_t blocks = rank.blocks;
  for (const Op& op : rank.ops) {
    if (op.block != kNone) blocks = std::max(blocks, op.block + 1);
  }
  return blocks;
}

uint32_t count_named_blocks(const Program& program, const Rank& rank) {
  uint32_t blocks = count_blocks(rank);
  for (const Op& op : rank.ops) {
    if (op.group == kNone) continue;
    for (const int64_t b : program.values(program.groups[op.group])) {
      blocks = std::max(blocks, static_cast<uint32_t>(b) + 1);
    }
  }
  return blocks;
}

NameId unused_name(Program& program, std::string_view wish) {
  std::string name(wish);
  for (int n = 2; std::ranges::find(program.names(), name) != program.names().end(); ++n) {
    name = fmt::format("{}{}", wish, n);
  }
  return program.intern(name);
}

ChannelKind channel_kind(const Program& program, uint32_t rank, const Op& op) {
  if (info(op.kind).channels == kNoChannel) return ChannelKind::memory;
  const Operand* operands = program.operands.at(op.operands);
  for (uint32_t i = 0; i < uint32_t{op.dsts} + op.srcs; ++i) {
    if (operands[i].channel != kNone) {
      return program.ranks[rank].channels[operands[i].channel].kind;
    }
  }
  return ChannelKind::memory;
}

}  // namespace mscclc
