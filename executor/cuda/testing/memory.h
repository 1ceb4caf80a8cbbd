// Device memory, and host memory that the device sees, that free themselves; and the one way in
// which CUDA calls are checked.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc::cuda {

/// True if a call went well; else reports "cannot <attempt>: <what CUDA says>".
[[nodiscard]] inline bool succeeded(cudaError_t result, const std::string& attempt,
                                    Diagnostics& diagnostics) {
  if (result == cudaSuccess) return true;
  diagnostics.error("cuda", {}, "cannot " + attempt + ": " + cudaGetErrorString(result));
  return false;
}

class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }

  /// `bytes` of zeros; at least one byte, so that data() is an address.
  [[nodiscard]] bool allocate(uint64_t bytes, Diagnostics& diagnostics) {
    cudaFree(data_);
    data_ = nullptr;
    const uint64_t n = bytes == 0 ? 1 : bytes;
    return succeeded(cudaMalloc(&data_, n), "allocate device memory", diagnostics) &&
           succeeded(cudaMemset(data_, 0, n), "clear device memory", diagnostics);
  }
  /// Allocates and fills.
  template <class T>
  [[nodiscard]] bool upload(const std::vector<T>& from, Diagnostics& diagnostics) {
    return allocate(from.size() * sizeof(T), diagnostics) &&
           succeeded(
               cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice),
               "copy to the device", diagnostics);
  }
  template <class T = uint8_t>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

/// Host memory that host and devices see at one address.
class VisibleMemory {
 public:
  VisibleMemory() = default;
  ~VisibleMemory() { cudaFreeHost(data_); }
  VisibleMemory(VisibleMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  VisibleMemory& operator=(VisibleMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }

  /// `bytes` of zeros; at least one byte.
  [[nodiscard]] bool allocate(uint64_t bytes, Diagnostics& diagnostics) {
    cudaFreeHost(data_);
    data_ = nullptr;
    const uint64_t n = bytes == 0 ? 1 : bytes;
    if (!succeeded(cudaHostAlloc(&data_, n, cudaHostAllocPortable | cudaHostAllocMapped),
                   "allocate host memory that devices see", diagnostics)) {
      return false;
    }
    std::memset(data_, 0, n);
    return true;
  }
  template <class T = uint8_t>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

}  // namespace mscclc::cuda
