// Who takes part in a benchmark: a plan of ours, or a peer's library. Every rank has its own.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "ir/contract.h"
#include "ir/diagnostic.h"
#include "runtime/communicator.h"

namespace mscclc::bench {

/// One collective call, as this rank makes it.
struct Workload {
  const Contract* contract = nullptr;
  uint64_t bytes = 0;  ///< message size: the larger of input and output
  uint64_t part = 0;   ///< bytes of one rank's part (see Chunking)
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  void* input = nullptr;
  void* output = nullptr;
};

class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::string name() const = 0;
  /// Collective. False: it does not take part at this size (nothing reported), or cannot go on.
  virtual bool prepare(const Workload& workload, Diagnostics& diagnostics) = 0;
  /// Starts one call of what was prepared; may be captured in a graph.
  virtual bool launch(cudaStream_t stream, Diagnostics& diagnostics) = 0;
};

/// A plan; loaded for messages of up to `max_bytes`, or what its `select` allows if that is less.
std::unique_ptr<Contender> make_plan_contender(Communicator& communicator,
                                               std::shared_ptr<const Program> plan,
                                               uint64_t max_bytes, bool every_size,
                                               Diagnostics& diagnostics);

/// NCCL, loaded at run time: the library that MSCCLC_NCCL names, or libnccl.so.2. `symmetric`:
/// buffers are registered as symmetric windows. nullptr: reported.
std::unique_ptr<Contender> make_nccl_contender(Communicator& communicator, bool symmetric,
                                               void* buffers, uint64_t bytes,
                                               Diagnostics& diagnostics);

}  // namespace mscclc::bench
