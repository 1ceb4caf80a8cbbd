#include "executor/cuda/ranks_proxy.h"

namespace mscclc::cuda {

using device::PortRequest;
using device::PortWhat;

RanksProxy::RanksProxy(std::vector<Rank> ranks) : ranks_(std::move(ranks)) {
  int device = 0;
  error_ = cudaGetDevice(&device);
  if (error_ == cudaSuccess) thread_ = std::thread([this, device] { serve(device); });
}

RanksProxy::~RanksProxy() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

// Only a proxy adds to a port's count, and it alone knows it: it reads, adds, and writes back.
cudaError_t RanksProxy::handle(const Rank& rank, const PortRequest& request, cudaStream_t stream,
                               uint64_t* staging) {
  if (request.what == PortWhat::put) {
    return cudaMemcpyAsync(reinterpret_cast<void*>(request.to),
                           reinterpret_cast<const void*>(request.from), request.bytes,
                           cudaMemcpyDefault, stream);
  }
  uint64_t* count = rank.partners[request.channel];
  if (request.what != PortWhat::signal || count == nullptr) return cudaSuccess;
  cudaError_t result = cudaMemcpyAsync(staging, count, sizeof *count, cudaMemcpyDefault, stream);
  if (result == cudaSuccess) result = cudaStreamSynchronize(stream);
  ++*staging;
  if (result != cudaSuccess) return result;
  return cudaMemcpyAsync(count, staging, sizeof *count, cudaMemcpyDefault, stream);
}

/// True if there was a request.
bool RanksProxy::serve_rank(Rank& rank, cudaStream_t stream, uint64_t* staging) {
  const uint64_t number = *rank.handled;
  PortRequest& slot = rank.slots[number % rank.capacity];
  // Pairs with the release store in post_request().
  if (std::atomic_ref(slot.ready).load(std::memory_order_acquire) != number + 1) return false;
  cudaError_t result = handle(rank, slot, stream, staging);
  if (result == cudaSuccess) result = cudaStreamSynchronize(stream);
  if (result != cudaSuccess) {
    error_ = result;
    return false;
  }
  std::atomic_ref(*rank.handled).store(number + 1, std::memory_order_release);
  return true;
}

void RanksProxy::serve(int device) {
  // The device first: else the first CUDA call would make a context on device 0.
  cudaError_t result = cudaSetDevice(device);
  cudaStream_t stream = nullptr;
  void* staging = nullptr;
  if (result == cudaSuccess) result = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (result == cudaSuccess) result = cudaHostAlloc(&staging, sizeof(uint64_t), 0);
  error_ = result;
  while (error_ == cudaSuccess) {
    const bool last = stopping_;
    bool any = false;
    for (Rank& rank : ranks_) any |= serve_rank(rank, stream, static_cast<uint64_t*>(staging));
    if (!any && last) break;
    if (!any) std::this_thread::yield();
  }
  cudaFreeHost(staging);
  if (stream != nullptr) cudaStreamDestroy(stream);
}

}  // namespace mscclc::cuda
