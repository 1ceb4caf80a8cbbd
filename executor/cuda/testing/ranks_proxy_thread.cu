// The proxy as a host thread.
#include "executor/cuda/testing/ranks_proxy.h"

namespace mscclc::cuda {

void RanksProxy::begin(int device) {
  thread_ = std::thread([this, device] { serve(device); });
}

void RanksProxy::end() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void RanksProxy::serve(int device) {
  // The device first: else the first CUDA call would make a context on device 0.
  error_ = cudaSetDevice(device);
  while (error_ == cudaSuccess) {
    const bool last = stopping_;
    const bool any = serve_request();
    if (!any && last) break;
    if (!any) std::this_thread::yield();
  }
}

}  // namespace mscclc::cuda
