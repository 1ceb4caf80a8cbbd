// The proxies of all ranks of one process, as one host thread: does what blocks post to ports
// (executor/launch.h: PortQueue) while a launch runs.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "executor/launch.h"

namespace mscclc::cuda {

class RanksProxy {
 public:
  /// One rank's queue, as the host sees it.
  struct Rank {
    device::PortRequest* slots;
    uint64_t capacity;
    uint64_t* handled;
    std::vector<uint64_t*> partners;  ///< by channel: the count at the other end; nullptr: nobody
  };

  explicit RanksProxy(std::vector<Rank> ranks);
  /// Serves what is still queued, then ends the thread.
  ~RanksProxy();
  RanksProxy(const RanksProxy&) = delete;
  RanksProxy& operator=(const RanksProxy&) = delete;

  /// cudaSuccess, or why a copy failed; the thread has then ended.
  cudaError_t error() const { return error_.load(); }

 private:
  void serve(int device);
  bool serve_rank(Rank& rank, cudaStream_t stream, uint64_t* staging);
  cudaError_t handle(const Rank& rank, const device::PortRequest& request, cudaStream_t stream,
                     uint64_t* staging);

  std::vector<Rank> ranks_;
  std::atomic<bool> stopping_ = false;
  std::atomic<cudaError_t> error_ = cudaSuccess;
  std::thread thread_;
};

}  // namespace mscclc::cuda
