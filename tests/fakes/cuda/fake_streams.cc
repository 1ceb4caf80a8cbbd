#include "tests/fakes/cuda/fake_streams.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

namespace mscclc::cuda {
namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

}  // namespace

abi::Result FakeStreams::CtxGetStreamPriorityRange(int* least, int* greatest) {
  if (current_device() < 0) return misuse("asks without a context", abi::kInvalidContext);
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return abi::kSuccess;
}

abi::Result FakeStreams::StreamCreateWithPriority(abi::Stream* stream, unsigned flags,
                                                  int priority) {
  const int device = current_device();
  if (device < 0) return misuse("creates a stream without a context", abi::kInvalidContext);
  if (flags != abi::kStreamNonBlocking) {
    return misuse("creates a stream that waits for stream 0", abi::kInvalidValue);
  }
  // Not 1 or 2, which are names of default streams.
  const uint64_t id = new_number();
  *stream = reinterpret_cast<abi::Stream>(static_cast<uintptr_t>(0x1000 + id));
  process().streams[*stream] = {.device = device, .id = id, .priority = priority, .work = {}};
  return abi::kSuccess;
}

int FakeStreams::priority(void* stream) {
  const std::lock_guard lock(mutex());
  return process().streams.at(static_cast<abi::Stream>(stream)).priority;
}

void FakeStreams::rename_stream(void* stream) {
  const std::lock_guard lock(mutex());
  process().streams.at(static_cast<abi::Stream>(stream)).id = new_number();
}

void* FakeStreams::create_green_stream(uint32_t multiprocessors) {
  const std::lock_guard lock(mutex());
  abi::Stream stream = nullptr;
  StreamCreateWithPriority(&stream, abi::kStreamNonBlocking, kLeastPriority);
  process().streams.at(stream).multiprocessors = multiprocessors;
  return stream;
}

void* FakeStreams::create_blocking_stream() {
  void* const stream = create_green_stream(0);
  const std::lock_guard lock(mutex());
  process().streams.at(static_cast<abi::Stream>(stream)).blocking = true;
  return stream;
}

void FakeStreams::create_default_stream() {
  const std::lock_guard lock(mutex());
  process().streams[nullptr] = {
      .device = current_device(), .id = new_number(), .priority = kLeastPriority, .work = {}};
}

