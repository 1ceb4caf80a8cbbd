#include "tools/doctor/cuda_facts.h"

#include <fmt/format.h>

#include <array>

namespace mscclc::doctor {
namespace {

// Numbers of the driver's interface (CUdevice_attribute), which stay as they are.
enum Attribute {
  kMajor = 75,
  kMinor = 76,
  kSharesFd = 103,
  kDmaBuf = 124,
  kSharesFabric = 128,
  kMulticast = 132,
};

/// The functions that are asked. Device handles are ints, as is every result; 0: it went well.
struct Functions {
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*can_access)(int*, int, int) = nullptr;
};

template <class F>
bool find_one(const FindSymbol& find, const char* name, F& function) {
  function = reinterpret_cast<F>(find(name));
  return function != nullptr;
}

bool find_all(const FindSymbol& find, Functions& f) {
  return find_one(find, "cuInit", f.init) && find_one(find, "cuDriverGetVersion", f.version) &&
         find_one(find, "cuDeviceGetCount", f.count) && find_one(find, "cuDeviceGet", f.device) &&
         find_one(find, "cuDeviceGetName", f.name) &&
         find_one(find, "cuDeviceGetAttribute", f.attribute) &&
         find_one(find, "cuDeviceCanAccessPeer", f.can_access);
}

/// 0 where the driver does not know the attribute.
int attribute(const Functions& f, Attribute which, int device) {
  int value = 0;
  return f.attribute(&value, which, device) == 0 ? value : 0;
}

GpuFacts ask_gpu(const Functions& f, const std::vector<int>& devices, size_t index) {
  const int device = devices[index];
  std::array<char, 256> name = {};
  GpuFacts gpu;
  if (f.name(name.data(), static_cast<int>(name.size()) - 1, device) == 0) gpu.name = name.data();
  gpu.major = attribute(f, kMajor, device);
  gpu.minor = attribute(f, kMinor, device);
  gpu.shares_fd = attribute(f, kSharesFd, device) != 0;
  gpu.shares_fabric = attribute(f, kSharesFabric, device) != 0;
  gpu.multicast = attribute(f, kMulticast, device) != 0;
  gpu.dma_buf = attribute(f, kDmaBuf, device) != 0;
  for (size_t other = 0; other < devices.size(); ++other) {
    int can = 0;
    const bool known = other != index && f.can_access(&can, device, devices[other]) == 0;
    gpu.reaches.push_back(other == index || (known && can != 0));
  }
  return gpu;
}

}  // namespace

CudaFacts ask_driver(const FindSymbol& find) {
  CudaFacts facts;
  facts.asked = true;
  Functions f;
  if (!find_all(find, f)) {
    facts.error = "it lacks functions of CUDA 11";
    return facts;
  }
  int count = 0;
  if (const int result = f.init(0); result != 0) {
    facts.error = fmt::format("cuInit says {}", result);
  } else if (f.version(&facts.version) != 0 || f.count(&count) != 0 || count < 0) {
    facts.error = "it does not say which GPUs there are";
  }
  if (!facts.error.empty()) return facts;
  std::vector<int> devices;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    if (f.device(&device, i) == 0) devices.push_back(device);
  }
  for (size_t i = 0; i < devices.size(); ++i) facts.gpus.push_back(ask_gpu(f, devices, i));
  return facts;
}

}  // namespace mscclc::doctor
