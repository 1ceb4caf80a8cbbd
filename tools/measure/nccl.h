// NCCL as a baseline: what plans are timed beside. The few functions that are needed are declared
// in nccl.cc and found at run time, so that nothing here needs NCCL to be built or to run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ir/contract/contract.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/ops.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/stream.h"

namespace mscclc {

/// A collective call, as one rank makes it.
struct NcclCall {
  const Contract* contract = nullptr;
  uint64_t part = 0;  ///< bytes of one rank's part (Chunking)
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  const uint8_t* input = nullptr;  ///< of the device, as `output`
  uint8_t* output = nullptr;
};

/// One rank of NCCL's. The device must be current in the thread that uses it, and a library that is
/// loaded stays so. Thread safety: one thread at a time.
class NcclRank {
 public:
  /// Collective: makes a communicator of the bootstrap's ranks, with the library that MSCCLC_NCCL
  /// names, or libnccl.so.2. nullptr: reported (no-nccl, nccl), on all ranks where one has no
  /// library.
  [[nodiscard]] static std::unique_ptr<NcclRank> make(Bootstrap& bootstrap,
                                                      Diagnostics& diagnostics);
  ~NcclRank();
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  /// "2.28.9"
  std::string version() const;
  /// The library's file.
  const std::string& file() const;
  /// Collective: makes memory a symmetric window. False: reported, or there are none.
  [[nodiscard]] bool register_window(void* data, uint64_t bytes, Diagnostics& diagnostics);

  /// Is it one of NCCL's collectives, of a type that it has? Sends and receives in place would
  /// overtake one another.
  static bool can_do(const Contract& contract, Dtype dtype, bool in_place);
  /// Has NCCL kernels over symmetric windows for it?
  static bool has_window_kernel(CollectiveKind kind);
  /// Starts a call on a stream; may be captured in a graph. False: reported. REQUIRES: can_do().
  [[nodiscard]] bool start(const NcclCall& call, StreamHandle stream, Diagnostics& diagnostics);

 private:
  struct State;
  explicit NcclRank(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mscclc
