// What the code of a compiled kernel says of a step's operands.
#pragma once

#include <cstdint>

namespace mscclc::cuda {

/// What is known of a step: as many moves, each of some destinations and sources, in these places
/// (device::CompiledPlace), destinations of a move first. Or so many targets, and no places.
template <uint32_t count, uint32_t dsts, uint32_t srcs, uint32_t... places>
struct CompiledOperands {
  static constexpr uint32_t kCount = count, kDsts = dsts, kSrcs = srcs, kEach = dsts + srcs;
  static constexpr bool kTree = false, kExact = false;
  static_assert(sizeof...(places) == count * (dsts + srcs));
  __device__ static constexpr uint32_t place(uint32_t i) {
    constexpr uint32_t all[] = {places..., 0};
    return all[i];
  }
};

/// The same of a step that adds up as a tree.
template <uint32_t count, uint32_t dsts, uint32_t srcs, uint32_t... places>
struct CompiledTree : CompiledOperands<count, dsts, srcs, places...> {
  static constexpr bool kTree = true;
};

/// The same of a step whose sums are exact.
template <uint32_t count, uint32_t dsts, uint32_t srcs, uint32_t... places>
struct CompiledExact : CompiledOperands<count, dsts, srcs, places...> {
  static constexpr bool kExact = true;
};

/// Where the values of a row function are that is handed a step's sum.
template <uint32_t... places>
struct CompiledValues {
  __device__ static constexpr uint32_t place(uint32_t i) {
    constexpr uint32_t all[] = {places...};
    return all[i];
  }
};

}  // namespace mscclc::cuda
