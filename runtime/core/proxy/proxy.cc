#include "runtime/core/proxy/proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "executor/port_slots.h"
#include "executor/shared_atomics.h"
#include "ir/diagnostics/first_message.h"
#include "runtime/support/idle.h"
#include "runtime/support/process/insist.h"

namespace mscclc {

using device::PortRequest;
using device::PortWhat;

namespace {

/// To send it takes longer than to copy it.
constexpr uint64_t kShortPut = 16 << 10;

}  // namespace

std::unique_ptr<Proxy> Proxy::start(std::shared_ptr<Device> device, Ports ports,
                                    const Counts& counts,
                                    std::function<void(const std::string&)> fail,
                                    Diagnostics& diagnostics, std::chrono::microseconds awake,
                                    std::chrono::microseconds soon) {
  std::unique_ptr<Proxy> proxy(new Proxy(awake, soon));
  constexpr uint64_t kSlots = kCapacity * sizeof(device::PortSlot);
  proxy->memory_ =
      device->allocate_visible(kSlots + sizeof(uint64_t), "the queue of the proxy", diagnostics);
  if (proxy->memory_ == nullptr) return nullptr;
  proxy->handled_ = reinterpret_cast<uint64_t*>(proxy->memory_->data() + kSlots);
  proxy->queue_ = {reinterpret_cast<device::PortSlot*>(proxy->memory_->data()),
                   kBits,
                   counts.claimed,
                   counts.seen,
                   counts.flushed,
                   proxy->handled_};
  proxy->device_ = std::move(device);
  proxy->ports_ = std::move(ports);
  for (Port& port : proxy->ports_.channels) {
    if (!port.used || port.arrived == nullptr) continue;
    const auto count = proxy->find(port.peer, port.arrived, sizeof *port.arrived, diagnostics);
    if (!count) return nullptr;
    port.count = *count;
    if (port.sent > 0) proxy->settled_ = kNever;  // credits are to be flushed
  }
  proxy->fail_ = std::move(fail);
  proxy->thread_ = ProxyThread::of(*proxy->device_, diagnostics);
  if (proxy->thread_ == nullptr) return nullptr;
  proxy->thread_->add(*proxy);
  return proxy;
}

Proxy::~Proxy() {
  stop_ = true;
  if (thread_ == nullptr) return;
  for (Idle idle; !is_over();) idle.rest();
}

Proxy::Step Proxy::handle(const PortRequest& request) {
  Port& port = ports_.channels[request.channel];
  switch (request.what) {
    case PortWhat::put:
    case PortWhat::put_and_signal:
      return put(request, port);
    case PortWhat::signal:
      return signal(port);
    case PortWhat::flush:
      return ports_.lanes[port.peer]->complete(queue_.flushed + request.channel, number_ + 1,
                                               problems_)
                 ? Step::done
                 : Step::failed;
  }
  return Step::done;
}

Proxy::Step Proxy::put(const PortRequest& request, Port& port) {
  if (given_ < request.bytes) {
    const Step step = give(request, port);
    if (step != Step::done) return step;
  }
  if (request.what == PortWhat::put_and_signal) {
    const Step step = signal(port);
    if (step != Step::done) return step;
  } else {
    expects_ = port.signals && request.bytes <= kShortPut ? &port : nullptr;
  }
  given_ = 0;
  return Step::done;
}

/// What the lane takes of a put.
Proxy::Step Proxy::give(const PortRequest& request, Port& port) {
  const auto to =
      find(port.peer, reinterpret_cast<const void*>(request.to), request.bytes, problems_);
  if (!to) return Step::failed;
  Lane& lane = *ports_.lanes[port.peer];
  const uint64_t bytes = std::min(request.bytes - given_, lane.room());
  if (bytes == 0) return Step::no_room;
  cork(lane);
  const auto* from = reinterpret_cast<const uint8_t*>(request.from) + given_;
  if (!lane.put({to->region, to->offset + given_}, from, bytes, problems_)) return Step::failed;
  given_ += bytes;
  if (given_ < request.bytes) return Step::part;
  port.signals &= port.put_turn == 0;
  port.put_turn = turn_;
  return Step::done;
}

Proxy::Step Proxy::signal(Port& port) {
  if (port.arrived == nullptr) return Step::done;
  Lane& lane = *ports_.lanes[port.peer];
  if (lane.room() == 0) return Step::no_room;
  cork(lane);
  if (port.put_turn != 0) port.signals = turn_ - port.put_turn <= 1;
  port.put_turn = 0;
  return lane.signal(port.count, ++port.sent, problems_) ? Step::done : Step::failed;
}

std::optional<RemotePlace> Proxy::find(uint32_t peer, const void* address, uint64_t bytes,
                                       Diagnostics& problems) const {
  auto place = ports_.regions->find(peer, address, bytes);
  if (!place) {
    problems.error("lane-failed", {},
                   fmt::format("{} bytes at {} are not in memory that rank {} shares", bytes,
                               fmt::ptr(address), peer));
  }
  return place;
}

/// Waits for the signal after a put, if it has come at once so far: to send both together takes
/// half of the time.
bool Proxy::signal_comes(PortRequest& request) {
  Port* const port = std::exchange(expects_, nullptr);
  if (port == nullptr) return false;
  for (const auto end = std::chrono::steady_clock::now() + soon_;
       !read_request(queue_, number_, request);) {
    if (std::chrono::steady_clock::now() < end) continue;
    port->signals = false;
    return false;
  }
  return true;
}

/// The orders of this turn go together.
void Proxy::cork(Lane& lane) {
  if (std::ranges::find(corked_, &lane) != corked_.end()) return;
  lane.cork();
  corked_.push_back(&lane);
}

bool Proxy::uncork() {
  bool good = true;
  for (Lane* const lane : corked_) good &= lane->uncork(problems_);
  corked_.clear();
  expects_ = nullptr;
  ++turn_;
  return good;
}

/// Some requests, or a part of one. A failed copy must not look like one that has been done: the
/// count stays where it is.
Proxy::Step Proxy::serve_some(bool& moved) {
  PortRequest request;
  for (uint32_t i = 0;
       i < kTurn && (read_request(queue_, number_, request) || signal_comes(request)); ++i) {
    expects_ = nullptr;
    if (const Step passed = pass_on_notes(); passed != Step::done) return passed;
    const Step step = handle(request);
    moved |= step == Step::done || step == Step::part;
    if (step != Step::done) return step;
    store_release<uint64_t>(handled_, ++number_);
  }
  return Step::done;
}

void Proxy::note(const LaneNote& note) {
  const std::lock_guard lock(notes_mutex_);
  notes_.push_back(note);
  has_notes_.store(true, std::memory_order_release);
}

/// In their order, each over all lanes.
Proxy::Step Proxy::pass_on_notes() {
  while (has_notes_.load(std::memory_order_acquire)) {
    LaneNote note;
    {
      const std::lock_guard lock(notes_mutex_);
      note = notes_.front();
    }
    for (; noted_lanes_ < ports_.lanes.size(); ++noted_lanes_) {
      Lane* const lane = ports_.lanes[noted_lanes_].get();
      if (lane == nullptr) continue;
      if (lane->room() == 0) return Step::no_room;
      if (!lane->note(note, problems_)) return Step::failed;
    }
    noted_lanes_ = 0;
    const std::lock_guard lock(notes_mutex_);
    notes_.pop_front();
    has_notes_.store(!notes_.empty(), std::memory_order_release);
  }
  return Step::done;
}

/// Without memory for its turn it does nothing more: an order may be half given.
ProxyThread::Progress Proxy::serve() {
  try {
    return serve_turn();
  } catch (const std::bad_alloc&) {
  }
  insist([this] { fail_("the proxy cannot continue: there is not enough memory"); });
  ended_ = true;
  return ProxyThread::Progress::over;
}

/// Copies are awaited only where no block runs, or where none has asked for anything for long: then
/// so that a copy that has failed is found.
ProxyThread::Progress Proxy::serve_turn() {
  const bool stopping = stop_;  // asked first: what was asked for before it is done
  if (!bind()) return give_up();
  bool moved = false;
  Step step = pass_on_notes();  // where blocks only receive, no request takes them along
  if (step == Step::done) step = serve_some(moved);
  const bool begun = uncork();
  if (!begun || step == Step::failed) return give_up();
  if (moved) {
    quiet_since_.reset();
    flushing_ = false;
    return ProxyThread::Progress::moved;
  }
  if (step == Step::no_room) return ProxyThread::Progress::idle;
  if (settled_ != number_) {
    return stopping || waiting_ > 0 || is_quiet() ? flush_some() : ProxyThread::Progress::idle;
  }
  return stopping ? ProxyThread::Progress::over : ProxyThread::Progress::idle;
}

bool Proxy::bind() {
  if (!bound_) bound_ = device_->bind_thread(problems_) && give_credits();
  return bound_;
}

/// No block asks for these; they are flushed as what blocks have asked for is.
bool Proxy::give_credits() {
  for (Port& port : ports_.channels) {
    if (!port.used || port.arrived == nullptr || port.sent == 0) continue;
    if (!ports_.lanes[port.peer]->signal(port.count, port.sent, problems_)) return false;
  }
  return true;
}

// The clock costs more than a look at the queue, and the thread lets others run only after some
// looks.
bool Proxy::is_quiet() {
  if (++looks_ % kLooks != 0) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!quiet_since_) quiet_since_ = now;
  return now - *quiet_since_ >= awake_;
}

