// One rank of the host device that makes GEMMs that overlap, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/overlap.h"
#include "tests/overlap/gemm_world.h"

namespace mscclc::testing {

/// How an object is run.
struct GemmRuns {
  OverlapConfig config;
  MatrixValues values = MatrixValues::small;
  uint32_t runs = 2;
  bool gives_gathered = false;
  bool gives_before = false;  ///< what the activation is of
};

class GemmRank {
 public:
  explicit GemmRank(Communicator& communicator);
  ~GemmRank();
  /// The backend `nccl` is there: this library's collectives stand for NCCL's.
  void lend_collectives();
  /// nullptr: reported.
  std::unique_ptr<Overlap> make(const OverlapConfig& config, Diagnostics& diagnostics);
  /// Makes an object and runs it; exact values are compared with GemmWorld::expected(). `outputs`:
  /// of all runs and weights. What was wrong; "": nothing.
  std::string run(const GemmRuns& runs, std::vector<MatrixBytes>* outputs = nullptr);
  /// One run of an object that make() has made, in the same way.
  std::string run_once(Overlap& object, const GemmRuns& runs, uint32_t run,
                       std::vector<MatrixBytes>* outputs, Diagnostics& diagnostics);

  StreamHandle stream() const { return stream_; }
  Communicator& communicator() { return communicator_; }
  const OverlapOptions& options() const { return options_; }
  OverlapOptions& options() { return options_; }

 private:
  struct Placed;

  Communicator& communicator_;
  OverlapOwner owner_;
  OverlapOptions options_;
  StreamHandle stream_ = nullptr;
};

}  // namespace mscclc::testing
