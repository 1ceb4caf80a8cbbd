// What meets what: signals and the waits that take them, releases and acquires, barriers, packets
// and their readers. Pipelines are matched round by round, with the credits that they begin with.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::draw {

/// An op of a rank.
struct OpRef {
  uint32_t rank = 0, op = 0;
  auto operator<=>(const OpRef&) const = default;
};

enum class FlowKind : uint8_t { signal, semaphore, barrier, packets };

/// `to` waits for `from`.
struct Flow {
  OpRef from, to;
  FlowKind kind = FlowKind::signal;
  /// Not 0: `to` waits for what `from` did so many rounds of the pipeline ago: credits.
  uint32_t rounds = 0;
  /// How many times `to` may run before it waits for `from`.
  uint32_t credits = 0;
};

/// All of a program, in no order that means anything. Ops that meet nothing have no flow.
std::vector<Flow> flows_of(const Program& program);

/// Where an op stands: a block, a group of blocks, or no place yet. Sorted: blocks first.
int64_t place_of(const Op& op);

/// The place of ops that have no block and no group.
inline constexpr int64_t kNoPlace = int64_t{1} << 40;
/// The first of the places of groups.
inline constexpr int64_t kGroupPlace = int64_t{1} << 33;

}  // namespace mscclc::draw
