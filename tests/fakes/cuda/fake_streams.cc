// The fake driver's streams: work is done at once, or when it is waited for.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "tests/fakes/cuda/fake_model.h"

namespace mscclc::cuda {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

abi::Result FakeDriver::CtxGetStreamPriorityRange(int* least, int* greatest) {
  if (current_device() < 0) return misuse("asks without a context", abi::kInvalidContext);
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return abi::kSuccess;
}

abi::Result FakeDriver::StreamCreateWithPriority(abi::Stream* stream, unsigned flags,
                                                 int priority) {
  const int device = current_device();
  if (device < 0) return misuse("creates a stream without a context", abi::kInvalidContext);
  if (flags != abi::kStreamNonBlocking) {
    return misuse("creates a stream that waits for stream 0", abi::kInvalidValue);
  }
  // Not 1 or 2, which are names of default streams.
  const uint64_t id = next_number_++;
  *stream = reinterpret_cast<abi::Stream>(static_cast<uintptr_t>(0x1000 + id));
  process().streams[*stream] = {.device = device, .id = id, .priority = priority, .work = {}};
  return abi::kSuccess;
}

int FakeDriver::priority(void* stream) {
  const std::lock_guard lock(mutex_);
  return process().streams.at(static_cast<abi::Stream>(stream)).priority;
}

void FakeDriver::rename_stream(void* stream) {
  const std::lock_guard lock(mutex_);
  process().streams.at(static_cast<abi::Stream>(stream)).id = next_number_++;
}

void* FakeDriver::create_green_stream(uint32_t multiprocessors) {
  const std::lock_guard lock(mutex_);
  abi::Stream stream = nullptr;
  StreamCreateWithPriority(&stream, abi::kStreamNonBlocking, kLeastPriority);
  process().streams.at(stream).multiprocessors = multiprocessors;
  return stream;
}

// A green context is its stream here.
abi::Result FakeDriver::StreamGetGreenCtx(abi::Stream stream, abi::GreenContext* context) {
  const auto found = process().streams.find(stream);
  if (found == process().streams.end()) {
    return misuse("asks for the context of a stream that there is not", abi::kInvalidHandle);
  }
  if (capture_of(stream) != nullptr) {
    return misuse("asks for the context of a captured stream", abi::kStreamCaptureUnsupported);
  }
  *context =
      found->second.multiprocessors == 0 ? nullptr : reinterpret_cast<abi::GreenContext>(stream);
  return abi::kSuccess;
}

abi::Result FakeDriver::GreenCtxGetDevResource(abi::GreenContext context,
                                               abi::DeviceResource* resource, int type) {
  if (type != abi::kMultiprocessors) return misuse("asks for another resource", abi::kInvalidValue);
  resource->type = type;
  resource->multiprocessors =
      process().streams.at(reinterpret_cast<abi::Stream>(context)).multiprocessors;
  return abi::kSuccess;
}

int FakeDriver::urgent_streams() {
  const std::lock_guard lock(mutex_);
  const auto& streams = process().streams;
  return static_cast<int>(std::count_if(streams.begin(), streams.end(), [](const auto& entry) {
    return entry.second.priority == kGreatestPriority;
  }));
}

bool FakeDriver::run(StreamEntry& stream) {
  const size_t before = misuses_.size();
  while (!stream.work.empty() && stream.work.front()()) stream.work.pop_front();
  stream.failed |= misuses_.size() != before;
  return !stream.failed;
}

abi::Result FakeDriver::StreamDestroy(abi::Stream stream) {
  const auto found = process().streams.find(stream);
  if (found == process().streams.end()) {
    return misuse("destroys a stream that there is not", abi::kInvalidHandle);
  }
  run(found->second);
  process().streams.erase(found);
  return abi::kSuccess;
}

abi::Result FakeDriver::StreamQuery(abi::Stream stream) {
  const auto found = process().streams.find(stream);
  if (found == process().streams.end()) {
    return misuse("asks about a stream that there is not", abi::kInvalidHandle);
  }
  if (found->second.device != current_device()) {
    return misuse("asks about a stream of another context", abi::kInvalidHandle);
  }
  if (!run(found->second)) return abi::kIllegalAddress;
  return found->second.work.empty() ? abi::kSuccess : abi::kNotReady;
}

abi::Result FakeDriver::StreamSynchronize(abi::Stream stream) {
  const auto found = process().streams.find(stream);
  if (found == process().streams.end()) {
    return misuse("waits for a stream that there is not", abi::kInvalidHandle);
  }
  if (found->second.device != current_device()) {
    return misuse("waits for a stream of another context", abi::kInvalidHandle);
  }
  if (!run(found->second)) return abi::kIllegalAddress;
  return found->second.work.empty()
             ? abi::kSuccess
             : misuse("waits for a stream that waits forever", abi::kUnknown);
}

abi::Result FakeDriver::CtxSynchronize() {
  if (current_device() < 0) return misuse("waits without a context", abi::kInvalidContext);
  bool well = true;
  for (auto& [handle, stream] : process().streams) {
    if (stream.device == current_device()) well &= run(stream);
  }
  return well ? abi::kSuccess : abi::kIllegalAddress;
}

abi::Result FakeDriver::submit(abi::Stream stream, std::function<void()> work) {
  return submit_wait(stream, [work = std::move(work)] {
    work();
    return true;
  });
}

abi::Result FakeDriver::submit_wait(abi::Stream stream, std::function<bool()> work) {
  const auto found = process().streams.find(stream);
  if (found == process().streams.end()) {
    return misuse("uses a stream that there is not", abi::kInvalidHandle);
  }
  if (found->second.device != current_device()) {
    return misuse("uses a stream of another context", abi::kInvalidHandle);
  }
  found->second.work.push_back(std::move(work));
  if (!options_.deferred) run(found->second);
  return abi::kSuccess;
}

FakeDriver::Capture* FakeDriver::capture_of(abi::Stream stream) {
  for (auto& [thread, capture] : process().captures) {
    if (capture.ahead.count(stream) != 0) return &capture;
  }
  return nullptr;
}

abi::Result FakeDriver::StreamIsCapturing(abi::Stream stream, int* status) {
  *status = abi::kCaptureStatusNone + (capture_of(stream) == nullptr ? 0 : 1);
  return abi::kSuccess;
}

abi::Result FakeDriver::StreamGetId(abi::Stream stream, unsigned long long* id) {
  const auto found = process().streams.find(stream);
  if (found == process().streams.end()) {
    return misuse("identifies a stream that there is not", abi::kInvalidHandle);
  }
  if (capture_of(stream) != nullptr) {
    return misuse("identifies a captured stream", abi::kStreamCaptureUnsupported);
  }
  *id = found->second.id;
  return abi::kSuccess;
}

abi::Result FakeDriver::StreamGetCaptureInfo(abi::Stream stream, int* status, uint64_t* id,
                                             abi::Graph* graph, const abi::GraphNode** nodes,
                                             size_t* count) {
  const Capture* const capture = capture_of(stream);
  *status = abi::kCaptureStatusNone + (capture == nullptr ? 0 : 1);
  if (graph != nullptr) *graph = nullptr;
  if (capture == nullptr) return abi::kSuccess;
  if (graph != nullptr) *graph = graph_of(*capture);
  *id = capture->id;
  const std::vector<abi::GraphNode>& ahead = capture->ahead.at(stream);
  const bool plain = ahead.size() == 1 && nodes_.at(ahead[0]).kind == NodeEntry::record;
  if (options_.lossy && !plain && nodes != nullptr) return abi::kLossyQuery;
  if (nodes != nullptr) *nodes = ahead.data();
  if (count != nullptr) *count = ahead.size();
  return abi::kSuccess;
}

abi::Result FakeDriver::StreamUpdateCaptureDependencies(abi::Stream stream, abi::GraphNode* nodes,
                                                        size_t count, unsigned flags) {
  Capture* const capture = capture_of(stream);
  if (capture == nullptr) return misuse("adds edges outside of a capture", abi::kIllegalState);
  if (flags != abi::kAddDependencies) return misuse("drops edges", abi::kInvalidValue);
  std::vector<abi::GraphNode>& ahead = capture->ahead.at(stream);
  for (size_t i = 0; i < count; ++i) {
    if (nodes_.count(nodes[i]) == 0 ||
        std::find(ahead.begin(), ahead.end(), nodes[i]) != ahead.end()) {
      return misuse("adds an edge that is there, or leads from nowhere", abi::kInvalidValue);
    }
    ahead.push_back(nodes[i]);
  }
  return abi::kSuccess;
}

void FakeDriver::fork_capture(void* from, void* to) {
  const std::lock_guard lock(mutex_);
  Capture& capture = *capture_of(static_cast<abi::Stream>(from));
  capture.ahead[static_cast<abi::Stream>(to)] = capture.ahead.at(static_cast<abi::Stream>(from));
}

abi::GraphNode FakeDriver::launch(void* stream, abi::Address begun, uint32_t blocks) {
  const std::lock_guard lock(mutex_);
  return enqueue_launch(static_cast<abi::Stream>(stream), begun, blocks);
}

void FakeDriver::count_launch(abi::Stream handle, abi::Address begun, uint32_t blocks) {
  Process& p = process();
  submit(handle, [this, &p, handle, begun, blocks, device = current_device()] {
    Span count = {};
    uint32_t value = 0;
    ++p.streams.at(handle).launches;
    if (begun == 0 || !resolve(p, begun, 4, device, count)) return;
    std::memcpy(&value, count.at, 4);
    value += blocks;
    std::memcpy(count.at, &value, 4);
  });
}

abi::GraphNode FakeDriver::enqueue_launch(abi::Stream handle, abi::Address begun, uint32_t blocks) {
  if (Capture* const capture = capture_of(handle); capture != nullptr) {
    std::vector<abi::GraphNode>& ahead = capture->ahead.at(handle);
    const abi::GraphNode node =
        add_node(graph_of(*capture),
                 {.kind = NodeEntry::launch, .after = ahead, .begun = begun, .blocks = blocks});
    ahead = {node};
    return node;
  }
  count_launch(handle, begun, blocks);
  return nullptr;
}

std::vector<abi::GraphNode> FakeDriver::edges(abi::GraphNode node) const {
  const std::lock_guard lock(mutex_);
  return nodes_.at(node).after;
}

uint32_t FakeDriver::run_launches(void* stream) {
  const std::lock_guard lock(mutex_);
  StreamEntry& entry = process().streams.at(static_cast<abi::Stream>(stream));
  run(entry);
  return entry.launches;
}

abi::Result FakeDriver::EventCreate(abi::Event* event, unsigned flags) {
  const int device = current_device();
  if (device < 0) return misuse("creates an event without a context", abi::kInvalidContext);
  if (flags != abi::kEventDisableTiming) return misuse("times by an event", abi::kInvalidValue);
  *event = reinterpret_cast<abi::Event>(static_cast<uintptr_t>(next_number_++));
  process().events[*event] = {.device = device};
  return abi::kSuccess;
}

abi::Result FakeDriver::EventDestroy(abi::Event event) {
  if (process().events.erase(event) > 0) return abi::kSuccess;
  return misuse("destroys an event that there is not", abi::kInvalidHandle);
}

abi::Result FakeDriver::EventRecord(abi::Event event, abi::Stream stream) {
  const auto found = process().events.find(event);
  if (found == process().events.end() || found->second.device != current_device()) {
    return misuse("records an event of another context", abi::kInvalidHandle);
  }
  int status = 0;
  StreamIsCapturing(stream, &status);
  if (status != abi::kCaptureStatusNone) return misuse("records in a capture", abi::kInvalidValue);
  const auto reached = std::make_shared<bool>(false);
  found->second.reached = reached;
  return submit(stream, [reached] { *reached = true; });
}

abi::Result FakeDriver::StreamWaitEvent(abi::Stream stream, abi::Event event, unsigned) {
  const auto found = process().events.find(event);
  if (found == process().events.end()) {
    return misuse("waits for an event that there is not", abi::kInvalidHandle);
  }
  if (capture_of(stream) != nullptr) {
    return misuse("lets a captured stream wait for what is not captured", abi::kInvalidValue);
  }
  return submit_wait(stream, [reached = found->second.reached] { return *reached; });
}

abi::Result FakeDriver::EventQuery(abi::Event event) {
  const auto found = process().events.find(event);
  if (found == process().events.end()) {
    return misuse("asks about an event that there is not", abi::kInvalidHandle);
  }
  return *found->second.reached ? abi::kSuccess : abi::kNotReady;
}

abi::Result FakeDriver::MemcpyAsync(abi::Address to, abi::Address from, size_t bytes,
                                    abi::Stream stream) {
  Process& p = process();
  return submit(stream, [this, &p, to, from, bytes, device = current_device()] {
    Span target = {}, source = {};
    if (resolve(p, to, bytes, device, target) && resolve(p, from, bytes, device, source)) {
      std::memmove(target.at, source.at, bytes);
    }
  });
}

abi::Result FakeDriver::MemsetD8Async(abi::Address to, unsigned char byte, size_t bytes,
                                      abi::Stream stream) {
  Process& p = process();
  return submit(stream, [this, &p, to, byte, bytes, device = current_device()] {
    Span target = {};
    if (resolve(p, to, bytes, device, target)) std::memset(target.at, byte, bytes);
  });
}

abi::Result FakeDriver::StreamWaitValue32(abi::Stream stream, abi::Address address, uint32_t value,
                                          unsigned flags) {
  if (flags != abi::kWaitValueAtLeast) return misuse("waits otherwise", abi::kInvalidValue);
  if (address % 4 != 0) return misuse("waits for a value across words", abi::kInvalidValue);
  if (capture_of(stream) != nullptr) return misuse("captures a wait", abi::kInvalidValue);
  Process& p = process();
  return submit_wait(stream, [this, &p, address, value, device = current_device()] {
    Span at = {};
    uint32_t seen = 0;
    if (!resolve(p, address, 4, device, at)) return true;
    std::memcpy(&seen, at.at, 4);
    return static_cast<int32_t>(seen - value) >= 0;
  });
}

abi::Result FakeDriver::StreamWriteValue64(abi::Stream stream, abi::Address address, uint64_t value,
                                           unsigned flags) {
  if (flags != abi::kWriteValueDefault) {
    return misuse("writes a value that does not wait for what is before it", abi::kInvalidValue);
  }
  if (!options_.writes) return abi::kNotSupported;
  if (address % 8 != 0) return misuse("writes a value across words", abi::kInvalidValue);
  Process& p = process();
  return submit(stream, [this, &p, address, value, device = current_device()] {
    Span target = {};
    if (!resolve(p, address, 8, device, target)) return;
    // Host memory may be read meanwhile.
    auto& word = *reinterpret_cast<uint64_t*>(target.at);
    std::atomic_ref<uint64_t>(word).store(value, std::memory_order_release);
  });
}

}  // namespace mscclc::cuda
