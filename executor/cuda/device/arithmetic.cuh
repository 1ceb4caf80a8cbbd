// What a thread adds up: the elements in one or two times 16 bytes. Of one data type, in registers;
// of any, chosen row by row: slower, but one kernel for all the types that are seldom asked for; or
// of none, for plans that only move.
//
// Rows are always whole: bytes after the data are zeros.
#pragma once

#include <cstdint>

#include "executor/cuda/device/fp8.cuh"
#include "executor/interpreter/arith.h"
#include "executor/interpreter/trees.h"
#include "executor/launch.h"

namespace mscclc::cuda {

using device::LaunchPlan;

/// Up to kRows rows of 16 bytes. Packets have one row; plain pieces two where there is so much.
struct Tile {
  static constexpr uint32_t kRows = 2;
  uint4 rows[kRows];

  __device__ uint8_t* bytes(uint32_t row = 0) { return reinterpret_cast<uint8_t*>(&rows[row]); }
  __device__ const uint8_t* bytes(uint32_t row = 0) const {
    return reinterpret_cast<const uint8_t*>(&rows[row]);
  }
  __device__ void get(uint64_t* words) const { memcpy(words, &rows[0], 16); }
  __device__ void set(const uint64_t* words) { memcpy(&rows[0], words, 16); }
};

/// Calls fn(row) for the rows of a piece of `payload` bytes.
template <class Fn>
__device__ inline void for_each_row(uint32_t payload, Fn fn) {
  fn(0);
  if (payload > 16) fn(1);
}

__device__ inline uint32_t bytes_of(Dtype dtype) {
  switch (dtype) {
#define DTYPE(name, bytes, ...) \
  case Dtype::name:             \
    return bytes;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return 1;
}

__device__ inline bool is_float(Dtype dtype) {
  switch (dtype) {
#define DTYPE(name, bytes, kind, ...) \
  case Dtype::name:                   \
    return DtypeKind::kind == DtypeKind::kFloat;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return false;
}

/// A row without -0.0, of elements of `element` bytes, at most 4.
__device__ inline uint4 drop_minus_zeros(const uint4& row, uint32_t element) {
  const auto drop = [element](uint32_t word) {
    if (element == 4) return word == 0x80000000u ? 0u : word;
    // All bits but signs, added to what an element has of them, carry into its sign unless that is
    // nothing.
    const uint32_t low = element == 2 ? 0x7fff7fffu : 0x7f7f7f7fu;
    return word & (((word & low) + low) | low);
  };
  return {drop(row.x), drop(row.y), drop(row.z), drop(row.w)};
}

/// For plans without reductions.
struct NoSums {
  static constexpr bool kSums = false;
  static constexpr uint32_t kLeastElement = 1;  ///< bytes
  struct RowSums {};
  Dtype dtype;

  __device__ explicit NoSums(const LaunchPlan& plan) : dtype(plan.dtype) {}
  __device__ uint32_t element() const { return bytes_of(dtype); }
};

/// dtypes.def's accumulation types.
template <Dtype T>
struct AccumulateOf;
#define DTYPE(name, bytes, kind, accumulate, aliases) \
  template <>                                         \
  struct AccumulateOf<Dtype::name> {                  \
    using Type = device::ValueOf<Dtype::accumulate>;  \
  };
#include "ir/ops/dtypes.def"
#undef DTYPE

/// One row of elements of T, added up in A.
template <Dtype T, class A>
struct Row {
  static constexpr uint32_t kElement = sizeof(typename device::Element<T>::Bits);
  static constexpr uint32_t kCount = 16 / kElement;

  __device__ static void start(A* sums, const uint8_t* row) {
    device::start_row<T>(sums, row, kCount);
  }
  __device__ static void add(A* sums, const uint8_t* row, ReduceOp reduce) {
    if (reduce == ReduceOp::min) {
      device::combine_row<T, A, ReduceOp::min>(sums, row, kCount);
    } else if (reduce == ReduceOp::max) {
      device::combine_row<T, A, ReduceOp::max>(sums, row, kCount);
    } else if (reduce == ReduceOp::prod) {
      device::combine_row<T, A, ReduceOp::prod>(sums, row, kCount);
    } else {
      device::combine_row<T, A, ReduceOp::sum>(sums, row, kCount);
    }
  }
  __device__ static void finish(A* sums, uint8_t* row, uint32_t divisor) {
    if (divisor > 1) device::divide_row(sums, kCount, divisor);
    device::finish_row<T>(row, sums, kCount);
  }
};

/// Are there instructions that round two floats to T at once?
template <Dtype T>
constexpr bool rounds_halves() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return T == Dtype::bf16 || T == Dtype::f16;
#else
  return false;
#endif
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/// The elements of two values, the first in the lower half.
template <Dtype T>
__device__ inline uint32_t two_halves(const float* values) {
  uint32_t word;
  if constexpr (T == Dtype::bf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(values[1]), "f"(values[0]));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(values[1]), "f"(values[0]));
  }
  return word;
}
#endif

/// Calls fn(i, value) for each bf16 of a row. By words: of two bytes a compiler makes two steps.
template <class Fn>
__device__ __forceinline__ void each_bf16(const uint4& row, Fn fn) {
  const uint32_t words[] = {row.x, row.y, row.z, row.w};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    fn(2 * i, std::bit_cast<float>(words[i] << 16));
    fn(2 * i + 1, std::bit_cast<float>(words[i] & 0xffff0000u));
  }
}

