// The service as a host thread.
#include <atomic>
#include <thread>
#include <utility>

#include "executor/cuda/testing/ranks_service.h"

namespace mscclc::cuda {
namespace {

class ServiceThread final : public RanksService {
 public:
  ServiceThread(int device, std::function<Served()> serve, std::function<void(cudaError_t)> failed)
      : serve_(std::move(serve)), failed_(std::move(failed)) {
    thread_ = std::thread([this, device] { run(device); });
  }
  ~ServiceThread() override {
    stopping_ = true;
    thread_.join();
  }

 private:
  void run(int device) {
    // The device first: else the first CUDA call would make a context on device 0.
    const cudaError_t result = cudaSetDevice(device);
    if (result != cudaSuccess) return failed_(result);
    for (;;) {
      const bool last = stopping_;
      const Served served = serve_();
      if (served == Served::failed || (served == Served::none && last)) return;
      if (served == Served::none) std::this_thread::yield();
    }
  }

  const std::function<Served()> serve_;
  const std::function<void(cudaError_t)> failed_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<RanksService> start_service(int device, std::function<Served()> serve,
                                            std::function<void(cudaError_t)> failed) {
  return std::make_unique<ServiceThread>(device, std::move(serve), std::move(failed));
}

}  // namespace mscclc::cuda
