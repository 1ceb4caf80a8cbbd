#include <iterator>

#include "executor/cuda/device/access.cuh"
#include "tools/bench/kernels/handwritten.cuh"
#include "tools/bench/kernels/push.h"

namespace mscclc::bench {
namespace {

template <Push kPush>
__device__ void write_request(const Pushes& pushes, uint64_t number) {
  const uint64_t words[2] = {number, number};
  auto* const slot = reinterpret_cast<uint8_t*>(pushes.slot);
  if constexpr (kPush == Push::fenced_stores) cuda::fence_system();
  cuda::store_volatile16(slot, words);
  if constexpr (words_of(kPush) > 2) cuda::store_volatile16(slot + 16, words);
}

template <Push kPush>
__global__ void push_all(__grid_constant__ const Pushes pushes) {
  uint64_t begin = 0;
  for (uint64_t number = 1; number <= uint64_t{pushes.untimed} + pushes.timed; ++number) {
    if (number == uint64_t{pushes.untimed} + 1) begin = cuda::nanoseconds();
    write_request<kPush>(pushes, number);
    Patience patience;
    for (bool come = false; !come;) {
      come = cuda::load_acquire(pushes.answer) >= number;
      patience.wait(come);
    }
  }
  *pushes.nanoseconds = cuda::nanoseconds() - begin;
}

template <Push kPush>
cudaError_t launch(const Pushes& pushes, cudaStream_t stream) {
  push_all<kPush><<<1, 1, 0, stream>>>(pushes);
  return cudaGetLastError();
}

/// Of each Push, in their order.
constexpr struct {
  const char* name;
  cudaError_t (*launch)(const Pushes&, cudaStream_t);
} kVariants[] = {{"one store of 16 bytes", launch<Push::one_store>},
                 {"two stores of 16 bytes", launch<Push::two_stores>},
                 {"a fence, two stores of 16 bytes", launch<Push::fenced_stores>}};
static_assert(std::size(kVariants) == kPushes.size());

}  // namespace

const char* name(Push push) { return kVariants[static_cast<size_t>(push)].name; }

cudaError_t launch_pushes(Push push, const Pushes& pushes, cudaStream_t stream) {
  return kVariants[static_cast<size_t>(push)].launch(pushes, stream);
}

}  // namespace mscclc::bench