ProxyThread::Progress Proxy::flush_some() {
  const bool begins = !std::exchange(flushing_, true);
  if (begins) flushed_lanes_ = 0;
  for (; flushed_lanes_ < ports_.lanes.size(); ++flushed_lanes_) {
    Lane* const lane = ports_.lanes[flushed_lanes_].get();
    const FlushState state = lane == nullptr ? FlushState::done : lane->try_flush(problems_);
    if (state == FlushState::failed) return give_up();
    if (state == FlushState::under_way) {
      return begins ? ProxyThread::Progress::moved : ProxyThread::Progress::idle;
    }
  }
  flushing_ = false;
  settled_ = number_;
  return ProxyThread::Progress::moved;
}

ProxyThread::Progress Proxy::give_up() {
  fail_("the proxy cannot continue: " + first_message(problems_));
  ended_ = true;
  return ProxyThread::Progress::over;
}

void Proxy::settle() {
  Idle idle;
  ++waiting_;
  // A slot may have been used again since: what has been handled counts too.
  PortRequest next;
  while (!ended_ &&
         (settled_ != load_acquire<uint64_t>(handled_) || read_request(queue_, settled_, next))) {
    idle.rest();
  }
  --waiting_;
  if (!ended_) return;
  while (!is_over()) idle.rest();
  ports_.lanes.clear();  // each waits for what it has begun
}

}  // namespace mscclc
