#include <chrono>

#include "executor/cuda/testing/ranks_proxy.h"
#include "executor/port_slots.h"

namespace mscclc::cuda {

using device::PortRequest;
using device::PortWhat;

RanksProxy::RanksProxy(Queue queue) : queue_(std::move(queue)) {
  int device = 0;
  cudaError_t result = cudaGetDevice(&device);
  if (result == cudaSuccess) result = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  void* staging = nullptr;
  if (result == cudaSuccess) result = cudaHostAlloc(&staging, sizeof(uint64_t), 0);
  staging_ = static_cast<uint64_t*>(staging);
  error_ = result;
  if (result != cudaSuccess) return;
  service_ = start_service(
      device, [this] { return serve_request(); }, [this](cudaError_t why) { error_ = why; });
}

RanksProxy::~RanksProxy() {
  service_.reset();
  cudaFreeHost(staging_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

RanksProxy::Slowest RanksProxy::slowest() const {
  return {slowest_bytes_.load(), slowest_time_.load()};
}

// serve_request() waits for the copy before the next count is staged.
cudaError_t RanksProxy::write_count(uint64_t* count, uint64_t value) {
  *staging_ = value;
  return cudaMemcpyAsync(count, staging_, sizeof *count, cudaMemcpyDefault, stream_);
}

// Only a proxy adds to a port's count, and it alone knows it: it reads, adds, and writes back.
cudaError_t RanksProxy::handle(const PortRequest& request, uint64_t number) {
  if (queue_.ends[request.channel].port == 0) return cudaErrorInvalidValue;
  if (request.what == PortWhat::put || request.what == PortWhat::put_and_signal) {
    const cudaError_t result = cudaMemcpyAsync(reinterpret_cast<void*>(request.to),
                                               reinterpret_cast<const void*>(request.from),
                                               request.bytes, cudaMemcpyDefault, stream_);
    if (result != cudaSuccess || request.what == PortWhat::put) return result;
  }
  if (request.what == PortWhat::flush) {
    return write_count(queue_.ranks.flushed + request.channel, number + 1);
  }
  uint64_t* count = queue_.ends[request.channel].partner;
  if (count == nullptr) return cudaSuccess;
  cudaError_t result = cudaMemcpyAsync(staging_, count, sizeof *count, cudaMemcpyDefault, stream_);
  if (result == cudaSuccess) result = cudaStreamSynchronize(stream_);
  return result == cudaSuccess ? write_count(count, *staging_ + 1) : result;
}

Served RanksProxy::serve_request() {
  if (error_ != cudaSuccess) return Served::failed;
  const uint64_t number = *queue_.handled;
  PortRequest request;
  if (!read_request(queue_.ranks, number, request)) return Served::none;
  const auto began = std::chrono::steady_clock::now();
  cudaError_t result = handle(request, number);
  if (result == cudaSuccess) result = cudaStreamSynchronize(stream_);
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
  if (static_cast<uint64_t>(took.count()) > slowest_time_) {
    slowest_time_ = static_cast<uint64_t>(took.count());
    slowest_bytes_ = request.bytes;
  }
  if (result != cudaSuccess) {
    error_ = result;
    return Served::failed;
  }
  std::atomic_ref(*queue_.handled).store(number + 1, std::memory_order_release);
  return Served::one;
}

}  // namespace mscclc::cuda
