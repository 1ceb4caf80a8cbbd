#include "runtime/devices/cuda/launch/stream_chain.h"

#include <algorithm>

namespace mscclc::cuda {
namespace {

constexpr auto kAttempt = [] { return "order calls of several streams"; };

/// The nodes that are not among `others`.
std::vector<abi::GraphNode> without(std::vector<abi::GraphNode> nodes,
                                    const std::vector<abi::GraphNode>& others) {
  std::erase_if(nodes, [&](abi::GraphNode node) {
    return std::find(others.begin(), others.end(), node) != others.end();
  });
  return nodes;
}

}  // namespace

bool CudaStreamChain::find(StreamHandle stream, Stream& found, Diagnostics& diagnostics) const {
  const Driver& driver = context_->driver();
  found = {};
  found.handle = static_cast<abi::Stream>(stream);
  int status = abi::kCaptureStatusNone;
  const abi::GraphNode* nodes = nullptr;
  size_t count = 0;
  const abi::Result known = driver.StreamGetCaptureInfo(found.handle, &status, &found.capture,
                                                        &found.graph, &nodes, &count);
  // Lossy: edges of the user's own have data, and the nodes are not returned.
  if (known != abi::kLossyQuery && !context_->ok(known, kAttempt, diagnostics)) return false;
  if (status == abi::kCaptureStatusInvalidated) {
    return context_->ok(abi::kStreamCaptureInvalidated, kAttempt, diagnostics);
  }
  if (status != abi::kCaptureStatusNone) {
    found.lossy = known != abi::kSuccess;
    if (!found.lossy) found.ends.assign(nodes, nodes + count);
    return true;
  }
  found.capture = 0;
  unsigned long long id = 0;
  if (!context_->ok(driver.StreamGetId(found.handle, &id), kAttempt, diagnostics)) return false;
  found.id = id;
  return true;
}

CudaStreamChain::Capture& CudaStreamChain::capture(uint64_t id) {
  while (captures_.size() >= kMaxCaptures && captures_.count(id) == 0) {
    captures_.erase(captures_.begin());
  }
  return captures_[id];
}

bool CudaStreamChain::follow_captured(const Capture& capture, Diagnostics& diagnostics) const {
  if (now_.handle == capture.end.handle) return true;
  std::vector<abi::GraphNode> before = without(capture.end.ends, now_.ends);
  return before.empty() ||
         context_->ok(context_->driver().StreamUpdateCaptureDependencies(
                          now_.handle, before.data(), before.size(), abi::kAddDependencies),
                      kAttempt, diagnostics);
}

/// By its id, too: another thread's default stream has the same handle.
bool CudaStreamChain::last_is_there() const {
  Diagnostics ignored;
  Stream last;
  return last_.id != 0 && is_default(last_.handle) && find(last_.handle, last, ignored) &&
         last.capture == 0 && last.id == last_.id;
}

bool CudaStreamChain::have_event(Diagnostics& diagnostics) {
  if (event_ == nullptr) event_ = OwnEvent::create(context_, diagnostics);
  return event_ != nullptr;
}

/// The event may stand for a replay: that is before the mark, too.
bool CudaStreamChain::mark_last(Diagnostics& diagnostics) {
  marked_ = have_event(diagnostics) && (!in_graphs_ || event_->delay(last_.handle, diagnostics)) &&
            event_->record(last_.handle, diagnostics);
  return marked_;
}

/// The chain's event comes into the graph: its replays begin after what has recorded it.
bool CudaStreamChain::begin_graph(Diagnostics& diagnostics) {
  if (!have_event(diagnostics)) return false;
  if (!marked_ && last_is_there() && !mark_last(diagnostics)) return false;
  in_graphs_ = true;
  marks_all_ = true;
  const Driver& driver = context_->driver();
  const OutsideCapture outside(driver);
  abi::GraphNode wait = nullptr;
  return context_->ok(driver.GraphAddEventWaitNode(&wait, now_.graph, nullptr, 0, event_->handle()),
                      kAttempt, diagnostics) &&
         context_->ok(
             driver.StreamUpdateCaptureDependencies(now_.handle, &wait, 1, abi::kAddDependencies),
             kAttempt, diagnostics);
}

bool CudaStreamChain::put_last_captured(Capture& capture, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  const Stream before = capture.end;
  if (!current.is_set(diagnostics) || !find(now_.handle, capture.end, diagnostics)) return false;
  if (replays_ == Replays::ignored) return true;
  if (capture.end.lossy) {  // a node that is known, after those that are not
    const bool known = context_->ok(context_->driver().EventRecordWithFlags(
                                        event_->handle(), now_.handle, abi::kRecordExternal),
                                    kAttempt, diagnostics) &&
                       find(now_.handle, capture.end, diagnostics);
    if (!known) return false;
  }
  return put_record(capture, before, diagnostics);
}

/// The graph records the event after the call that it has taken now, which came after `before`.
bool CudaStreamChain::put_record(Capture& capture, const Stream& before,
                                 Diagnostics& diagnostics) const {
  const OutsideCapture outside(context_->driver());
  if (capture.record != nullptr) return move_record(capture, before, diagnostics);
  const std::vector<abi::GraphNode>& ends = capture.end.ends;
  return context_->ok(
      context_->driver().GraphAddEventRecordNode(&capture.record, capture.end.graph, ends.data(),
                                                 ends.size(), event_->handle()),
      kAttempt, diagnostics);
}

/// The record follows what the call ends with, and no more what the one before ended with: unless
/// the graph allocates memory, which lets no edge go. An edge that stays is right, too.
bool CudaStreamChain::move_record(const Capture& capture, const Stream& before,
                                  Diagnostics& diagnostics) const {
  const Driver& driver = context_->driver();
  for (const abi::GraphNode node : without(capture.end.ends, before.ends)) {
    if (!context_->ok(driver.GraphAddDependencies(capture.end.graph, &node, &capture.record, 1),
                      kAttempt, diagnostics)) {
      return false;
    }
  }
  for (const abi::GraphNode node : without(before.ends, capture.end.ends)) {
    const abi::Result removed =
        driver.GraphRemoveDependencies(capture.end.graph, &node, &capture.record, 1);
    if (removed == abi::kNotSupported) return true;
    if (!context_->ok(removed, kAttempt, diagnostics)) return false;
  }
  return true;
}

bool CudaStreamChain::follow(StreamHandle stream, Diagnostics& diagnostics) {
  const CurrentContext current(*context_);
  *known_ = {};
  if (!current.is_set(diagnostics) || !find(stream, now_, diagnostics)) return false;
  *known_ = {now_.handle, now_.id};
  if (now_.capture != 0) {
    const Capture& taken = capture(now_.capture);
    if (taken.end.handle != nullptr) return follow_captured(taken, diagnostics);
    return replays_ == Replays::ignored || begin_graph(diagnostics);
  }
  const bool elsewhere = last_.id != 0 && last_.id != now_.id;
  marks_all_ |= elsewhere;
  if (elsewhere && !marked_) {
    if (!last_is_there()) return context_->wait_for_all(kAttempt(), diagnostics);
    if (!mark_last(diagnostics)) return false;
  }
  return (!elsewhere && !in_graphs_) || event_->delay(now_.handle, diagnostics);
}

bool CudaStreamChain::put_last(StreamHandle, Diagnostics& diagnostics) {
  *known_ = {};
  if (now_.capture != 0) return put_last_captured(capture(now_.capture), diagnostics);
  last_ = {now_.handle, now_.id};
  const bool first = replays_ == Replays::ordered && at_first_ < kMarkedAtFirst;
  if (first) ++at_first_;
  const bool marks = marks_all_ || first;
  marked_ = marks && have_event(diagnostics) && event_->record(now_.handle, diagnostics);
  return marked_ || !marks;
}

}  // namespace mscclc::cuda
