// For tests: proxies on lanes whose orders are held until the test lets them go.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "executor/launch.h"
#include "executor/port_slots.h"
#include "executor/shared_atomics.h"
#include "runtime/core/proxy/proxy.h"
#include "runtime/support/memory/handle.h"

namespace mscclc::testing {

using device::PortRequest;
using device::PortWhat;

/// The orders of a lane, on their way to a copy engine that does them when the test says so.
class Orders {
 public:
  void add(std::function<void()> order) {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(order));
  }
  /// What the lane was asked for, one word each.
  void note(const std::string& call) {
    const std::lock_guard lock(mutex_);
    calls_ += call + " ";
  }
  std::string calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  size_t held() const {
    const std::lock_guard lock(mutex_);
    return orders_.size();
  }
  void do_next() {
    const std::lock_guard lock(mutex_);
    orders_.front()();
    orders_.pop_front();
  }
  /// From now on all is done at once when it is asked for.
  void let_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
  }
  /// The copy engine has met an error: it does nothing more, and what waits for it fails.
  void break_down() {
    const std::lock_guard lock(mutex_);
    broken_ = true;
  }
  /// Has all been done? Asked again and again until it has.
  FlushState ask() {
    const std::lock_guard lock(mutex_);
    if (!asked_) ++waits_;
    asked_ = true;
    if (broken_) return FlushState::failed;
    if (!free_ && !orders_.empty()) return FlushState::under_way;
    for (; !orders_.empty(); orders_.pop_front()) orders_.front()();
    asked_ = false;
    return FlushState::done;
  }
  void set_room(uint64_t room) { room_ = room; }
  void refuse_uncork() { uncorks_ = false; }
  bool uncorks() const { return uncorks_; }
  /// Puts find no memory from now on.
  void run_out_of_memory() { has_memory_ = false; }
  bool has_memory() const { return has_memory_; }
  uint64_t room() const { return room_; }
  /// The lane has ended: nothing of what was asked for is read or written any more.
  void end() { ended_ = true; }
  bool ended() const { return ended_; }
  /// How often a wait has begun.
  int waits() const {
    const std::lock_guard lock(mutex_);
    return waits_;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<std::function<void()>> orders_;
  std::string calls_;
  bool free_ = false, broken_ = false, asked_ = false;
  int waits_ = 0;
  std::atomic<uint64_t> room_ = Lane::kAnyRoom;
  std::atomic<bool> uncorks_{true}, has_memory_{true}, ended_{false};
};

/// The thread that has taken a device as its own.
inline thread_local const Device* bound = nullptr;

class HeldLane final : public Lane {
 public:
  HeldLane(std::shared_ptr<Orders> orders, const Device* device)
      : orders_(std::move(orders)), device_(device) {}
  ~HeldLane() override { orders_->end(); }
  bool put(const RemotePlace& to, const void* from, uint64_t bytes, Diagnostics&) override {
    if (bound != device_) return false;
    if (!orders_->has_memory()) throw std::bad_alloc();
    orders_->note("put");
    orders_->add([=] {
      std::memcpy(to.region->data() + to.offset, from, bytes);  // parts of words, too
    });
    return true;
  }
  bool signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) override {
    orders_->note("signal");
    return complete(reinterpret_cast<uint64_t*>(count.region->data() + count.offset), value,
                    diagnostics);
  }
  bool complete(uint64_t* count, uint64_t value, Diagnostics&) override {
    if (bound != device_) return false;
    orders_->add([=] { store_release(count, value); });
    return true;
  }
  bool note(const LaneNote& note, Diagnostics&) override {
    orders_->note(fmt::format("note{}", note[0]));
    return true;
  }
  void cork() override { orders_->note("cork"); }
  bool uncork(Diagnostics& diagnostics) override {
    orders_->note("uncork");
    if (!orders_->uncorks()) diagnostics.error("test", {}, "the cable has been pulled");
    return orders_->uncorks();
  }
  uint64_t room() override { return orders_->room(); }
  FlushState try_flush(Diagnostics& diagnostics) override {
    const FlushState state = orders_->ask();
    if (state == FlushState::failed) {
      diagnostics.error("test", {}, "the copy engine has broken down");
    }
    return state;
  }

 private:
  const std::shared_ptr<Orders> orders_;
  const Device* const device_;
};

class Zeros final : public Memory {
 public:
  explicit Zeros(uint64_t bytes) : slots_(bytes / sizeof(device::PortSlot) + 1) {
    data_ = reinterpret_cast<uint8_t*>(slots_.data());
    bytes_ = bytes;
  }

 private:
  std::vector<device::PortSlot> slots_;  ///< what is to lie there
};

/// Memory of a peer.
class View final : public Memory {
 public:
  explicit View(uint64_t* word) {
    data_ = reinterpret_cast<uint8_t*>(word);
    bytes_ = sizeof *word;
  }
};

/// A device that has what a proxy needs, and nothing else.
class HeldDevice final : public Device {
 public:
  std::vector<std::shared_ptr<Orders>> lanes;  ///< in the order in which they were opened
  bool can_bind = true;