// Not inlined: few calls are averages, and a division is long.
template <class Sum>
static __device__ __noinline__ Sum quotient(Sum sum, uint32_t by) {
  device::divide_row(&sum, 1, by);
  return sum;
}

/// Sums of T in its own accumulation type.
template <Dtype T>
struct OneType {
  using Sum = typename AccumulateOf<T>::Type;
  using R = Row<T, Sum>;
  static constexpr bool kSums = true;
  static constexpr bool kFloat = device::Element<T>::kIsFloat;
  static constexpr Dtype kType = T;
  static constexpr uint32_t kLeastElement = R::kElement;
  static_assert(sizeof(Sum) == 4);
  /// Of one row; the reduction is sum or avg.
  struct RowSums {
    Sum values[R::kCount];
  };

  __device__ explicit OneType(const LaunchPlan&) {}
  __device__ uint32_t element() const { return R::kElement; }
  __device__ static void start(RowSums& sums, const uint4& row) {
    if constexpr (T == Dtype::bf16) {
      each_bf16(row, [&](uint32_t i, float value) { sums.values[i] = value; });
    } else {
      device::start_row<T>(sums.values, reinterpret_cast<const uint8_t*>(&row), R::kCount);
    }
  }
  __device__ static void add(RowSums& sums, const uint4& row) {
    if constexpr (T == Dtype::bf16) {
      each_bf16(row, [&](uint32_t i, float value) { sums.values[i] += value; });
    } else if constexpr (converts_words<T>()) {
      const uint32_t words[] = {row.x, row.y, row.z, row.w};
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const float4 values = read_word<T>(words[i]);
        sums.values[4 * i] += values.x;
        sums.values[4 * i + 1] += values.y;
        sums.values[4 * i + 2] += values.z;
        sums.values[4 * i + 3] += values.w;
      }
    } else {
      device::combine_row<T, Sum, ReduceOp::sum>(sums.values,
                                                 reinterpret_cast<const uint8_t*>(&row), R::kCount);
    }
  }
  /// Adds the sums of other sources.
  __device__ static void merge(RowSums& sums, const RowSums& more) {
    device::merge_row<ReduceOp::sum>(sums.values, more.values, R::kCount);
  }
  /// Rounds sums divided by `divisor`. kAnyNan: a NaN may become any, as who reads it takes them
  /// for the same; then each two sums take one instruction.
  template <bool kAnyNan = false>
  __device__ static uint4 finish(RowSums& sums, uint32_t divisor) {
    if (divisor > 1) {
#pragma unroll
      for (uint32_t i = 0; i < R::kCount; ++i) sums.values[i] = quotient(sums.values[i], divisor);
    }
    uint4 row;
    if constexpr (kAnyNan && rounds_halves<T>()) {
      row = {two_halves<T>(sums.values), two_halves<T>(sums.values + 2),
             two_halves<T>(sums.values + 4), two_halves<T>(sums.values + 6)};
    } else if constexpr (converts_words<T>()) {
      row = {write_word<T>(sums.values), write_word<T>(sums.values + 4),
             write_word<T>(sums.values + 8), write_word<T>(sums.values + 12)};
    } else {
      device::round_row<T>(reinterpret_cast<uint8_t*>(&row), sums.values, R::kCount);
    }
    if constexpr (device::Element<T>::kIsFloat) return drop_minus_zeros(row, R::kElement);
    return row;
  }
};

