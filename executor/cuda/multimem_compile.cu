// Compiles multimem.cuh for every switch op, so that ptxas sees all of its instructions. Nothing
// calls this: multicast needs a switch and a host that allow it.
#include "executor/cuda/multimem.cuh"
#include "executor/launch.h"

namespace mscclc::cuda {
namespace {

/// What run_at_switch() needs of a machine.
struct Machine {
  const device::RankContext& rank;
  __device__ uint8_t* base(uint32_t index) const { return rank.bases[index].address; }
  __device__ uint8_t* multicast(uint32_t index) const { return rank.bases[index].multicast; }
};

}  // namespace

__global__ void run_switch_ops(const device::RankContext* rank, SwitchSum sum, uint32_t ops) {
  Machine machine{*rank};
  const device::Frame frame{rank->view};
  for (uint32_t i = 0; i < ops; ++i) {
    run_at_switch(machine, frame, rank->view.ops[i], sum, [&](const device::Stretch& s) {
      if (threadIdx.x == 0) atomicAdd(rank->blocks_done, static_cast<uint32_t>(s.count));
    });
  }
}

}  // namespace mscclc::cuda
