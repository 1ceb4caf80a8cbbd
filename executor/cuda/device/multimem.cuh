// Switch ops through multicast: the switch adds up (multimem.ld_reduce) and stores to all members
// (multimem.st), where device::BaseAddress::multicast says that it can. Without it, and for what
// the switch cannot do, ops go through the members one by one, in the order of the plan.
//
// What differs from that: the order in which the switch adds up floating-point numbers, and the
// precision of its sums, are unspecified (PTX ISA, multimem.ld_reduce). So results are not those of
// the simulator bit for bit. Ranks that read one sum each get the same bits only if one of them
// reads it and stores it to all (switch_reduce_broadcast).
//
// Not through the switch: prod; min and max of floating-point numbers (f32 and f64 have none there,
// and a NaN would be lost); avg of 16-bit types (it would be rounded twice); 8-bit types; sums that
// the call wants added up in another type than dtypes.def says.
//
// Order (PTX ISA, memory consistency model, proxies; CUDA programming guide, virtual aliasing): a
// multicast address is another way to memory that ranks also read and write by its own address.
// Accesses by both are ordered by fence.proxy.alias only, in the thread that makes them: after the
// wait that precedes an op, before the signal that follows it. Both stand here, around the op.
//
// A multicast address is for multimem instructions alone: any other access is undefined.
#pragma once

#include <cstdint>

#include "executor/cuda/device/switch_access.cuh"
#include "executor/cuda/device/switch_cut.h"
#include "executor/interpreter/arith.h"
#include "executor/interpreter/steps.h"

