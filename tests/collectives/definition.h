// For tests: collectives by name on numbers of 32 bits, by their definitions written down once
// more.
#pragma once

#include <cstdint>

#include "runtime/api/collectives.h"

namespace mscclc::testing {

/// What expected() knows.
inline constexpr CollectiveKind kDefinedKinds[] = {
    CollectiveKind::allreduce,     CollectiveKind::reduce,   CollectiveKind::allgather,
    CollectiveKind::gather,        CollectiveKind::alltoall, CollectiveKind::broadcast,
    CollectiveKind::reducescatter, CollectiveKind::scatter,  CollectiveKind::sendrecv};

/// Element `i` of the input of a rank.
inline int32_t value(uint32_t rank, uint64_t i) {
  return static_cast<int32_t>(rank * 1000003 + i * 7 + 1);
}

/// What element `i` of the output must be; nothing is said of ranks without one.
inline int32_t expected(const CollectiveCall& call, uint32_t rank, uint32_t ranks, uint64_t i) {
  const uint64_t n = call.count, row = n == 0 ? 0 : i / n, column = n == 0 ? 0 : i % n;
  const auto sum = [&](uint64_t at) {
    int32_t all = 0;
    for (uint32_t r = 0; r < ranks; ++r) all += value(r, at);
    return all;
  };
  using Kind = CollectiveKind;
  switch (call.kind) {
    case Kind::allreduce:
    case Kind::reduce:
      return sum(i);
    case Kind::reducescatter:
      return sum(rank * n + i);
    case Kind::allgather:
    case Kind::gather:
      return value(static_cast<uint32_t>(row), column);
    case Kind::alltoall:
      return value(static_cast<uint32_t>(row), rank * n + column);
    case Kind::broadcast:
      return value(call.root, i);
    case Kind::scatter:
      return value(call.root, rank * n + i);
    case Kind::sendrecv: {
      const auto size = static_cast<int64_t>(ranks);
      const int64_t from = ((rank - call.shift) % size + size) % size;
      return value(static_cast<uint32_t>(from), i);
    }
    default:
      return 0;
  }
}

/// Where a call in place has its output, in elements from its input, or the other way round.
inline int64_t in_place_offset(const CollectiveCall& call, uint32_t rank) {
  const auto n = static_cast<int64_t>(call.count);
  using Kind = CollectiveKind;
  switch (call.kind) {
    case Kind::allgather:
      return -n * rank;
    case Kind::reducescatter:
      return n * rank;
    case Kind::gather:
      return -n * call.root;
    case Kind::scatter:
      return n * call.root;
    default:
      return 0;
  }
}

}  // namespace mscclc::testing
