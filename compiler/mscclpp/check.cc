// Checks of a whole program: signals against waits, and the bounds of the executor's arrays.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/mscclpp/passes.h"

namespace mscclc::mscclpp {
namespace {

constexpr uint64_t kMaxBlocksOfAll = uint64_t{1} << 19;

std::string times(uint64_t count) {
  if (count == 0) return "never";
  if (count == 1) return "once";
  if (count == 2) return "twice";
  return fmt::format("{} times", count);
}

Checked check_count(const Program& program, const std::string& who, uint64_t count, uint64_t most) {
  if (count <= most) return std::nullopt;
  const std::string copies =
      program.instances > 1 ? fmt::format(" ({} instances)", program.instances) : "";
  return Mistake{fmt::format("{} {} thread blocks{}; allowed are {}", who, count, copies, most)};
}

/// Calls `use` for each op of a block, those of pipelines as well, until it gives false.
template <class Use>
bool each_op(const Program& program, const Ops& ops, const Use& use) {
  for (const Op& op : ops) {
    if (!use(op)) return false;
    if (op.body < 0) continue;
    if (!each_op(program, program.bodies[static_cast<size_t>(op.body)], use)) return false;
  }
  return true;
}

bool any_beyond(const std::vector<Ref>& all, Slice slice, size_t limit) {
  for (uint32_t i = 0; i < slice.count; ++i) {
    const Ref& ref = all[slice.first + i];
    if (!is_local(ref) && static_cast<size_t>(ref.where) >= limit) return true;
  }
  return false;
}

/// Whether an op uses an entry of a table beyond the limit.
bool is_beyond(const Program& program, const Op& op, bool of_channels, size_t limit) {
  if (!of_channels) {
    return any_beyond(program.sources, op.sources, limit) ||
           any_beyond(program.destinations, op.destinations, limit);
  }
  const auto begin = program.ids.begin() + op.ids.first;
  return std::any_of(begin, begin + op.ids.count, [&](uint32_t id) { return id >= limit; });
}

/// An op's or a table's entries are too many.
Mistake too_many(const std::string& who, uint64_t count, const std::string& what, size_t most,
                 PythonCall place) {
  return {fmt::format("{} has {} {}; the executor has room for {}", who, count, what, most), place};
}

/// The tables of channels, or of remote buffers, of a block.
Checked check_tables(const Program& program, const std::string& who, const Block& block,
                     bool of_channels) {
  const Tables& tables = of_channels ? block.channels : block.remotes;
  const size_t limit = of_channels ? kMaxChannels : kMaxRemotes;
  for (const ChannelKind kind : tables.kinds) {
    const size_t count = tables.of[static_cast<size_t>(kind)].size();
    if (count <= limit) continue;
    PythonCall place = kNoPythonCall;
    each_op(program, block.ops, [&](const Op& op) {
      if (has_channels(op) && op.channels == kind && is_beyond(program, op, of_channels, limit))
        place = op.place;
      return place == kNoPythonCall;
    });
    const std::string what = fmt::format(
        fmt::runtime(of_channels ? "{} channels" : "remote buffers over {}"), name(kind));
    return too_many(who, count, what, limit, place);
  }
  return std::nullopt;
}

Checked check_op(const Op& op) {
  const size_t chunks = std::max(op.sources.count, op.destinations.count);
  if (chunks > kMaxReferences) {
    return too_many("this op", chunks, "chunks on a side", kMaxReferences, op.place);
  }
  const bool semaphores = info(op.kind).has(kAcquires) || info(op.kind).has(kReleases);
  if (semaphores && op.ids.count > kMaxSemaphores) {
    return too_many("this op", op.ids.count, "semaphores", kMaxSemaphores, op.place);
  }
  if (names_data_channels(op) && op.ids.count > kMaxDataChannels) {
    return too_many("this op", op.ids.count, fmt::format("{} channels", name(op.channels)),
                    kMaxDataChannels, op.place);
  }
  return std::nullopt;
}

Checked check_block(const Program& program, const Block& block) {
  const std::string who = fmt::format("thread block {} of rank {}", block.number, block.rank);
  for (const bool of_channels : {true, false}) {
    if (auto mistake = check_tables(program, who, block, of_channels)) return mistake;
  }
  Checked found;
  size_t count = 0;
  PythonCall beyond = kNoPythonCall;
  each_op(program, block.ops, [&](const Op& op) {
    found = check_op(op);
    if (count++ == kMaxOps) beyond = op.place;
    return !found;
  });
  if (!found && count > kMaxOps) return too_many(who, count, "ops", kMaxOps, beyond);
  return found;
}

}  // namespace

Checked check_signals(const Program& program) {
  for (const Signals& count : program.signals) {
    if (count.sent == count.taken) continue;
    return Mistake{
        fmt::format("rank {} signals rank {} {} over {} channels, which waits {}", count.source,
                    count.target, times(count.sent), name(count.kind), times(count.taken)),
        count.sent > count.taken ? count.last_sent : count.last_taken};
  }
  return std::nullopt;
}

Checked check_blocks(const Program& program) {
  if (program.blocks.empty()) return Mistake{"the program has no ops"};
  uint64_t total = 0;
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const uint64_t count = count_blocks(program, program.ranks[rank]) * program.instances;
    const std::string who = fmt::format("rank {} has", rank);
    if (auto mistake = check_count(program, who, count, kMaxBlocks)) return mistake;
    total += count;
  }
  return check_count(program, "all ranks have", total, kMaxBlocksOfAll);
}

Checked check_limits(const Program& program) {
  for (size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const Rank& one = program.ranks[rank];
    const uint64_t barriers = one.barriers.size() * program.instances;
    if (barriers > kMaxBarriers) {
      return too_many(fmt::format("rank {}", rank), barriers, "barriers", kMaxBarriers,
                      kNoPythonCall);
    }
    for (const uint32_t block : one.blocks) {
      if (auto mistake = check_block(program, program.blocks[block])) return mistake;
    }
  }
  return std::nullopt;
}

Checked check_sums(const Program& program) {
  for (const Rank& rank : program.ranks) {
    std::vector<uint32_t> blocks = rank.blocks;
    std::sort(blocks.begin(), blocks.end(), [&](uint32_t a, uint32_t b) {
      return program.blocks[a].number < program.blocks[b].number;
    });
    for (const uint32_t block : blocks) {
      Checked found;
      each_op(program, program.blocks[block].ops, [&](const Op& op) {
        if (op.kind == OpKind::switch_reduce) {
          found = Mistake{
              "a 'reduce' over a switch must be followed by a 'broadcast' of its result over the "
              "same channel: the executor has no op for it alone",
              op.place};
        }
        return !found;
      });
      if (found) return found;
    }
  }
  return std::nullopt;
}

}  // namespace mscclc::mscclpp