  std::string name() const override { return "held"; }
  std::unique_ptr<Memory> allocate_visible(uint64_t bytes, const std::string&,
                                           Diagnostics&) override {
    return std::make_unique<Zeros>(bytes);
  }
  std::unique_ptr<Lane> open_lane(const LanePeer&, Diagnostics&) override {
    lanes.push_back(std::make_shared<Orders>());
    return std::make_unique<HeldLane>(lanes.back(), this);
  }
  bool bind_thread(Diagnostics& diagnostics) override {
    if (can_bind) {
      bound = this;
    } else {
      diagnostics.error("test", {}, "the device is gone");
    }
    return can_bind;
  }

  std::unique_ptr<Memory> allocate(uint64_t, const std::string&, Diagnostics&) override {
    return nullptr;
  }
  std::optional<MemoryHandle> export_memory(const void*, uint64_t, Diagnostics&) override {
    return std::nullopt;
  }
  std::unique_ptr<HeldMemory> hold_memory(const void*, uint64_t, Diagnostics&) override {
    return nullptr;
  }
  std::unique_ptr<Memory> import_memory(const MemoryHandle&, Diagnostics&) override {
    return nullptr;
  }
  bool write(void*, const void*, uint64_t, Diagnostics&) override { return false; }
  bool read(void*, const void*, uint64_t, Diagnostics&) override { return false; }
  bool copy(void*, const void*, uint64_t, StreamHandle, Diagnostics&) override { return false; }
  bool scale(const Scaling&, StreamHandle, Diagnostics&) override { return false; }
  std::optional<uint32_t> fits(const device::LaunchPlan&, Diagnostics&) override { return {}; }
  bool launch(const device::LaunchPlan&, StreamHandle, Diagnostics&) override { return false; }
  bool synchronize(StreamHandle, Diagnostics&) override { return false; }
  bool mark(StreamHandle, std::unique_ptr<StreamMark>&, Diagnostics&) override { return false; }
  std::unique_ptr<StreamChain> chain_streams(Replays, Diagnostics&) override { return nullptr; }
  StreamHandle create_stream(Diagnostics&) override { return nullptr; }
  void destroy_stream(StreamHandle) override {}
};

/// Waits for what another thread does.
template <class Test>
bool comes(Test test) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!test()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A rank with a port to each of two peers, its proxy, and its only block.
struct ProxyWorld {
  explicit ProxyWorld(std::chrono::microseconds awake,
                      std::shared_ptr<HeldDevice> on = std::make_shared<HeldDevice>(),
                      std::chrono::microseconds soon = Proxy::kSoon, uint64_t credits = 0)
      : device(std::move(on)) {
    Diagnostics diagnostics;
    Proxy::Ports ports{{{true, 0, &arrived[0], credits}, {true, 1, &arrived[1]}}, {}, regions};
    for (uint32_t peer = 0; peer < 2; ++peer) {
      known.push_back(regions->add(peer, std::make_unique<View>(&arrived[peer])));
      known.push_back(regions->add(peer, std::make_unique<View>(&there[peer])));
      ports.lanes.push_back(device->open_lane({peer}, diagnostics));
      lanes.push_back(device->lanes.back());
    }
    proxy = Proxy::start(
        device, std::move(ports), {&claimed, &seen_by_blocks, flushed},
        [this](const std::string& why) {
          if (lacks_memory_to_fail-- > 0) throw std::bad_alloc();
          failure = why;
          failed = true;
        },
        diagnostics, awake, soon);
    REQUIRE(proxy != nullptr);
  }
  ~ProxyWorld() {
    for (const auto& lane : lanes) lane->let_go();
  }
  Orders& lane(uint32_t peer) { return *lanes[peer]; }

  /// Posts requests, all of which the proxy finds when it finds the first.
  void post(const std::vector<PortRequest>& requests) {
    for (size_t i = requests.size(); i-- > 0;) {
      write_request(proxy->queue(), claimed + i, requests[i]);
    }
    claimed += requests.size();
  }
  PortRequest put(uint32_t channel) {
    return {PortWhat::put, channel, reinterpret_cast<uint64_t>(&there[channel]),
            reinterpret_cast<uint64_t>(&source), sizeof source};
  }
  static PortRequest order(PortWhat what, uint32_t channel) { return {what, channel}; }
  uint64_t handled() const { return load_acquire<uint64_t>(proxy->queue().handled); }
  uint64_t seen(const uint64_t& word) const { return load_acquire<uint64_t>(&word); }

  const std::shared_ptr<HeldDevice> device;
  std::vector<std::shared_ptr<Orders>> lanes;
  std::shared_ptr<RemoteRegions> regions = std::make_shared<RemoteRegions>();
  std::vector<std::unique_ptr<Memory>> known;  ///< to `regions`
  uint64_t claimed = 0, seen_by_blocks = 0, flushed[2] = {}, arrived[2] = {}, there[2] = {};
  uint64_t source = 77;
  std::string failure;
  std::atomic<bool> failed{false};
  std::atomic<int> lacks_memory_to_fail{0};  ///< so often
  std::unique_ptr<Proxy> proxy;              ///< ends first
};

}  // namespace mscclc::testing
