// The GPUs of the fake driver and their contexts; errors as text.
#pragma once

#include <string>

#include "tests/fakes/cuda/fake_core.h"

namespace mscclc::cuda {

class FakeDevices : public virtual FakeCore {
 public:
  abi::Result Init(unsigned flags);
  abi::Result GetErrorName(abi::Result error, const char** text);
  abi::Result GetErrorString(abi::Result error, const char** text);
  abi::Result DeviceGetCount(int* count);
  abi::Result DeviceGetName(char* name, int bytes, abi::Ordinal device);
  abi::Result DeviceGetAttribute(int* value, abi::Attribute attribute, abi::Ordinal device);
  abi::Result DeviceGetUuid(abi::Uuid* uuid, abi::Ordinal device);
  abi::Result DeviceGetPCIBusId(char* text, int bytes, abi::Ordinal device);
  abi::Result DeviceGetP2PAttribute(int* value, abi::P2PAttribute attribute, abi::Ordinal from,
                                    abi::Ordinal to);
  abi::Result DeviceCanAccessPeer(int* can, abi::Ordinal device, abi::Ordinal peer);
  abi::Result DevicePrimaryCtxRetain(abi::Context* context, abi::Ordinal device);
  abi::Result DevicePrimaryCtxRelease(abi::Ordinal device);
  abi::Result CtxGetCurrent(abi::Context* context);
  abi::Result CtxSetCurrent(abi::Context context);
  abi::Result CtxPushCurrent(abi::Context context);
  abi::Result CtxPopCurrent(abi::Context* context);
  abi::Result CtxEnablePeerAccess(abi::Context peer, unsigned flags);
  abi::Result ThreadExchangeStreamCaptureMode(int* mode);

 protected:
  FakeDevices() = default;
  ~FakeDevices() = default;

 private:
  /// What belongs to a GPU's context; "" if nothing does.
  std::string left_in_context(Process& process, int device);
};

}  // namespace mscclc::cuda
