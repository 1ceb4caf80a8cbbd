// Work of the host that goes on while blocks run: a thread of its own; where threads of blocks are
// fibers, one more that takes turns with them (ranks_service_on_host.cc).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace mscclc::cuda {

/// Runs until it is destroyed.
class RanksService {
 public:
  RanksService() = default;
  virtual ~RanksService() = default;
  RanksService(const RanksService&) = delete;
  RanksService& operator=(const RanksService&) = delete;
};

enum class Served : uint8_t { one, none, failed };

/// Calls `serve` again and again, until it has failed, or the service is destroyed and nothing is
/// left to do. `failed`: `device` cannot be used there; nothing is served then.
std::unique_ptr<RanksService> start_service(int device, std::function<Served()> serve,
                                            std::function<void(cudaError_t)> failed);

}  // namespace mscclc::cuda
