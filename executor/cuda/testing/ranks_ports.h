// The ports of all ranks: the queue to which blocks post requests, and the proxy that serves it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/testing/memory.h"
#include "executor/cuda/testing/ranks_proxy.h"
#include "executor/launch.h"

namespace mscclc::cuda {

class RanksPorts {
 public:
  /// An empty queue, which nothing serves. `channels`: of all ranks.
  [[nodiscard]] bool allocate(uint32_t channels, Diagnostics& d);
  /// As blocks see it. REQUIRES: allocate(); so in what follows.
  device::PortQueue queue() const;
  /// Starts the proxy, unless it runs. `ends`: of all channels.
  void serve(const std::vector<device::ChannelEnd>& ends);
  /// Ends the proxy.
  void stop() { proxy_.reset(); }
  /// cudaSuccess, or why a copy failed. REQUIRES: serve(); so in what follows.
  cudaError_t error() const { return proxy_->error(); }
  /// How long a copy has taken: a wait may be given up because the proxy is slow.
  std::string text() const;

 private:
  DeviceMemory claimed_, seen_, flushed_;
  VisibleMemory requests_, handled_;
  std::optional<RanksProxy> proxy_;
};

}  // namespace mscclc::cuda
