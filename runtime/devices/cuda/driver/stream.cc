#include "runtime/devices/cuda/driver/stream.h"

namespace mscclc::cuda {

std::unique_ptr<OwnStream> OwnStream::create(SharedContext context, Diagnostics& diagnostics,
                                             bool urgent) {
  const CurrentContext current(*context);
  const OutsideCapture outside(context->driver());
  if (!current.is_set(diagnostics)) return nullptr;
  std::unique_ptr<OwnStream> stream(new OwnStream(context));
  int least = 0, greatest = 0;
  if (!context->ok(context->driver().CtxGetStreamPriorityRange(&least, &greatest),
                   "get the priorities of streams", diagnostics) ||
      !context->ok(context->driver().StreamCreateWithPriority(
                       &stream->stream_, abi::kStreamNonBlocking, urgent ? greatest : least),
                   "create a stream", diagnostics)) {
    stream->stream_ = nullptr;
    return nullptr;
  }
  return stream;
}

OwnStream::~OwnStream() {
  if (stream_ == nullptr) return;
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  context_->driver().StreamDestroy(stream_);
}

abi::Stream OwnStream::release() {
  const abi::Stream stream = stream_;
  stream_ = nullptr;
  return stream;
}

bool OwnStream::copy(void* to, const void* from, uint64_t bytes,
                     const std::function<std::string()>& attempt, Diagnostics& diagnostics) {
  if (bytes == 0) return true;
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  const Driver& driver = context_->driver();
  return current.is_set(diagnostics) &&
         context_->ok(driver.MemcpyAsync(address_of(to), address_of(from), bytes, stream_), attempt,
                      diagnostics) &&
         context_->ok(driver.StreamSynchronize(stream_), attempt, diagnostics);
}

bool OwnStream::clear(abi::Address at, uint64_t bytes, const std::string& attempt,
                      Diagnostics& diagnostics) {
  if (bytes == 0) return true;
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  const Driver& driver = context_->driver();
  return current.is_set(diagnostics) &&
         context_->ok(driver.MemsetD8Async(at, 0, bytes, stream_), attempt, diagnostics) &&
         context_->ok(driver.StreamSynchronize(stream_), attempt, diagnostics);
}

std::unique_ptr<OwnEvent> OwnEvent::create(SharedContext context, Diagnostics& diagnostics) {
  const CurrentContext current(*context);
  const OutsideCapture outside(context->driver());
  if (!current.is_set(diagnostics)) return nullptr;
  std::unique_ptr<OwnEvent> event(new OwnEvent(context));
  if (!context->ok(context->driver().EventCreate(&event->event_, abi::kEventDisableTiming),
                   "create an event", diagnostics)) {
    event->event_ = nullptr;
    return nullptr;
  }
  return event;
}

OwnEvent::~OwnEvent() {
  if (event_ == nullptr) return;
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  context_->driver().EventDestroy(event_);
}

bool OwnEvent::record(abi::Stream stream, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);  // no capture forbids it: no OutsideCapture
  return current.is_set(diagnostics) && context_->ok(
                                            context_->driver().EventRecord(event_, stream),
                                            [] { return "record an event"; }, diagnostics);
}

bool OwnEvent::delay(abi::Stream stream, Diagnostics& diagnostics) const {
  const CurrentContext current(*context_);
  return current.is_set(diagnostics) &&
         context_->ok(
             context_->driver().StreamWaitEvent(stream, event_, 0),
             [] { return "make a stream wait for an event"; }, diagnostics);
}

bool OwnEvent::reached() {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  return current.is_set() && context_->driver().EventQuery(event_) == abi::kSuccess;
}

}  // namespace mscclc::cuda
