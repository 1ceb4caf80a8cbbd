// NCCL's all-reduce, where the machine has NCCL: calls of another library beside ours.
#pragma once

#include <memory>

#include "ir/program/program.h"
#include "ir/support/result.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"

namespace mscclc::testing {

class NcclSum {
 public:
  /// Collective, of the communicator's ranks. Fails where something is missing.
  static Result<std::unique_ptr<NcclSum>> make(Communicator& communicator);
  ~NcclSum();
  NcclSum(const NcclSum&) = delete;
  NcclSum& operator=(const NcclSum&) = delete;

  /// Adds up `count` floats of all ranks in place. False: NCCL has refused.
  bool launch(void* data, size_t count, StreamHandle stream);

 private:
  NcclSum() = default;
  struct Library;
  std::unique_ptr<Library> library_;
  void* comm_ = nullptr;
};

}  // namespace mscclc::testing
