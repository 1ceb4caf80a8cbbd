// The proxy of all ranks of one process: does what blocks post to ports (executor/launch.h:
// PortQueue) while a launch runs.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/cuda/testing/ranks_service.h"
#include "executor/launch.h"

namespace mscclc::cuda {

class RanksProxy {
 public:
  /// The queue of all ranks, as the host sees it.
  struct Queue {
    device::PortQueue ranks;
    uint64_t* handled;                     ///< its
    std::vector<device::ChannelEnd> ends;  ///< by channel; no block asks for one that is no port
  };

  /// Takes all that it needs of the device before any block runs: to allocate or to make a stream
  /// may wait for a kernel, which would be one that waits for the proxy.
  explicit RanksProxy(Queue queue);
  /// Serves what is still queued.
  ~RanksProxy();
  RanksProxy(const RanksProxy&) = delete;
  RanksProxy& operator=(const RanksProxy&) = delete;

  /// cudaSuccess, or why a copy failed; nothing is served after that.
  cudaError_t error() const { return error_.load(); }
  /// The request that took longest so far, for reports of waits that were given up.
  struct Slowest {
    uint64_t bytes = 0;  ///< of a put
    uint64_t nanoseconds = 0;
  };
  /// REQUIRES: no block runs.
  Slowest slowest() const;

 private:
  Served serve_request();
  cudaError_t handle(const device::PortRequest& request, uint64_t number);
  cudaError_t write_count(uint64_t* count, uint64_t value);

  Queue queue_;
  cudaStream_t stream_ = nullptr;
  uint64_t* staging_ = nullptr;
  std::atomic<uint64_t> slowest_bytes_ = 0, slowest_time_ = 0;
  std::atomic<cudaError_t> error_ = cudaSuccess;
  std::unique_ptr<RanksService> service_;
};

}  // namespace mscclc::cuda
