// The host's twin of executor/cuda/device/switch_access.cuh: a switch adds up and stores at the
// members of a multicast address one by one, in their order.
#pragma once

#include <cstdint>

#include "executor/cuda/host/access.h"
#include "executor/interpreter/arith.h"

namespace mscclc::cuda {

inline void fence_aliases() { host::Gpu::get().publish(); }

template <Dtype T, class Sum, ReduceOp R>
inline void reduce_members(const uint8_t* at, uint8_t* row) {
  constexpr uint32_t kCount = 16 / sizeof(typename device::Element<T>::Bits);
  uint64_t offset = 0;
  Sum sums[kCount];
  bool first = true;
  for (const uint8_t* member : host::Machine::get().gpu_switch.members_at(at, offset)) {
    const uint4 found = load_as<uint4>(member + offset);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&found);
    if (first) {
      device::start_row<T>(sums, bytes, kCount);
    } else {
      device::combine_row<T, Sum, R>(sums, bytes, kCount);
    }
    first = false;
  }
  device::finish_row<T>(row, sums, kCount);
}

inline void switch_add_f32(const uint8_t* at, uint8_t* row) {
  reduce_members<Dtype::f32, float, ReduceOp::sum>(at, row);
}
inline void switch_add_f16(const uint8_t* at, uint8_t* row) {
  reduce_members<Dtype::f16, float, ReduceOp::sum>(at, row);
}
inline void switch_add_bf16(const uint8_t* at, uint8_t* row) {
  reduce_members<Dtype::bf16, float, ReduceOp::sum>(at, row);
}
inline void switch_add_f64(const uint8_t* at, uint8_t* row) {
  reduce_members<Dtype::f64, double, ReduceOp::sum>(at, row);
}
template <Dtype T, class Value>
inline void switch_reduce_integers(ReduceOp reduce, const uint8_t* at, uint8_t* row) {
  if (reduce == ReduceOp::min) return reduce_members<T, Value, ReduceOp::min>(at, row);
  if (reduce == ReduceOp::max) return reduce_members<T, Value, ReduceOp::max>(at, row);
  reduce_members<T, Value, ReduceOp::sum>(at, row);
}

inline void switch_store16(uint8_t* at, const uint4& row) {
  uint64_t offset = 0;
  for (uint8_t* member : host::Machine::get().gpu_switch.members_at(at, offset))
    store_as(member + offset, row);
}

/// 16 bytes that another block or rank may have written just before.
inline uint4 load_fresh16(const uint8_t* at) { return load_as<uint4>(at); }

}  // namespace mscclc::cuda