namespace mscclc::cuda {

/// What the switch does for a call's reduction.
struct SwitchSum {
  Dtype dtype, accumulate;
  ReduceOp reduce;   ///< not ReduceOp::call
  uint32_t divisor;  ///< 1 except for avg
};

/// The type that the switch adds up in: dtypes.def's.
__device__ inline Dtype accumulate_of(Dtype dtype) {
  switch (dtype) {
#define DTYPE(name, bytes, kind, accumulate, aliases) \
  case Dtype::name:                                   \
    return Dtype::accumulate;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return dtype;
}

__device__ inline bool switch_reduces(const SwitchSum& sum) {
  if (sum.accumulate != accumulate_of(sum.dtype)) return false;
  const bool adds = sum.reduce == ReduceOp::sum || sum.reduce == ReduceOp::avg;
  switch (sum.dtype) {
    case Dtype::f32:
    case Dtype::f64:
      return adds;
    case Dtype::f16:
    case Dtype::bf16:
      return adds && sum.divisor == 1;
    case Dtype::i32:
    case Dtype::u32:
    case Dtype::i64:
    case Dtype::u64:
      return adds || sum.reduce == ReduceOp::min || sum.reduce == ReduceOp::max;
    default:
      return false;
  }
}

/// 16 bytes of elements.
struct SwitchRow {
  alignas(16) uint8_t bytes[16];
  template <class T>
  __device__ T* as() {
    return reinterpret_cast<T*>(bytes);
  }
};

template <class T>
__device__ inline void divide(SwitchRow& row, uint32_t by) {
  if (by > 1) device::divide_row(row.as<T>(), 16 / sizeof(T), by);
}
/// What the switch has added up is a result as any other: without -0.0.
template <class Bits>
__device__ inline void finish_floats(SwitchRow& row) {
  device::drop_minus_zero<Bits>(row.bytes, 16 / sizeof(Bits));
}

/// The reduction of 16 bytes of all members. REQUIRES: switch_reduces(sum); `at` aligned.
__device__ inline void switch_load(const SwitchSum& sum, const uint8_t* at, SwitchRow& row) {
  switch (sum.dtype) {
    case Dtype::f32:
      switch_add_f32(at, row.bytes);
      divide<float>(row, sum.divisor);
      return finish_floats<uint32_t>(row);
    case Dtype::f16:
      switch_add_f16(at, row.bytes);
      return finish_floats<uint16_t>(row);
    case Dtype::bf16:
      switch_add_bf16(at, row.bytes);
      return finish_floats<uint16_t>(row);
    case Dtype::f64:
      switch_add_f64(at, row.bytes);
      divide<double>(row, sum.divisor);
      return finish_floats<uint64_t>(row);
    case Dtype::i32:
      switch_reduce_integers<Dtype::i32, int32_t>(sum.reduce, at, row.bytes);
      return divide<int32_t>(row, sum.divisor);
    case Dtype::u32:
      switch_reduce_integers<Dtype::u32, uint32_t>(sum.reduce, at, row.bytes);
      return divide<uint32_t>(row, sum.divisor);
    case Dtype::i64:
      switch_reduce_integers<Dtype::i64, int64_t>(sum.reduce, at, row.bytes);
      return divide<int64_t>(row, sum.divisor);
    case Dtype::u64:
      switch_reduce_integers<Dtype::u64, uint64_t>(sum.reduce, at, row.bytes);
      return divide<uint64_t>(row, sum.divisor);
    default:
      return;
  }
}

/// One operand of a stretch: its address, at the switch if it is a switch operand.
struct SwitchPlace {
  uint8_t* address;
  bool at_switch;
};

/// Operand k of a stretch, the first of its side.
template <class M>
__device__ inline SwitchPlace place_of(M& m, const device::Steps& p, const device::StepStretch& s,
                                       uint32_t k) {
  uint8_t* own = device::address_of(m, p, s, k);
  if (p.extras == nullptr) return {own + s.skip, false};
  uint8_t* multicast = p.extras[s.operands - p.operands + k].multicast;
  if (multicast == nullptr) return {own + s.skip, false};
  // The copy and the unit of a pipeline move both alike.
  return {multicast + (own - s.operands[k].address) + s.skip, true};
}

/// True if the switch can do all of a step's moves: one operand on each side, those of several
/// ranks there. Sums of one source are left to those that make results.
__device__ inline bool switch_takes(const device::Steps& p, const device::Step& step,
                                    const SwitchSum& sum) {
  const uint32_t operands = uint32_t{step.dsts} + step.srcs;
  const auto there = [&](uint32_t operand, uint32_t members) {
    if (members == 1) return true;
    return p.extras != nullptr && p.extras[operand].multicast != nullptr;
  };
  for (uint32_t i = 0; i < step.count; ++i) {
    const uint32_t first = step.first + i * operands;
    if (!there(first, step.dsts) || !there(first + step.dsts, step.srcs)) return false;
  }
  if (step.kind == device::StepKind::switch_broadcast) return true;
  return step.srcs > 1 && switch_reduces(sum);
}

/// The part of a stretch that is 16 aligned bytes and more, by all threads of the block.
__device__ inline void switch_move(SwitchPlace to, SwitchPlace from, SwitchCut cut,
                                   const SwitchSum& sum) {
  for (uint64_t at = cut.head + threadIdx.x * 16ull; at < cut.body_end; at += blockDim.x * 16ull) {
    SwitchRow row;
    if (from.at_switch) {
      switch_load(sum, from.address + at, row);
    } else {
      *row.as<uint4>() = load_fresh16(from.address + at);
    }
    if (to.at_switch) {
      switch_store16(to.address + at, *row.as<uint4>());
    } else {
      store_as(to.address + at, *row.as<uint4>());
    }
  }
}

/// Runs switch_broadcast, switch_reduce or switch_reduce_broadcast on plain bytes through the
/// switch. False: nothing was done, the step must go through the members. `rest(stretch)` moves the
/// few bytes of a stretch that are no aligned 16, through the members, by all threads.
template <class M, class Rest>
__device__ inline bool run_at_switch(M& m, const device::Steps& p, const device::Step& step,
                                     const SwitchSum& sum, Rest rest) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return false;  // before multimem
#else
  if (!switch_takes(p, step, sum)) return false;
  fence_aliases();
  for (uint32_t i = 0; i < step.count; ++i) {
    device::for_each_stretch<PacketFormat::none>(p, step, i, [&](const device::StepStretch& s) {
      const SwitchPlace to = place_of(m, p, s, 0), from = place_of(m, p, s, step.dsts);
      const SwitchCut cut = cut_for_switch(reinterpret_cast<uint64_t>(to.address),
                                           reinterpret_cast<uint64_t>(from.address), s.count);
      switch_move(to, from, cut, sum);
      if (cut.head > 0) rest(device::StepStretch{s.step, s.operands, s.skip, cut.head});
      if (cut.body_end < s.count) {
        rest(
            device::StepStretch{s.step, s.operands, s.skip + cut.body_end, s.count - cut.body_end});
      }
    });
  }
  fence_aliases();
  return true;
#endif
}

}  // namespace mscclc::cuda
