// What takes part in a benchmark: a plan of ours, another library, or a kernel that shows a limit.
// Every rank has its own.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "ir/contract/contract.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "tools/bench/plans/plan_source.h"
#include "tools/bench/ranks/peer_memory.h"
#include "tools/bench/results/result.h"

namespace mscclc::bench {

/// One collective call, as this rank makes it.
struct Workload {
  const Contract* contract = nullptr;
  uint64_t bytes = 0;  ///< message size: the larger of input and output
  uint64_t part = 0;   ///< bytes of one rank's part (see Chunking)
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  bool in_place = false;
  bool previous_allows_early =
      false;  ///< calls will also be launched after kernels that let them begin
  uint8_t* input = nullptr;
  uint8_t* output = nullptr;
};

class ClockRows;

class Contender {
 public:
  virtual ~Contender() = default;
  virtual std::string name() const = 0;
  virtual Role role() const = 0;
  /// What orders two calls.
  virtual std::string ordered_by() const = 0;
  /// Does it what the collective promises? Else its results are not looked at.
  virtual bool has_results() const { return true; }
  /// Does a call out of place leave its input as it was?
  virtual bool keeps_input() const { return true; }
  /// Collective. False: it does not take part in such calls (nothing reported), or cannot.
  [[nodiscard]] virtual bool prepare(const Workload& workload, Diagnostics& diagnostics) = 0;
  /// Starts one call of what was prepared; may be captured in a graph.
  [[nodiscard]] virtual bool launch(cudaStream_t stream, Diagnostics& diagnostics) = 0;
  /// The same after a kernel that lets the call begin early. REQUIRES:
  /// Workload::previous_allows_early.
  [[nodiscard]] virtual bool launch_after_early_kernel(cudaStream_t stream,
                                                       Diagnostics& diagnostics) {
    return launch(stream, diagnostics);
  }
};

/// Collective: a plan, loaded for messages of up to `max_bytes`, or what its `select` allows if
/// that is less (unless `every_size`). `compiled_kernels`: those that lie beside its file, for the
/// calls that they take; else the interpreter. `clocks`: where its calls leave stamps; nullptr:
/// nowhere.
[[nodiscard]] std::unique_ptr<Contender> make_plan_contender(
    Communicator& communicator, const BenchPlan& plan, uint64_t max_bytes, Dtype dtype,
    bool every_size, bool compiled_kernels, const ClockRows* clocks, Diagnostics& diagnostics);

/// Are there kernels beside the plan's file for such a device?
bool has_kernels_beside(const Device& device, const BenchPlan& plan);

/// Collective: NCCL, loaded at run time: the library that MSCCLC_NCCL names, or libnccl.so.2.
/// `symmetric`: `memory` is registered as a symmetric window. nullptr: reported. `file`: which
/// library it is.
[[nodiscard]] std::unique_ptr<Contender> make_nccl_contender(Communicator& communicator,
                                                             bool symmetric, const Memory& memory,
                                                             std::string& file,
                                                             Diagnostics& diagnostics);

/// A kernel that moves what the collective must move at least, and waits for no rank.
std::unique_ptr<Contender> make_copy_contender(const PeerMemory& buffers);

/// One-shot AllReduce in LL16 packets, f32 sums of small messages. nullptr: reported.
[[nodiscard]] std::unique_ptr<Contender> make_handwritten_one_shot(Communicator& communicator,
                                                                   Diagnostics& diagnostics);
/// AllGather, AllToAll and ReduceScatter of f32 sums out of place, up to 4 MiB, in LL128 lines.
/// nullptr: reported.
[[nodiscard]] std::unique_ptr<Contender> make_handwritten_exchange(Communicator& communicator,
                                                                   Diagnostics& diagnostics);
/// Two-shot AllReduce, f32 sums: in LL128 lines up to 4 MiB, above that pushed step by step with
/// sums stored straight into the peers' outputs. nullptr: reported.
[[nodiscard]] std::unique_ptr<Contender> make_handwritten_two_shot(Communicator& communicator,
                                                                   const PeerMemory& buffers,
                                                                   Diagnostics& diagnostics);
/// Two-shot AllReduce, f32 sums, from 8 MiB to `most` bytes, slice by slice through scratch for all
/// shares. nullptr: reported.
[[nodiscard]] std::unique_ptr<Contender> make_handwritten_slices(Communicator& communicator,
                                                                 const PeerMemory& buffers,
                                                                 uint64_t most,
                                                                 Diagnostics& diagnostics);

}  // namespace mscclc::bench
