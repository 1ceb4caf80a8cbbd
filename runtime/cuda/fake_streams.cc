// The fake driver's streams: work is done at once, or when someone waits for it.
#include <fmt/format.h>

#include "runtime/cuda/fake_model.h"

namespace mscclc::cuda {

abi::Result FakeDriver::StreamCreate(abi::Stream* stream, unsigned flags) {
  const int device = current_device();
  if (device < 0) return misuse("creates a stream without a context", abi::kInvalidContext);
  if (flags != abi::kStreamNonBlocking) {
    return misuse("creates a stream that waits for stream 0", abi::kInvalidValue);
  }
  // Not 1 or 2, which are names of default streams.
  *stream = reinterpret_cast<abi::Stream>(static_cast<uintptr_t>(0x1000 + next_number_++));
  process().streams[*stream] = {.device = device, .work = {}};
  return abi::kSuccess;
}

bool FakeDriver::run(StreamEntry& stream) {
  const size_t before = misuses_.size();
  while (!stream.work.empty()) {
    const std::function<void()> work = std::move(stream.work.front());
    stream.work.pop_front();
    work();
  }
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

abi::Result FakeDriver::StreamSynchronize(abi::Stream stream) {
  const auto found = process().streams.find(stream);
  if (found == process().streams.end()) {
    return misuse("waits for a stream that there is not", abi::kInvalidHandle);
  }
  if (found->second.device != current_device()) {
    return misuse("waits for a stream of another context", abi::kInvalidHandle);
  }
  return run(found->second) ? abi::kSuccess : abi::kIllegalAddress;
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

abi::Result FakeDriver::StreamIsCapturing(abi::Stream stream, int* status) {
  *status = abi::kCaptureStatusNone;
  for (const auto& [thread, capture] : process().captures) {
    if (capture.stream == stream) *status = abi::kCaptureStatusNone + 1;
  }
  return abi::kSuccess;
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
    if (resolve(p, address, 8, device, target)) std::memcpy(target.at, &value, 8);
  });
}

}  // namespace mscclc::cuda
