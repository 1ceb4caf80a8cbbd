#include "runtime/cuda/launch/stream_chain.h"

#include <algorithm>

namespace mscclc::cuda {
namespace {

constexpr auto kAttempt = [] { return "order calls of several streams"; };

}  // namespace

bool CudaStreamChain::find(StreamHandle stream, Stream& found, Diagnostics& diagnostics) const {
  const Driver& driver = context_->driver();
  found = {};
  found.handle = static_cast<abi::Stream>(stream);
  int status = abi::kCaptureStatusNone;
  const abi::GraphNode* nodes = nullptr;
  size_t count = 0;
  const abi::Result known =
      driver.StreamGetCaptureInfo(found.handle, &status, &found.capture, nullptr, &nodes, &count);
  // Lossy: edges of the user's own have data, and nodes are not told.
  if (known != abi::kLossyQuery && !context_->ok(known, kAttempt, diagnostics)) return false;
  if (status != abi::kCaptureStatusNone) {
    if (known == abi::kSuccess) found.ends.assign(nodes, nodes + count);
    return true;
  }
  found.capture = 0;
  unsigned long long id = 0;
  if (!context_->ok(driver.StreamGetId(found.handle, &id), kAttempt, diagnostics)) return false;
  found.id = id;
  return true;
}

bool CudaStreamChain::follow_captured(const Stream& stream, Diagnostics& diagnostics) const {
  if (stream.capture != captured_.capture || stream.handle == captured_.handle) return true;
  std::vector<abi::GraphNode> before = captured_.ends;
  std::erase_if(before, [&](abi::GraphNode node) {
    return std::find(stream.ends.begin(), stream.ends.end(), node) != stream.ends.end();
  });
  return before.empty() ||
         context_->ok(context_->driver().StreamUpdateCaptureDependencies(
                          stream.handle, before.data(), before.size(), abi::kAddDependencies),
                      kAttempt, diagnostics);
}

bool CudaStreamChain::wait_for_all(Diagnostics& diagnostics) {
  event_ = OwnEvent::create(context_, diagnostics);
  const OutsideCapture outside(context_->driver());
  return event_ != nullptr &&
         context_->ok(context_->driver().CtxSynchronize(), kAttempt, diagnostics);
}

bool CudaStreamChain::follow(StreamHandle stream, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  if (!current.is_set(diagnostics) || !find(stream, now_, diagnostics)) return false;
  if (now_.capture != 0) return follow_captured(now_, diagnostics);
  if (last_ == 0 || last_ == now_.id) return true;
  return event_ == nullptr ? wait_for_all(diagnostics) : event_->delay(now_.handle, diagnostics);
}

bool CudaStreamChain::put_last(StreamHandle stream, Diagnostics& diagnostics) {
  if (now_.capture != 0) {
    const CurrentContext current(*context_);
    return current.is_set(diagnostics) && find(stream, captured_, diagnostics);
  }
  last_ = now_.id;
  return event_ == nullptr || event_->record(now_.handle, diagnostics);
}

}  // namespace mscclc::cuda
