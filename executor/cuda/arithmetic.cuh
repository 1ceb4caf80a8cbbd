// What a thread adds up: the elements in 16 bytes. Either of one data type, in registers, or of
// any, chosen row by row: slower, but one kernel for all the types that are seldom asked for.
//
// Rows are always whole: bytes behind the data are zeros.
#pragma once

#include <cstdint>

#include "executor/interpreter/arith.h"

namespace mscclc::cuda {

/// 16 bytes of elements.
struct Tile {
  uint4 data;

  __device__ uint8_t* bytes() { return reinterpret_cast<uint8_t*>(&data); }
  __device__ const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(&data); }
  __device__ void get(uint64_t* words) const { memcpy(words, &data, 16); }
  __device__ void set(const uint64_t* words) { memcpy(&data, words, 16); }
};

/// dtypes.def's accumulation types.
template <Dtype T>
struct AccumulateOf;
#define DTYPE(name, bytes, kind, accumulate, aliases) \
  template <>                                         \
  struct AccumulateOf<Dtype::name> {                  \
    using Type = device::ValueOf<Dtype::accumulate>;  \
  };
#include "ir/dtypes.def"
#undef DTYPE

template <Dtype T>
struct OneType {
  using Sum = typename AccumulateOf<T>::Type;
  static constexpr uint32_t kElement = sizeof(typename device::Element<T>::Bits);
  static constexpr uint32_t kCount = 16 / kElement;
  struct Sums {
    Sum values[kCount];
  };

  Dtype dtype;  ///< T; here so that both kinds are made alike

  __device__ uint32_t element() const { return kElement; }
  __device__ void start(Sums& sums, const Tile& tile) const {
    device::start_row<T>(sums.values, tile.bytes(), kCount);
  }
  __device__ void add(Sums& sums, const Tile& tile, ReduceOp reduce) const {
    if (reduce == ReduceOp::min) {
      device::combine_row<T, Sum, ReduceOp::min>(sums.values, tile.bytes(), kCount);
    } else if (reduce == ReduceOp::max) {
      device::combine_row<T, Sum, ReduceOp::max>(sums.values, tile.bytes(), kCount);
    } else if (reduce == ReduceOp::prod) {
      device::combine_row<T, Sum, ReduceOp::prod>(sums.values, tile.bytes(), kCount);
    } else {
      device::combine_row<T, Sum, ReduceOp::sum>(sums.values, tile.bytes(), kCount);
    }
  }
  __device__ void finish(Sums& sums, Tile& tile, uint32_t divisor) const {
    if (divisor > 1) device::divide_row(sums.values, kCount, divisor);
    device::finish_row<T>(tile.bytes(), sums.values, kCount);
  }
};

// One function per type and step, not one copy of each in every handler.
template <Dtype T>
__device__ __noinline__ void start_one(void* sums, const Tile& tile) {
  OneType<T>{}.start(*static_cast<typename OneType<T>::Sums*>(sums), tile);
}
template <Dtype T>
__device__ __noinline__ void add_one(void* sums, const Tile& tile, ReduceOp reduce) {
  OneType<T>{}.add(*static_cast<typename OneType<T>::Sums*>(sums), tile, reduce);
}
template <Dtype T>
__device__ __noinline__ void finish_one(void* sums, Tile& tile, uint32_t divisor) {
  OneType<T>{}.finish(*static_cast<typename OneType<T>::Sums*>(sums), tile, divisor);
}

struct AnyType {
  struct Sums {
    alignas(16) uint8_t values[64];  // no type has more: 16 one-byte elements in f32
  };
  Dtype dtype;

  __device__ uint32_t element() const {
    switch (dtype) {
#define DTYPE(name, bytes, ...) \
  case Dtype::name:             \
    return bytes;
#include "ir/dtypes.def"
#undef DTYPE
    }
    return 1;
  }
  __device__ void start(Sums& sums, const Tile& tile) const {
    switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return start_one<Dtype::name>(sums.values, tile);
#include "ir/dtypes.def"
#undef DTYPE
    }
  }
  __device__ void add(Sums& sums, const Tile& tile, ReduceOp reduce) const {
    switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return add_one<Dtype::name>(sums.values, tile, reduce);
#include "ir/dtypes.def"
#undef DTYPE
    }
  }
  __device__ void finish(Sums& sums, Tile& tile, uint32_t divisor) const {
    switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return finish_one<Dtype::name>(sums.values, tile, divisor);
#include "ir/dtypes.def"
#undef DTYPE
    }
  }
};

}  // namespace mscclc::cuda
