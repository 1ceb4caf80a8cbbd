#include "tests/fakes/cuda/fake_calls.h"

#include <fmt/format.h>

#include <set>
#include <thread>

namespace mscclc::cuda {
namespace {

// What is done all the same when the call is to fail.
bool acts_anyway(std::string_view name) {
  static const std::set<std::string_view> names = {"UserObjectRelease", "DevicePrimaryCtxRelease",
                                                   "CtxPopCurrent",     "MemFree",
                                                   "MemFreeHost",       "MemRelease",
                                                   "MemUnmap",          "MemAddressFree",
                                                   "IpcCloseMemHandle", "StreamDestroy",
                                                   "EventDestroy",      "StreamSynchronize",
                                                   "ModuleUnload",      "CtxSynchronize",
                                                   "MulticastUnbind"};
  return names.count(name) != 0;
}

// What waits for nothing, allocates nothing, and may be captured: allowed during any capture. The
// driver says of few functions that they are potentially unsafe; all others are taken for it here.
bool is_safe_in_captures(std::string_view name) {
  static const std::set<std::string_view> names = {"DeviceGetCount",
                                                   "DeviceGetName",
                                                   "DeviceGetAttribute",
                                                   "DeviceGetUuid",
                                                   "DeviceGetPCIBusId",
                                                   "DeviceGetP2PAttribute",
                                                   "DeviceCanAccessPeer",
                                                   "CtxGetCurrent",
                                                   "CtxSetCurrent",
                                                   "CtxPushCurrent",
                                                   "CtxPopCurrent",
                                                   "ThreadExchangeStreamCaptureMode",
                                                   "StreamWriteValue64",
                                                   "MemcpyAsync",
                                                   "MemsetD8Async",
                                                   "StreamGetGreenCtx",
                                                   "GreenCtxGetDevResource",
                                                   "StreamIsCapturing",
                                                   "StreamGetId",
                                                   "StreamGetCaptureInfo",
                                                   "StreamWaitValue32",
                                                   "EventRecord",
                                                   "EventRecordWithFlags",
                                                   "StreamWaitEvent",
                                                   "LaunchKernelEx",
                                                   "StreamUpdateCaptureDependencies"};
  return names.count(name) != 0;
}

// What changes the references to an allocation. The documentation lets threads do it as they like,
// but driver 580 frees memory twice when two unmap one allocation at once
// (docs/records/recorded_runs_gpu.md).
bool changes_references(std::string_view name) {
  static const std::set<std::string_view> names = {"MemMap", "MemSetAccess", "MemUnmap",
                                                   "MemRetainAllocationHandle", "MemRelease"};
  return names.count(name) != 0;
}

}  // namespace

void FakeCalls::fail_function(std::string_view name) {
  const std::lock_guard lock(mutex());
  fail_function_ = name;
}

void FakeCalls::fail_call(uint64_t n, abi::Result result) {
  const std::lock_guard lock(mutex());
  fail_at_ = calls_ + n;
  fail_with_ = result;
}

uint64_t FakeCalls::calls() const {
  const std::lock_guard lock(mutex());
  return calls_;
}

uint64_t FakeCalls::calls(std::string_view name) const {
  const std::lock_guard lock(mutex());
  const auto found = calls_of_.find(name);
  return found == calls_of_.end() ? 0 : found->second;
}

void FakeCalls::deinitialise() {
  const std::lock_guard lock(mutex());
  deinitialised_ = true;
}

abi::Result FakeCalls::call(std::string_view name, const std::function<abi::Result()>& body) {
  if (name == "GetErrorName" || name == "GetErrorString") return body();
  if (!changes_references(name)) return act(name, body);
  const int process = entered();
  const bool alone = count_changing(process, 1) == 1;
  std::this_thread::yield();  // others come in now, if nothing keeps them from it
  const abi::Result result = act(name, body);
  count_changing(process, -1);
  if (alone) return result;
  const std::lock_guard lock(mutex());
  misuse(fmt::format("calls {} while another thread changes mappings", name), result);
  return result;
}

int FakeCalls::count_changing(int process, int more) {
  const std::lock_guard lock(mutex());
  return changing_[process] += more;
}

abi::Result FakeCalls::act(std::string_view name, const std::function<abi::Result()>& body) {
  const std::lock_guard lock(mutex());
  if (deinitialised_) return abi::kDeinitialized;
  ++calls_of_[name];
  if (is_forbidden(name)) {
    return misuse(fmt::format("calls {} during a capture", name), abi::kStreamCaptureUnsupported);
  }
  ++calls_;
  if (name == fail_function_) {
    fail_function_.clear();
    return abi::kUnknown;
  }
  if (calls_ != fail_at_) return body();
  // Putting a capture mode back is a kind of freeing, too.
  const bool restores =
      name == "ThreadExchangeStreamCaptureMode" && capture_mode() == abi::kCaptureModeRelaxed;
  if (acts_anyway(name) || restores) body();
  return fail_with_;
}

// A global capture forbids all threads that are in global mode; one of any mode but relaxed forbids
// the thread that captures.
bool FakeCalls::is_forbidden(std::string_view name) {
  const int mode = capture_mode();
  if (mode == abi::kCaptureModeRelaxed || is_safe_in_captures(name)) return false;
  for (const auto& [thread, capture] : process().captures) {
    const bool own = thread == std::this_thread::get_id();
    if (own && capture.mode != abi::kCaptureModeRelaxed) return true;
    if (capture.mode == abi::kCaptureModeGlobal && mode == abi::kCaptureModeGlobal) return true;
  }
  return false;
}

}  // namespace mscclc::cuda