// One function per pair of types and step, not one copy of each in every handler.
template <Dtype T, class A>
__device__ __noinline__ void start_one(void* sums, const uint8_t* row) {
  Row<T, A>::start(static_cast<A*>(sums), row);
}
template <Dtype T, class A>
__device__ __noinline__ void add_one(void* sums, const uint8_t* row, ReduceOp reduce) {
  Row<T, A>::add(static_cast<A*>(sums), row, reduce);
}
template <Dtype T, class A>
__device__ __noinline__ void finish_one(void* sums, uint8_t* row, uint32_t divisor) {
  Row<T, A>::finish(static_cast<A*>(sums), row, divisor);
}

template <class A>
__device__ __noinline__ void merge_some(void* sums, const void* more, uint32_t n, ReduceOp reduce) {
  A* const to = static_cast<A*>(sums);
  const A* const from = static_cast<const A*>(more);
  if (reduce == ReduceOp::min) {
    device::merge_row<ReduceOp::min>(to, from, n);
  } else if (reduce == ReduceOp::max) {
    device::merge_row<ReduceOp::max>(to, from, n);
  } else if (reduce == ReduceOp::prod) {
    device::merge_row<ReduceOp::prod>(to, from, n);
  } else {
    device::merge_row<ReduceOp::sum>(to, from, n);
  }
}

