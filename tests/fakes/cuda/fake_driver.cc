// The fake driver's table, faults, devices and contexts.
#include "tests/fakes/cuda/fake_driver.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <stdexcept>

#include "tests/fakes/cuda/fake_model.h"

namespace mscclc::cuda {
namespace {

FakeDriver* the_fake = nullptr;

// What a thread has: the process that it plays, its stacks of contexts and its capture modes there.
struct ThreadState {
  int process = 0;
  std::map<int, std::vector<abi::Context>> contexts;
  std::map<int, int> capture_mode;
};
thread_local ThreadState thread_state;

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
                                                   "EventRecordWithFlags",
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

FakeDriver::FakeDriver(FakeOptions options) : options_(options) {
  if (the_fake != nullptr) throw std::logic_error("there is a fake driver already");
  the_fake = this;
  thread_state = {};
#define FUNCTION(name, version, need, parameters)                     \
  driver_.name = [](auto... arguments) -> abi::Result {               \
    FakeDriver& fake = active();                                      \
    return fake.call(#name, [&] { return fake.name(arguments...); }); \
  };
#include "runtime/devices/cuda/driver/functions.def"
#undef FUNCTION
}

FakeDriver::~FakeDriver() {
  for (const auto& [object, entry] : user_objects_) entry.destroy(entry.pointer);
  for (const auto& [inode, end] : descriptor_ends_) close(end);
  thread_state = {};
  the_fake = nullptr;
}

FakeDriver& FakeDriver::active() {
  if (the_fake == nullptr) throw std::logic_error("the fake driver is gone");
  return *the_fake;
}

void FakeDriver::enter(int process) { thread_state.process = process; }
int FakeDriver::entered() { return thread_state.process; }

void FakeDriver::fail_function(std::string_view name) {
  const std::lock_guard lock(mutex_);
  fail_function_ = name;
}

void FakeDriver::fail_call(uint64_t n, abi::Result result) {
  const std::lock_guard lock(mutex_);
  fail_at_ = calls_ + n;
  fail_with_ = result;
}

uint64_t FakeDriver::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

uint64_t FakeDriver::calls(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_of_.find(name);
  return found == calls_of_.end() ? 0 : found->second;
}

void FakeDriver::deinitialise() {
  const std::lock_guard lock(mutex_);
  deinitialised_ = true;
}

std::vector<std::string> FakeDriver::misuses() const {
  const std::lock_guard lock(mutex_);
  return misuses_;
}

abi::Result FakeDriver::call(std::string_view name, const std::function<abi::Result()>& body) {
  if (name == "GetErrorName" || name == "GetErrorString") return body();
  if (!changes_references(name)) return act(name, body);
  const int process = thread_state.process;
  const bool alone = count_changing(process, 1) == 1;
  std::this_thread::yield();  // others come in now, if nothing keeps them from it
  const abi::Result result = act(name, body);
  count_changing(process, -1);
  if (alone) return result;
  const std::lock_guard lock(mutex_);
  misuse(fmt::format("calls {} while another thread changes mappings", name), result);
  return result;
}

int FakeDriver::count_changing(int process, int more) {
  const std::lock_guard lock(mutex_);
  return changing_[process] += more;
}

abi::Result FakeDriver::act(std::string_view name, const std::function<abi::Result()>& body) {
  const std::lock_guard lock(mutex_);
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
  const bool restores = name == "ThreadExchangeStreamCaptureMode" &&
                        thread_state.capture_mode[thread_state.process] == abi::kCaptureModeRelaxed;
  if (acts_anyway(name) || restores) body();
  return fail_with_;
}

// A global capture forbids all threads that are in global mode; one of any mode but relaxed forbids
// the thread that captures.
bool FakeDriver::is_forbidden(std::string_view name) {
  const int mode = thread_state.capture_mode[thread_state.process];
  if (mode == abi::kCaptureModeRelaxed || is_safe_in_captures(name)) return false;
  for (const auto& [thread, capture] : process().captures) {
    const bool own = thread == std::this_thread::get_id();
    if (own && capture.mode != abi::kCaptureModeRelaxed) return true;
    if (capture.mode == abi::kCaptureModeGlobal && mode == abi::kCaptureModeGlobal) return true;
  }
  return false;
}

void FakeDriver::begin_capture(int mode, void* stream) {
  const std::lock_guard lock(mutex_);
  process().captures[std::this_thread::get_id()] = {
      mode, next_number_++, {{static_cast<abi::Stream>(stream), {}}}};
}

abi::Graph FakeDriver::end_capture() {
  const std::lock_guard lock(mutex_);
  const auto ended = process().captures.extract(std::this_thread::get_id());
  return reinterpret_cast<abi::Graph>(static_cast<uintptr_t>(ended.mapped().id));
}

abi::Result FakeDriver::misuse(const std::string& what, abi::Result result) {
  misuses_.push_back(fmt::format("process {}: {}", thread_state.process, what));
  return result;
}

FakeDriver::Process& FakeDriver::process() {
  std::unique_ptr<Process>& process = processes_[thread_state.process];
  if (process == nullptr) {
    process = std::make_unique<Process>();
    process->id = thread_state.process;
  }
  return *process;
}

// Whose descriptors have all been closed refers to nothing any more.
void FakeDriver::collect_descriptors() {
  for (auto end = descriptor_ends_.begin(); end != descriptor_ends_.end();) {
    pollfd poll_end = {end->second, 0, 0};
    if (poll(&poll_end, 1, 0) == 1 && (poll_end.revents & POLLHUP) != 0) {
      close(end->second);
      descriptors_.erase(end->first);
      end = descriptor_ends_.erase(end);
    } else {
      ++end;
    }
  }
}

std::vector<std::string> FakeDriver::leaks() {
  const std::lock_guard lock(mutex_);
  collect_descriptors();
  std::vector<std::string> found;
  for (const auto& [id, p] : processes_) {
    const auto note = [&, id = id](const std::string& what) {
      found.push_back(fmt::format("process {}: {}", id, what));
    };
    for (const auto& [device, count] : p->contexts) {
      note(fmt::format("the context of cuda:{} is retained {} times", device, count));
    }
    for (const auto& [handle, entry] : p->handles) {
      if (entry.references > 0) {
        note(fmt::format("handle {} has {} references", handle, entry.references));
      }
    }
    for (const auto& [at, bytes] : p->reservations) note(fmt::format("{:#x} is reserved", at));
    for (const auto& [at, entry] : p->mappings) note(fmt::format("{:#x} is mapped", at));
    for (const auto& [at, entry] : p->plain) note(fmt::format("{:#x} is allocated", at));
    for (const auto& [at, entry] : p->ipc) note(fmt::format("{:#x} is an open ipc handle", at));
    for (const auto& [at, entry] : p->host) note(fmt::format("{} is host memory", at));
    for (const auto& [stream, entry] : p->streams) {
      note(fmt::format("a stream of cuda:{}", entry.device));
    }
    for (const auto& [module, entry] : p->modules) {
      note(fmt::format("a module of cuda:{}", entry.device));
    }
    for (const auto& [event, entry] : p->events) {
      note(fmt::format("an event of cuda:{}", entry.device));
    }
    const auto stack = thread_state.contexts.find(id);
    if (stack != thread_state.contexts.end() && !stack->second.empty()) {
      note(fmt::format("{} contexts are on this thread's stack", stack->second.size()));
    }
    const auto mode = thread_state.capture_mode.find(id);
    if (mode != thread_state.capture_mode.end() && mode->second != 0) {
      note("this thread's capture mode is not what it was");
    }
  }
  for (const auto& [inode, memory] : descriptors_) {
    found.push_back(fmt::format("descriptors of {} bytes are open", memory->bytes));
  }
  return found;
}

uint64_t FakeDriver::used(int device) {
  uint64_t sum = 0;
  std::erase_if(all_, [](const std::weak_ptr<Physical>& memory) { return memory.expired(); });
  for (const std::weak_ptr<Physical>& memory : all_) {
    const std::shared_ptr<Physical> alive = memory.lock();
    if (alive != nullptr && alive->device == device) sum += alive->bytes;
  }
  return sum;
}

uint64_t FakeDriver::allocated(int device) {
  const std::lock_guard lock(mutex_);
  collect_descriptors();
  return used(device);
}

abi::Result FakeDriver::Init(unsigned) { return abi::kSuccess; }

abi::Result FakeDriver::GetErrorName(abi::Result error, const char** text) {
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

abi::Result FakeDriver::GetErrorString(abi::Result error, const char** text) {
  *text = error == abi::kOutOfMemory    ? "out of memory"
          : error == abi::kNotPermitted ? "operation not permitted"
                                        : "it went wrong";
  return abi::kSuccess;
}

abi::Result FakeDriver::DeviceGetCount(int* count) {
  *count = options_.devices;
  return abi::kSuccess;
}

abi::Result FakeDriver::DeviceGetName(char* name, int bytes, abi::Ordinal) {
  fmt::format_to_n(name, static_cast<size_t>(bytes - 1), "Fake GPU");
  return abi::kSuccess;
}

abi::Result FakeDriver::DeviceGetAttribute(int* value, abi::Attribute attribute, abi::Ordinal) {
  switch (attribute) {
    case abi::kMultiprocessorCount:
      *value = options_.multiprocessors;
      return abi::kSuccess;
    case abi::kVirtualMemoryManagementSupported:
      *value = options_.mappings;
      return abi::kSuccess;
    case abi::kPosixFdSupported:
      *value = options_.fd;
      return abi::kSuccess;
    case abi::kRdmaOfMappingsSupported:
      *value = options_.dma_buf;
      return abi::kSuccess;
    case abi::kCanUse64BitStreamMemOps:
      *value = options_.writes;
      return abi::kSuccess;
    case abi::kDmaBufSupported:
      *value = options_.dma_buf;
      return abi::kSuccess;
    case abi::kFabricSupported:
      *value = options_.fabric;
      return abi::kSuccess;
    case abi::kMulticastSupported:
      *value = options_.multicast;
      return abi::kSuccess;
    case abi::kComputeCapabilityMajor:
      *value = options_.capability;
      return abi::kSuccess;
    case abi::kComputeCapabilityMinor:
      *value = 0;
      return abi::kSuccess;
  }
  return abi::kInvalidValue;
}

abi::Result FakeDriver::DeviceGetUuid(abi::Uuid* uuid, abi::Ordinal device) {
  *uuid = {};
  uuid->bytes[15] = static_cast<unsigned char>(options_.alone ? process().id : device);
  return abi::kSuccess;
}

// cuda:0 is 0000:01:00.0, and so on.
abi::Result FakeDriver::DeviceGetPCIBusId(char* text, int bytes, abi::Ordinal device) {
  const auto end = fmt::format_to_n(text, bytes - 1, "0000:{:02X}:00.0",
                                    1 + (options_.alone ? process().id : device));
  *end.out = 0;
  return abi::kSuccess;
}

abi::Result FakeDriver::DeviceGetP2PAttribute(int* value, abi::P2PAttribute attribute,
                                              abi::Ordinal from, abi::Ordinal to) {
  if (from == to) return misuse("asks what joins a GPU to itself", abi::kInvalidDevice);
  *value = options_.peers && (attribute == abi::kAccessSupported || options_.atomics);
  return abi::kSuccess;
}

abi::Result FakeDriver::DeviceCanAccessPeer(int* can, abi::Ordinal, abi::Ordinal) {
  *can = options_.peers;
  return abi::kSuccess;
}

abi::Result FakeDriver::DevicePrimaryCtxRetain(abi::Context* context, abi::Ordinal device) {
  if (device < 0 || device >= options_.devices) return abi::kInvalidDevice;
  ++process().contexts[device];
  *context = process().context(device);
  return abi::kSuccess;
}

abi::Result FakeDriver::DevicePrimaryCtxRelease(abi::Ordinal device) {
  const auto found = process().contexts.find(device);
  if (found == process().contexts.end()) {
    return misuse(fmt::format("releases the context of cuda:{}, which it does not have", device),
                  abi::kInvalidContext);
  }
  if (--found->second > 0) return abi::kSuccess;
  process().contexts.erase(found);
  const std::string left = left_in_context(process(), device);
  return left.empty() ? abi::kSuccess
                      : misuse(fmt::format("ends the context of cuda:{} under {}", device, left),
                               abi::kSuccess);
}

std::string FakeDriver::left_in_context(Process& process, int device) {
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

int FakeDriver::current_device() {
  const std::vector<abi::Context>& stack = thread_state.contexts[process().id];
  if (stack.empty()) return -1;
  for (const auto& [device, count] : process().contexts) {
    if (process().context(device) == stack.back()) return device;
  }
  return -1;
}

abi::Result FakeDriver::CtxGetCurrent(abi::Context* context) {
  const std::vector<abi::Context>& stack = thread_state.contexts[process().id];
  *context = stack.empty() ? nullptr : stack.back();
  return abi::kSuccess;
}

abi::Result FakeDriver::CtxSetCurrent(abi::Context context) {
  std::vector<abi::Context>& stack = thread_state.contexts[process().id];
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return abi::kSuccess;
}

abi::Result FakeDriver::CtxPushCurrent(abi::Context context) {
  thread_state.contexts[process().id].push_back(context);
  if (current_device() >= 0) return abi::kSuccess;
  thread_state.contexts[process().id].pop_back();
  return misuse("makes a context current that is not retained", abi::kInvalidContext);
}

abi::Result FakeDriver::CtxPopCurrent(abi::Context* context) {
  std::vector<abi::Context>& stack = thread_state.contexts[process().id];
  if (stack.empty()) return misuse("pops a context too many", abi::kInvalidContext);
  *context = stack.back();
  stack.pop_back();
  return abi::kSuccess;
}

abi::Result FakeDriver::CtxEnablePeerAccess(abi::Context peer, unsigned) {
  const int device = current_device();
  if (device < 0) return misuse("enables access without a context", abi::kInvalidContext);
  for (const auto& [owner, count] : process().contexts) {
    if (process().context(owner) != peer) continue;
    const bool added = process().peers.insert({device, owner}).second;
    return added ? abi::kSuccess : abi::kPeerAccessAlreadyEnabled;
  }
  return misuse("enables access to a context that is not retained", abi::kInvalidContext);
}

abi::Result FakeDriver::ThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, thread_state.capture_mode[process().id]);
  return abi::kSuccess;
}

}  // namespace mscclc::cuda
