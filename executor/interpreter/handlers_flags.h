// Flags of external arrays: whether one is complete, and the steps that wait for or raise them.
#pragma once

#include "executor/interpreter/handlers_sync.h"

namespace mscclc::device {

/// StepTarget::index of a flag: its number over all arrays, and how often it is raised in a call.
inline constexpr uint32_t kFlagNumberBits = 12;
constexpr uint32_t flag_index(uint32_t number, uint32_t raises) {
  return number | (raises - 1) << kFlagNumberBits;
}
MSCCLC_HD constexpr uint32_t flag_number_of(uint32_t index) {
  return index & ((1u << kFlagNumberBits) - 1);
}
/// How often the flag has been raised when it is complete in a call (from 0), since the plan was
/// loaded. Words have its low bits.
MSCCLC_HD constexpr uint64_t flag_goal(uint32_t index, uint64_t call) {
  return (call + 1) * ((index >> kFlagNumberBits) + uint64_t{1});
}
/// Has a word, which may wrap, reached a goal?
MSCCLC_HD constexpr bool is_complete(uint64_t word, uint64_t goal, bool wide) {
  return wide
             ? static_cast<int64_t>(word - goal) >= 0
             : static_cast<int32_t>(static_cast<uint32_t>(word) - static_cast<uint32_t>(goal)) >= 0;
}

template <class M, class P>
MSCCLC_RUN inline void run_await(M& m, const P& p, const typename P::Op& op) {
  on_targets(m, p, op, [&](const auto& flag) { m.await_flag(flag); });
}

template <class M, class P>
MSCCLC_RUN inline void run_notify(M& m, const P& p, const typename P::Op& op) {
  on_targets(m, p, op, [&](const auto& flag) { m.notify_flag(flag); });
}

}  // namespace mscclc::device
