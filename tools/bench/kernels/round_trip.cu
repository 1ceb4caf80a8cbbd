#include <iterator>

#include "executor/cuda/device/access.cuh"
#include "tools/bench/kernels/handwritten.cuh"
#include "tools/bench/kernels/round_trip.h"

namespace mscclc::bench {
namespace {

template <Signal kSignal>
constexpr bool is_relaxed() {
  return kSignal == Signal::relaxed_add || kSignal == Signal::relaxed_store;
}

__device__ void store_relaxed(uint64_t* word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

/// Sends signal number `number`, counted from 1.
template <Signal kSignal>
__device__ void send(const RoundTrips& side, uint64_t number) {
  switch (kSignal) {
    case Signal::add:
      return cuda::add_release(side.partner);
    case Signal::relaxed_add:
      return cuda::add_relaxed(side.partner);
    case Signal::store: {
      const uint64_t count = *static_cast<volatile uint64_t*>(side.sent) + 1;
      *static_cast<volatile uint64_t*>(side.sent) = count;
      return cuda::store_release(side.partner, count);
    }
    case Signal::kept_store:
      return cuda::store_release(side.partner, number);
    case Signal::fenced_store:
      asm volatile("fence.acq_rel.sys;" ::: "memory");
      return store_relaxed(side.partner, number);
    case Signal::relaxed_store:
      return store_relaxed(side.partner, number);
  }
}

template <Signal kSignal>
__device__ void take(const RoundTrips& side, uint64_t number) {
  Patience patience;
  for (bool come = false; !come;) {
    come = (is_relaxed<kSignal>() ? cuda::load_relaxed(side.arrived)
                                  : cuda::load_acquire(side.arrived)) >= number;
    patience.wait(come);
  }
}

template <Signal kSignal>
__global__ void play(__grid_constant__ const RoundTrips side) {
  uint64_t begin = 0;
  for (uint64_t number = 1; number <= uint64_t{side.untimed} + side.timed; ++number) {
    if (number == uint64_t{side.untimed} + 1) begin = cuda::nanoseconds();
    if (side.serves) send<kSignal>(side, number);
    take<kSignal>(side, number);
    if (!side.serves) send<kSignal>(side, number);
  }
  *side.nanoseconds = cuda::nanoseconds() - begin;
}

template <Signal kSignal>
cudaError_t launch(const RoundTrips& side, cudaStream_t stream) {
  play<kSignal><<<1, 1, 0, stream>>>(side);
  return cudaGetLastError();
}

/// Of each Signal, in their order.
constexpr struct {
  const char* name;
  cudaError_t (*launch)(const RoundTrips&, cudaStream_t);
} kVariants[] = {{"red.release.sys.add", launch<Signal::add>},
                 {"add here, st.release.sys", launch<Signal::store>},
                 {"st.release.sys, count in a register", launch<Signal::kept_store>},
                 {"fence.acq_rel.sys, st.relaxed.sys", launch<Signal::fenced_store>},
                 {"red.relaxed.sys.add", launch<Signal::relaxed_add>},
                 {"st.relaxed.sys", launch<Signal::relaxed_store>}};
static_assert(std::size(kVariants) == kSignals.size());

}  // namespace

const char* name(Signal signal) { return kVariants[static_cast<size_t>(signal)].name; }

cudaError_t launch_round_trips(Signal signal, const RoundTrips& side, cudaStream_t stream) {
  return kVariants[static_cast<size_t>(signal)].launch(side, stream);
}

}  // namespace mscclc::bench
