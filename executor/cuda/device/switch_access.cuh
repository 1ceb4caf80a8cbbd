// The instructions of a switch (multicast), each on 16 bytes: multimem.cuh says what is done with
// them, and what they order. Code that is compiled for the host gets twins (executor/cuda/host).
#pragma once

#ifdef MSCCLC_ON_HOST
#include "executor/cuda/host/switch_access.h"
#else

#include <cstdint>

#include "ir/ops/ops.h"

namespace mscclc::cuda {

__device__ inline void fence_aliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

#define MSCCLC_ADD_FOUR(name, what, constraint, Value)                                    \
  /* The sum of all members at an aligned address. */                                     \
  __device__ inline void name(const uint8_t* at, uint8_t* row) {                          \
    Value* to = reinterpret_cast<Value*>(row);                                            \
    asm volatile("multimem.ld_reduce.relaxed.sys.global." what " {%0, %1, %2, %3}, [%4];" \
                 : "=" constraint(to[0]), "=" constraint(to[1]), "=" constraint(to[2]),   \
                   "=" constraint(to[3])                                                  \
                 : "l"(at)                                                                \
                 : "memory");                                                             \
  }
MSCCLC_ADD_FOUR(switch_add_f32, "add.v4.f32", "f", float)
MSCCLC_ADD_FOUR(switch_add_f16, "add.acc::f32.v4.f16x2", "r", uint32_t)
MSCCLC_ADD_FOUR(switch_add_bf16, "add.acc::f32.v4.bf16x2", "r", uint32_t)
#undef MSCCLC_ADD_FOUR

#define MSCCLC_LOAD_ONE(what, constraint, to, at)                         \
  asm volatile("multimem.ld_reduce.relaxed.sys.global." what " %0, [%1];" \
               : "=" constraint(to)                                       \
               : "l"(at)                                                  \
               : "memory")

__device__ inline void switch_add_f64(const uint8_t* at, uint8_t* row) {
  auto* to = reinterpret_cast<double*>(row);
  MSCCLC_LOAD_ONE("add.f64", "d", to[0], at);
  MSCCLC_LOAD_ONE("add.f64", "d", to[1], at + 8);
}

/// Sums, or min and max. Sums wrap around, so that signed ones are added as unsigned.
template <Dtype T, class Value>
__device__ void switch_reduce_integers(ReduceOp reduce, const uint8_t* at, uint8_t* row);
#define MSCCLC_REDUCE_INTEGERS(T, Value, constraint, unsigned_type, type) \
  template <>                                                             \
  __device__ inline void switch_reduce_integers<Dtype::T, Value>(         \
      ReduceOp reduce, const uint8_t* at, uint8_t* row) {                 \
    Value* to = reinterpret_cast<Value*>(row);                            \
    for (uint32_t i = 0; i < 16 / sizeof(Value); ++i) {                   \
      const uint8_t* from = at + i * sizeof(Value);                       \
      if (reduce == ReduceOp::min) {                                      \
        MSCCLC_LOAD_ONE("min." type, constraint, to[i], from);            \
      } else if (reduce == ReduceOp::max) {                               \
        MSCCLC_LOAD_ONE("max." type, constraint, to[i], from);            \
      } else {                                                            \
        MSCCLC_LOAD_ONE("add." unsigned_type, constraint, to[i], from);   \
      }                                                                   \
    }                                                                     \
  }
MSCCLC_REDUCE_INTEGERS(i32, int32_t, "r", "u32", "s32")
MSCCLC_REDUCE_INTEGERS(u32, uint32_t, "r", "u32", "u32")
MSCCLC_REDUCE_INTEGERS(i64, int64_t, "l", "u64", "s64")
MSCCLC_REDUCE_INTEGERS(u64, uint64_t, "l", "u64", "u64")
#undef MSCCLC_REDUCE_INTEGERS
#undef MSCCLC_LOAD_ONE

/// Stores 16 bytes at all members, whatever they are. REQUIRES: `at` aligned.
__device__ inline void switch_store16(uint8_t* at, const uint4& row) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f16x2 [%0], {%1, %2, %3, %4};" ::"l"(at),
               "r"(row.x), "r"(row.y), "r"(row.z), "r"(row.w)
               : "memory");
}

/// 16 bytes that another block or rank may have written just before.
__device__ inline uint4 load_fresh16(const uint8_t* at) {
  uint4 row;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(row.x), "=r"(row.y), "=r"(row.z), "=r"(row.w)
               : "l"(at)
               : "memory");
  return row;
}

}  // namespace mscclc::cuda

#endif