// A green context is its stream here.
abi::Result FakeStreams::StreamGetGreenCtx(abi::Stream stream, abi::GreenContext* context) {
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

abi::Result FakeStreams::GreenCtxGetDevResource(abi::GreenContext context,
                                                abi::DeviceResource* resource, int type) {
  if (type != abi::kMultiprocessors) return misuse("asks for another resource", abi::kInvalidValue);
  resource->type = type;
  resource->multiprocessors =
      process().streams.at(reinterpret_cast<abi::Stream>(context)).multiprocessors;
  return abi::kSuccess;
}

int FakeStreams::urgent_streams() {
  const std::lock_guard lock(mutex());
  const auto& streams = process().streams;
  return static_cast<int>(std::count_if(streams.begin(), streams.end(), [](const auto& entry) {
    return entry.second.priority == kGreatestPriority;
  }));
}

bool FakeStreams::run(StreamEntry& stream) {
  const size_t before = misuse_count();
  while (!stream.work.empty() && stream.work.front()()) stream.work.pop_front();
  stream.failed |= misuse_count() != before;
  return !stream.failed;
}

abi::Result FakeStreams::StreamDestroy(abi::Stream stream) {
  const auto found = process().streams.find(stream);
  if (found == process().streams.end()) {
    return misuse("destroys a stream that there is not", abi::kInvalidHandle);
  }
  run(found->second);
  process().streams.erase(found);
  return abi::kSuccess;
}

abi::Result FakeStreams::StreamQuery(abi::Stream stream) {
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

abi::Result FakeStreams::StreamSynchronize(abi::Stream stream) {
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

abi::Result FakeStreams::CtxSynchronize() {
  if (current_device() < 0) return misuse("waits without a context", abi::kInvalidContext);
  if (break_captures()) return abi::kStreamCaptureUnsupported;
  bool well = true;
  for (auto& [handle, stream] : process().streams) {
    if (stream.device == current_device()) well &= run(stream);
  }
  return well ? abi::kSuccess : abi::kIllegalAddress;
}

abi::Result FakeStreams::submit(abi::Stream stream, std::function<void()> work) {
  return submit_wait(stream, [work = std::move(work)] {
    work();
    return true;
  });
}

abi::Result FakeStreams::submit_wait(abi::Stream stream, std::function<bool()> work) {
  const auto found = process().streams.find(stream);
  if (found == process().streams.end()) {
    return misuse("uses a stream that there is not", abi::kInvalidHandle);
  }
  if (found->second.device != current_device()) {
    return misuse("uses a stream of another context", abi::kInvalidHandle);
  }
  found->second.work.push_back(std::move(work));
  if (!options().deferred) run(found->second);
  return abi::kSuccess;
}

abi::Result FakeStreams::StreamGetId(abi::Stream stream, unsigned long long* id) {
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

abi::GraphNode FakeStreams::launch(void* stream, abi::Address begun, uint32_t blocks) {
  const std::lock_guard lock(mutex());
  return enqueue_launch(static_cast<abi::Stream>(stream), begun, blocks);
}

void FakeStreams::count_launch(abi::Stream handle, abi::Address begun, uint32_t blocks) {
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

abi::GraphNode FakeStreams::capture_node(abi::Stream stream, NodeEntry entry) {
  Capture* const capture = capture_of(stream);
  if (capture == nullptr) return nullptr;
  std::vector<abi::GraphNode>& ahead = capture->ahead.at(stream);
  entry.after = ahead;
  const abi::GraphNode node = add_node(fake::graph_of(*capture), std::move(entry));
  ahead = {node};
  return node;
}

abi::GraphNode FakeStreams::enqueue_launch(abi::Stream handle, abi::Address begun,
                                           uint32_t blocks) {
  const abi::GraphNode node = capture_node(
      handle, {.kind = NodeEntry::launch, .after = {}, .begun = begun, .blocks = blocks});
  if (node == nullptr) count_launch(handle, begun, blocks);
  return node;
}

uint32_t FakeStreams::run_launches(void* stream) {
  const std::lock_guard lock(mutex());
  StreamEntry& entry = process().streams.at(static_cast<abi::Stream>(stream));
  run(entry);
  return entry.launches;
}

abi::Result FakeStreams::EventCreate(abi::Event* event, unsigned flags) {
  const int device = current_device();
  if (device < 0) return misuse("creates an event without a context", abi::kInvalidContext);
  if (flags != abi::kEventDisableTiming) return misuse("times by an event", abi::kInvalidValue);
  *event = reinterpret_cast<abi::Event>(static_cast<uintptr_t>(new_number()));
  process().events[*event] = {.device = device};
  return abi::kSuccess;
}

abi::Result FakeStreams::EventDestroy(abi::Event event) {
  if (process().events.erase(event) > 0) return abi::kSuccess;
  return misuse("destroys an event that there is not", abi::kInvalidHandle);
}

abi::Result FakeStreams::EventRecord(abi::Event event, abi::Stream stream) {
  const auto found = process().events.find(event);
  if (found == process().events.end() || found->second.device != current_device()) {
    return misuse("records an event of another context", abi::kInvalidHandle);
  }
  const Capture* const capture = capture_of(stream);
  found->second.graph = capture == nullptr ? nullptr : fake::graph_of(*capture);
  if (capture != nullptr) {
    found->second.ends = capture->ahead.at(stream);
    return abi::kSuccess;
  }
  const auto reached = std::make_shared<bool>(false);
  found->second.reached = reached;
  return submit(stream, [reached] { *reached = true; });
}

abi::Result FakeStreams::StreamWaitEvent(abi::Stream stream, abi::Event event, unsigned) {
  const auto found = process().events.find(event);
  if (found == process().events.end()) {
    return misuse("waits for an event that there is not", abi::kInvalidHandle);
  }
  if (found->second.graph != nullptr) {
    return join_capture(stream, found->second.graph, found->second.ends);
  }
  if (capture_of(stream) != nullptr) {
    return misuse("lets a captured stream wait for what is not captured", abi::kInvalidValue);
  }
  return submit_wait(stream, [reached = found->second.reached] { return *reached; });
}

abi::Result FakeStreams::EventQuery(abi::Event event) {
  const auto found = process().events.find(event);
  if (found == process().events.end()) {
    return misuse("asks about an event that there is not", abi::kInvalidHandle);
  }
  return *found->second.reached ? abi::kSuccess : abi::kNotReady;
}

abi::Result FakeStreams::MemcpyAsync(abi::Address to, abi::Address from, size_t bytes,
                                     abi::Stream stream) {
  const NodeEntry copy{
      .kind = NodeEntry::copy, .after = {}, .to = to, .from = from, .bytes = bytes};
  if (capture_node(stream, copy) != nullptr) return abi::kSuccess;
  Process& p = process();
  return submit(stream, [this, &p, to, from, bytes, device = current_device()] {
    Span target = {}, source = {};
    if (resolve(p, to, bytes, device, target) && resolve(p, from, bytes, device, source)) {
      std::memmove(target.at, source.at, bytes);
    }
  });
}

abi::Result FakeStreams::MemsetD8Async(abi::Address to, unsigned char byte, size_t bytes,
                                       abi::Stream stream) {
  Process& p = process();
  return submit(stream, [this, &p, to, byte, bytes, device = current_device()] {
    Span target = {};
    if (resolve(p, to, bytes, device, target)) std::memset(target.at, byte, bytes);
  });
}

abi::Result FakeStreams::StreamWaitValue32(abi::Stream stream, abi::Address address, uint32_t value,
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

abi::Result FakeStreams::StreamWriteValue64(abi::Stream stream, abi::Address address,
                                            uint64_t value, unsigned flags) {
  if (flags != abi::kWriteValueDefault) {
    return misuse("writes a value that does not wait for what is before it", abi::kInvalidValue);
  }
  if (!options().writes) return abi::kNotSupported;
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

void FakeStreams::replay_node(abi::GraphNode node, abi::Stream stream,
                              std::set<abi::GraphNode>& done) {
  if (!done.insert(node).second) return;
  const NodeEntry& entry = nodes().at(node);
  for (const abi::GraphNode ahead : entry.after) replay_node(ahead, stream, done);
  if (entry.kind == NodeEntry::launch) count_launch(stream, entry.begun, entry.blocks);
  if (entry.kind == NodeEntry::copy) MemcpyAsync(entry.to, entry.from, entry.bytes, stream);
  if (entry.kind == NodeEntry::record) EventRecord(entry.event, stream);
  if (entry.kind == NodeEntry::wait) StreamWaitEvent(stream, entry.event, 0);
}

void FakeStreams::replay(abi::Graph graph, void* stream) {
  const std::lock_guard lock(mutex());
  const auto on = static_cast<abi::Stream>(stream);
  CtxPushCurrent(process().context(process().streams.at(on).device));
  std::set<abi::GraphNode> done;
  for (const auto& [node, entry] : nodes()) {
    if (entry.graph == graph) replay_node(node, on, done);
  }
  abi::Context context = nullptr;
  CtxPopCurrent(&context);
}

}  // namespace mscclc::cuda
