#include "runtime/proxy/proxy.h"

#include <fmt/format.h>

#include "executor/words.h"
#include "runtime/base/idle.h"
#include "runtime/base/quiet_thread.h"

namespace mscclc {

using device::PortRequest;
using device::PortWhat;

std::unique_ptr<Proxy> Proxy::start(std::shared_ptr<Device> device, Ports ports, uint64_t* claimed,
                                    uint64_t* flushed, std::function<void(const std::string&)> fail,
                                    Diagnostics& diagnostics, std::chrono::microseconds awake) {
  std::unique_ptr<Proxy> proxy(new Proxy(awake));
  constexpr uint64_t kSlots = kCapacity * sizeof(PortRequest);
  proxy->memory_ =
      device->allocate_visible(kSlots + sizeof(uint64_t), "the queue of the proxy", diagnostics);
  if (proxy->memory_ == nullptr) return nullptr;
  proxy->handled_ = reinterpret_cast<uint64_t*>(proxy->memory_->data() + kSlots);
  proxy->queue_ = {reinterpret_cast<PortRequest*>(proxy->memory_->data()), kCapacity, claimed,
                   flushed, proxy->handled_};
  proxy->device_ = std::move(device);
  proxy->ports_ = std::move(ports);
  for (Port& port : proxy->ports_.channels) {
    if (!port.used || port.arrived == nullptr) continue;
    const auto count = proxy->find(port.peer, port.arrived, sizeof *port.arrived, diagnostics);
    if (!count) return nullptr;
    port.count = *count;
  }
  proxy->fail_ = std::move(fail);
  proxy->thread_ = quiet_thread("mscclc-proxy", [p = proxy.get()] { p->serve(); });
  return has_started(proxy->thread_, "the proxy of port channels", diagnostics) ? std::move(proxy)
                                                                                : nullptr;
}

Proxy::~Proxy() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

// Nothing here waits for a copy: the lanes of other peers would have to wait with it.
bool Proxy::handle(const PortRequest& request, uint64_t number, Diagnostics& problems) {
  Port& port = ports_.channels[request.channel];
  Lane& lane = *ports_.lanes[port.peer];
  switch (request.what) {
    case PortWhat::put:
      return put(request, port, problems);
    case PortWhat::signal:
      return port.arrived == nullptr || lane.signal(port.count, ++port.sent, problems);
    case PortWhat::flush:
      return lane.complete(queue_.flushed + request.channel, number + 1, problems);
  }
  return true;
}

bool Proxy::put(const PortRequest& request, const Port& port, Diagnostics& problems) {
  if (request.bytes == 0) return true;
  const auto to =
      find(port.peer, reinterpret_cast<const void*>(request.to), request.bytes, problems);
  return to && ports_.lanes[port.peer]->put(*to, reinterpret_cast<const void*>(request.from),
                                            request.bytes, problems);
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

bool Proxy::asked(uint64_t number) const {
  return load_acquire<uint64_t>(&queue_.slots[number % kCapacity].ready) == number + 1;
}

// A failed copy must not look like one that has been done: the count stays where it is.
bool Proxy::serve_next(uint64_t number, Diagnostics& problems) {
  if (!handle(queue_.slots[number % kCapacity], number, problems)) return false;
  store_release<uint64_t>(handled_, number + 1);
  return true;
}

bool Proxy::flush_all(Diagnostics& problems) {
  for (const auto& lane : ports_.lanes) {
    if (lane != nullptr && !lane->flush(problems)) return false;
  }
  return true;
}

/// Until it is to stop; false: a copy has failed. It waits for copies only where no block runs, or
/// where none has asked for anything for long: then so that a copy that has failed is found.
bool Proxy::serve_all(Diagnostics& problems) {
  Idle idle(awake_);
  uint64_t number = 0;
  for (;;) {
    const bool stopping = stop_;  // asked first: what was asked for before it is done
    if (asked(number)) {
      if (!serve_next(number, problems)) return false;
      ++number;
      idle.reset();
    } else if (settled_ != number && (stopping || waiting_ > 0 || idle.is_tired())) {
      if (!flush_all(problems)) return false;
      settled_ = number;
    } else if (stopping) {
      return true;
    } else {
      idle.rest();
    }
  }
}

void Proxy::serve() {
  Diagnostics problems;
  if (!device_->bind_thread(problems) || !serve_all(problems)) {
    fail_("the proxy cannot continue: " + problems.all().front().message);
  }
  ended_ = true;
}

void Proxy::settle() {
  Idle idle;
  ++waiting_;
  // A slot may have been used again since: what has been handled counts too.
  while (!ended_ && (settled_ != load_acquire<uint64_t>(handled_) || asked(settled_))) idle.rest();
  --waiting_;
}

}  // namespace mscclc
