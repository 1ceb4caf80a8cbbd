// What a thread adds up exactly (interpreter/exact.h): rows of one type in registers, or of any
// type.
#pragma once

#include <cstdint>

#include "executor/cuda/device/arithmetic.cuh"
#include "executor/cuda/device/plain_sums.cuh"
#include "executor/interpreter/exact.h"

namespace mscclc::cuda {

/// Exact sums of T in registers; what they cannot hold lies in memory, which is seldom needed.
template <Dtype T>
struct ExactRow {
  static constexpr uint32_t kCount = 16 / sizeof(typename device::Element<T>::Bits);
  double sums[kCount];
  uint32_t used;  ///< bit i: rest i is

  __device__ __forceinline__ void start(device::RestOf<T>* rests, const uint4& row) {
    used = 0;
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) sums[i] = 0;
    add(rests, row);
  }
  __device__ __forceinline__ void add(device::RestOf<T>* rests, const uint4& row) {
    if constexpr (converts_words<T>()) {
      const uint32_t words[] = {row.x, row.y, row.z, row.w};
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const float4 values = read_word<T>(words[i]);
        add_value(rests, 4 * i, values.x);
        add_value(rests, 4 * i + 1, values.y);
        add_value(rests, 4 * i + 2, values.z);
        add_value(rests, 4 * i + 3, values.w);
      }
    } else {
      const auto* const bytes = reinterpret_cast<const uint8_t*>(&row);
#pragma unroll
      for (uint32_t i = 0; i < kCount; ++i) {
        add_value(rests, i, device::Element<T>::read(device::element<T>(bytes, i)));
      }
    }
  }
  /// The elements; A: what averages are divided in.
  template <class A>
  __device__ __forceinline__ uint4 finish(device::RestOf<T>* rests, uint32_t divisor) const {
    uint4 row;
    auto* const bytes = reinterpret_cast<uint8_t*>(&row);
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      const auto bits =
          device::exact_result<T, A>(sums[i], rests[i], (used >> i & 1) != 0, divisor);
      memcpy(bytes + i * sizeof bits, &bits, sizeof bits);
    }
    return row;
  }

 private:
  __device__ __forceinline__ void add_value(device::RestOf<T>* rests, uint32_t i, double value) {
    bool rest = (used >> i & 1) != 0;
    device::add_exactly<T>(sums[i], rests[i], rest, value);
    used |= rest ? 1u << i : 0;
  }
};

/// The exact sum of a row of each of `sources`, divided in A. read(k, n, rows) reads those of
/// sources k to k + n, and is called for all, up to kAtOnce at a time.
template <Dtype T, class A, uint32_t sources, class Read>
__device__ __forceinline__ uint4 exact_sum(const Read& read, uint32_t divisor) {
  device::RestOf<T> rests[ExactRow<T>::kCount];
  ExactRow<T> sums;
  for_each_source<unroll_of(sources)>(0, sources, read, [&](const uint4& row, bool first) {
    if (first) {
      sums.start(rests, row);
    } else {
      sums.add(rests, row);
    }
  });
  return sums.template finish<A>(rests, divisor);
}

/// Of a thread's memory, for exact sums.
inline constexpr uint32_t kMaxExactBytes = 448;

/// A slice of exact sums: of all elements of a row, or of some.
template <Dtype T>
struct ExactSlice {
  static constexpr uint32_t kElementBytes = sizeof(typename device::Element<T>::Bits);
  static constexpr uint32_t kRow = 16 / kElementBytes;
  static constexpr uint32_t kSlices =
      (sizeof(device::ExactSums<T, kRow>) + kMaxExactBytes - 1) / kMaxExactBytes;
  static constexpr uint32_t kCount = kRow / kSlices;
  using Sums = device::ExactSums<T, kCount>;
  static_assert(kCount * kSlices == kRow && sizeof(Sums) <= kMaxExactBytes);
};

template <Dtype T>
__device__ __noinline__ void start_exactly(void* sums, const uint8_t* some) {
  using Slice = ExactSlice<T>;
  static_cast<typename Slice::Sums*>(sums)->start(some, Slice::kCount);
}
template <Dtype T>
__device__ __noinline__ void add_exactly(void* sums, const uint8_t* some) {
  using Slice = ExactSlice<T>;
  static_cast<typename Slice::Sums*>(sums)->add(some, Slice::kCount);
}
template <Dtype T, class A>
__device__ __noinline__ void finish_exactly(void* sums, uint8_t* some, uint32_t divisor) {
  using Slice = ExactSlice<T>;
  static_cast<typename Slice::Sums*>(sums)->template finish<A>(some, Slice::kCount, divisor);
}

/// Calls fn with the type of elements, if it is a float.
template <class Fn>
__device__ inline void with_float(Dtype dtype, Fn fn) {
  switch (dtype) {
#define DTYPE(name, ...)                                    \
  case Dtype::name:                                         \
    if constexpr (device::Element<Dtype::name>::kIsFloat) { \
      fn(Types<Dtype::name, void>{});                       \
    }                                                       \
    return;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
}

/// Exact sums of rows (interpreter/machine.h), for whatever float the call asks for; in slices, as
/// those of a tree.
class AnyExact {
 public:
  __device__ AnyExact(const AnyType& types, uint32_t divisor) : types_(types), divisor_(divisor) {
    with_float(types_.dtype, [&](auto t) {
      using Slice = ExactSlice<decltype(t)::kElement>;
      slices_ = Slice::kSlices;
      slice_bytes_ = Slice::kCount * Slice::kElementBytes;
    });
  }
  __device__ uint32_t slices() const { return slices_; }
  // Not inlined: one copy of each, not one in every body of a packet format.
  __device__ __noinline__ void start(const Tile& tile, uint32_t slice) {
    with_float(types_.dtype, [&](auto t) {
      start_exactly<decltype(t)::kElement>(sums_, tile.bytes() + slice * slice_bytes_);
    });
  }
  __device__ __noinline__ void add(const Tile& tile, uint32_t slice) {
    with_float(types_.dtype, [&](auto t) {
      add_exactly<decltype(t)::kElement>(sums_, tile.bytes() + slice * slice_bytes_);
    });
  }
  __device__ __noinline__ void finish(Tile& tile, uint32_t slice) {
    with_types(types_.dtype, types_.accumulate, [&](auto t) {
      using T = decltype(t);
      if constexpr (device::Element<T::kElement>::kIsFloat) {
        finish_exactly<T::kElement, typename T::Sum>(sums_, tile.bytes() + slice * slice_bytes_,
                                                     divisor_);
      }
    });
  }

 private:
  const AnyType& types_;
  const uint32_t divisor_;
  uint32_t slices_ = 1, slice_bytes_ = 16;
  alignas(16) uint8_t sums_[kMaxExactBytes];
};

}  // namespace mscclc::cuda
