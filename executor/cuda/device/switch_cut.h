// Which part of a stretch goes through the switch: accesses there have 16 aligned bytes.
#pragma once

#include <cstdint>

#include "executor/interpreter/layout.h"

namespace mscclc::cuda {

/// [0, head) and [body_end, count) go member by member, [head, body_end) in 16-byte accesses.
struct SwitchCut {
  uint64_t head, body_end;
};

/// The cut of `count` bytes at addresses `a` and `b`. Addresses that lie differently in their 16
/// bytes have no body.
MSCCLC_HD inline SwitchCut cut_for_switch(uint64_t a, uint64_t b, uint64_t count) {
  if (((a ^ b) & 15) != 0) return {count, count};
  const uint64_t head = (16 - (a & 15)) & 15;
  if (head >= count) return {count, count};
  return {head, head + (count - head) / 16 * 16};
}

}  // namespace mscclc::cuda