template <Dtype T, class A>
struct Types {
  static constexpr Dtype kElement = T;
  using Sum = A;
};
template <Dtype T, class Fn>
__device__ inline void with_sum(Dtype accumulate, Fn fn) {
  switch (accumulate) {
#define DTYPE(name, ...)                                 \
  case Dtype::name:                                      \
    if constexpr (device::sums_fit<T, Dtype::name>()) {  \
      return fn(Types<T, device::SumOf<Dtype::name>>{}); \
    }                                                    \
    return;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
}
/// Calls fn with the types of elements and of sums.
template <class Fn>
__device__ inline void with_types(Dtype dtype, Dtype accumulate, Fn fn) {
  switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return with_sum<Dtype::name>(accumulate, fn);
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
}

/// Whatever the call asks for.
struct AnyType {
  struct Sums {
    alignas(16) uint8_t values[Tile::kRows][128];  // at most 16 one-byte elements in f64
  };
  Dtype dtype, accumulate;

  __device__ explicit AnyType(const LaunchPlan& plan)
      : dtype(plan.dtype), accumulate(plan.accumulate) {}
  __device__ uint32_t element() const { return bytes_of(dtype); }
  __device__ void start(Sums& sums, const Tile& tile, uint32_t payload) const {
    with_types(dtype, accumulate, [&](auto t) {
      for_each_row(payload, [&](uint32_t r) {
        start_one<decltype(t)::kElement, typename decltype(t)::Sum>(sums.values[r], tile.bytes(r));
      });
    });
  }
  __device__ void add(Sums& sums, const Tile& tile, uint32_t payload, ReduceOp reduce) const {
    with_types(dtype, accumulate, [&](auto t) {
      for_each_row(payload, [&](uint32_t r) {
        add_one<decltype(t)::kElement, typename decltype(t)::Sum>(sums.values[r], tile.bytes(r),
                                                                  reduce);
      });
    });
  }
  __device__ void finish(Sums& sums, Tile& tile, uint32_t payload, uint32_t divisor) const {
    with_types(dtype, accumulate, [&](auto t) {
      for_each_row(payload, [&](uint32_t r) {
        finish_one<decltype(t)::kElement, typename decltype(t)::Sum>(sums.values[r], tile.bytes(r),
                                                                     divisor);
      });
    });
  }
};

/// The sums of parts of a tree of rows (interpreter/machine.h), for whatever the call asks for. A
/// thread's memory is dear, as all threads of a device have as much: rows whose sums are long are
/// done in slices of kBytes.
class AnyTree {
 public:
  __device__ AnyTree(const AnyType& types, ReduceOp reduce, uint32_t divisor)
      : types_(types), reduce_(reduce), divisor_(divisor) {
    for_types([&](auto t) {
      using T = decltype(t);
      using Sum = typename T::Sum;
      slices_ = (sizeof(Sum) * Row<T::kElement, Sum>::kCount + kBytes - 1) / kBytes;
    });
  }
  __device__ uint32_t slices() const { return slices_; }
  // Not inlined: one copy of each, not one in every body of a packet format.
  __device__ __noinline__ void start(uint32_t i, const Tile& tile, uint32_t slice) {
    if (slices_ == 1) return start_row(sums_[i], tile);
    start_row(row_, tile);
    memcpy(sums_[i], row_ + slice * kBytes, kBytes);
  }
  __device__ __noinline__ void add(uint32_t i, const Tile& tile, uint32_t slice) {
    if (slices_ != 1) {
      start_row(row_, tile);
      return add_sums(sums_[i], row_ + slice * kBytes);
    }
    for_types([&](auto t) {
      using T = decltype(t);
      add_one<T::kElement, typename T::Sum>(sums_[i], tile.bytes(), reduce_);
    });
  }
  __device__ __noinline__ void merge(uint32_t i) { add_sums(sums_[i], sums_[i + 1]); }
  __device__ __noinline__ void finish(Tile& tile, uint32_t slice) {
    if (slices_ == 1) return finish_row(sums_[0], tile);
    memcpy(row_ + slice * kBytes, sums_[0], kBytes);
    Tile whole;  // of which a slice is right
    finish_row(row_, whole);
    const uint32_t bytes = 16 / slices_;
    memcpy(tile.bytes() + slice * bytes, whole.bytes() + slice * bytes, bytes);
  }

 private:
  static constexpr uint32_t kBytes = 32;

  template <class Fn>
  __device__ void for_types(Fn fn) const {
    with_types(types_.dtype, types_.accumulate, fn);
  }
  __device__ void start_row(uint8_t* sums, const Tile& tile) const {
    for_types([&](auto t) {
      using T = decltype(t);
      start_one<T::kElement, typename T::Sum>(sums, tile.bytes());
    });
  }
  __device__ void add_sums(uint8_t* sums, const uint8_t* more) const {
    for_types([&](auto t) {
      using T = decltype(t);
      using Sum = typename T::Sum;
      constexpr uint32_t kRow = Row<T::kElement, Sum>::kCount, kMax = kBytes / sizeof(Sum);
      merge_some<Sum>(sums, more, kRow < kMax ? kRow : kMax, reduce_);
    });
  }
  __device__ void finish_row(uint8_t* sums, Tile& tile) const {
    for_types([&](auto t) {
      using T = decltype(t);
      finish_one<T::kElement, typename T::Sum>(sums, tile.bytes(), divisor_);
    });
  }

  const AnyType& types_;
  const ReduceOp reduce_;
  const uint32_t divisor_;
  uint32_t slices_ = 1;
  alignas(16) uint8_t sums_[device::kMaxTreeParts][kBytes];
  alignas(16) uint8_t row_[128];  ///< of all of a row
};

}  // namespace mscclc::cuda
