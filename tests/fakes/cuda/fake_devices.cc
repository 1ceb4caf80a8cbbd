#include "tests/fakes/cuda/fake_devices.h"

#include <fmt/format.h>

#include <utility>

namespace mscclc::cuda {

abi::Result FakeDevices::Init(unsigned) { return abi::kSuccess; }

abi::Result FakeDevices::GetErrorName(abi::Result error, const char** text) {
  switch (error) {
    case abi::kInvalidValue:
      *text = "CUDA_ERROR_INVALID_VALUE";
      break;
    case abi::kOutOfMemory:
      *text = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case abi::kInvalidImage:
      *text = "CUDA_ERROR_INVALID_IMAGE";
      break;
    case abi::kNoBinaryForGpu:
      *text = "CUDA_ERROR_NO_BINARY_FOR_GPU";
      break;
    case abi::kNotPermitted:
      *text = "CUDA_ERROR_NOT_PERMITTED";
      break;
    case abi::kNotSupported:
      *text = "CUDA_ERROR_NOT_SUPPORTED";
      break;
    case abi::kUnknown:
      *text = "CUDA_ERROR_UNKNOWN";
      break;
    default:
      return abi::kInvalidValue;
  }
  return abi::kSuccess;
}

abi::Result FakeDevices::GetErrorString(abi::Result error, const char** text) {
  *text = error == abi::kOutOfMemory    ? "out of memory"
          : error == abi::kNotPermitted ? "operation not permitted"
                                        : "it went wrong";
  return abi::kSuccess;
}

abi::Result FakeDevices::DeviceGetCount(int* count) {
  *count = options().devices;
  return abi::kSuccess;
}

abi::Result FakeDevices::DeviceGetName(char* name, int bytes, abi::Ordinal) {
  fmt::format_to_n(name, static_cast<size_t>(bytes - 1), "Fake GPU");
  return abi::kSuccess;
}

abi::Result FakeDevices::DeviceGetAttribute(int* value, abi::Attribute attribute, abi::Ordinal) {
  switch (attribute) {
    case abi::kMultiprocessorCount:
      *value = options().multiprocessors;
      return abi::kSuccess;
    case abi::kVirtualMemoryManagementSupported:
      *value = options().mappings;
      return abi::kSuccess;
    case abi::kPosixFdSupported:
      *value = options().fd;
      return abi::kSuccess;
    case abi::kRdmaOfMappingsSupported:
      *value = options().dma_buf;
      return abi::kSuccess;
    case abi::kCanUse64BitStreamMemOps:
      *value = options().writes;
      return abi::kSuccess;
    case abi::kDmaBufSupported:
      *value = options().dma_buf;
      return abi::kSuccess;
    case abi::kFabricSupported:
      *value = options().fabric;
      return abi::kSuccess;
    case abi::kMulticastSupported:
      *value = options().multicast;
      return abi::kSuccess;
    case abi::kComputeCapabilityMajor:
      *value = options().capability;
      return abi::kSuccess;
    case abi::kComputeCapabilityMinor:
      *value = 0;
      return abi::kSuccess;
  }
  return abi::kInvalidValue;
}

abi::Result FakeDevices::DeviceGetUuid(abi::Uuid* uuid, abi::Ordinal device) {
  *uuid = {};
  uuid->bytes[15] = static_cast<unsigned char>(options().alone ? process().id : device);
  return abi::kSuccess;
}

// cuda:0 is 0000:01:00.0, and so on.
abi::Result FakeDevices::DeviceGetPCIBusId(char* text, int bytes, abi::Ordinal device) {
  const auto end = fmt::format_to_n(text, bytes - 1, "0000:{:02X}:00.0",
                                    1 + (options().alone ? process().id : device));
  *end.out = 0;
  return abi::kSuccess;
}

abi::Result FakeDevices::DeviceGetP2PAttribute(int* value, abi::P2PAttribute attribute,
                                               abi::Ordinal from, abi::Ordinal to) {
  if (from == to) return misuse("asks what joins a GPU to itself", abi::kInvalidDevice);
  *value = options().peers && (attribute == abi::kAccessSupported || options().atomics);
  return abi::kSuccess;
}

abi::Result FakeDevices::DeviceCanAccessPeer(int* can, abi::Ordinal, abi::Ordinal) {
  *can = options().peers;
  return abi::kSuccess;
}

abi::Result FakeDevices::DevicePrimaryCtxRetain(abi::Context* context, abi::Ordinal device) {
  if (device < 0 || device >= options().devices) return abi::kInvalidDevice;
  ++process().contexts[device];
  *context = process().context(device);
  return abi::kSuccess;
}

abi::Result FakeDevices::DevicePrimaryCtxRelease(abi::Ordinal device) {
  const auto found = process().contexts.find(device);
  if (found == process().contexts.end()) {
    return misuse(fmt::format("releases the context of cuda:{}, which it does not have", device),
                  abi::kInvalidContext);
  }
  if (--found->second > 0) return abi::kSuccess;
  process().contexts.erase(found);
  std::erase_if(process().streams, [&](const auto& entry) {
    return entry.first == nullptr && entry.second.device == device;
  });
  const std::string left = left_in_context(process(), device);
  return left.empty() ? abi::kSuccess
                      : misuse(fmt::format("ends the context of cuda:{} under {}", device, left),
                               abi::kSuccess);
}

std::string FakeDevices::left_in_context(Process& process, int device) {
  for (const auto& [stream, entry] : process.streams) {
    if (entry.device == device) return "a stream";
  }
  for (const auto& [module, entry] : process.modules) {
    if (entry.device == device) return "a module";
  }
  for (const auto& [address, entry] : process.plain) {
    if (entry.memory->device == device && entry.pool == 0 && !entry.managed) return "memory";
  }
  for (const auto& [address, mapping] : process.mappings) {
    const auto handle = process.handles.find(mapping.handle);
    const bool here = handle != process.handles.end() && handle->second.made_here;
    if (here && mapping.memory->device == device) return "a mapping of its memory";
  }
  return "";
}

abi::Result FakeDevices::CtxGetCurrent(abi::Context* context) {
  const std::vector<abi::Context>& stack = contexts();
  *context = stack.empty() ? nullptr : stack.back();
  return abi::kSuccess;
}

abi::Result FakeDevices::CtxSetCurrent(abi::Context context) {
  std::vector<abi::Context>& stack = contexts();
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return abi::kSuccess;
}

abi::Result FakeDevices::CtxPushCurrent(abi::Context context) {
  contexts().push_back(context);
  if (current_device() >= 0) return abi::kSuccess;
  contexts().pop_back();
  return misuse("makes a context current that is not retained", abi::kInvalidContext);
}

abi::Result FakeDevices::CtxPopCurrent(abi::Context* context) {
  std::vector<abi::Context>& stack = contexts();
  if (stack.empty()) return misuse("pops a context too many", abi::kInvalidContext);
  *context = stack.back();
  stack.pop_back();
  return abi::kSuccess;
}

abi::Result FakeDevices::CtxEnablePeerAccess(abi::Context peer, unsigned) {
  const int device = current_device();
  if (device < 0) return misuse("enables access without a context", abi::kInvalidContext);
  for (const auto& [owner, count] : process().contexts) {
    if (process().context(owner) != peer) continue;
    const bool added = process().peers.insert({device, owner}).second;
    return added ? abi::kSuccess : abi::kPeerAccessAlreadyEnabled;
  }
  return misuse("enables access to a context that is not retained", abi::kInvalidContext);
}

abi::Result FakeDevices::ThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode());
  return abi::kSuccess;
}

}  // namespace mscclc::cuda
