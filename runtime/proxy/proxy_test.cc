// The proxy on lanes whose orders are held until the test lets them go: for what it waits, and for
// what not.
#include "runtime/proxy/proxy.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "executor/launch.h"
#include "executor/port_slots.h"
#include "executor/words.h"
#include "runtime/memory/handle.h"
#include "runtime/testing/named_threads.h"

namespace mscclc {
namespace {

using device::PortRequest;
using device::PortWhat;
using std::chrono::hours;
using std::chrono::milliseconds;

/// The orders of a lane, on their way to a copy engine that does them when it is told.
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
  /// From now on all is done at once when somebody asks for it.
  void let_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
  }
  /// The copy engine has met an error: it does nothing more, and tells whoever waits.
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
  uint64_t room() const { return room_; }
  /// How often somebody has begun to wait.
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
  std::atomic<bool> uncorks_{true};
};

/// The thread that has taken a device as its own.
thread_local const Device* bound = nullptr;

class HeldLane final : public Lane {
 public:
  HeldLane(std::shared_ptr<Orders> orders, const Device* device)
      : orders_(std::move(orders)), device_(device) {}
  bool put(const RemotePlace& to, const void* from, uint64_t bytes, Diagnostics&) override {
    if (bound != device_) return false;
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
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!test()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A rank with a port to each of two peers, its proxy, and its only block.
struct World {
  explicit World(std::chrono::microseconds awake,
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
          failure = why;
          failed = true;
        },
        diagnostics, awake, soon);
    REQUIRE(proxy != nullptr);
  }
  ~World() {
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
  std::unique_ptr<Proxy> proxy;  ///< ends first
};

TEST_CASE("notes go over all lanes before what is asked for after them") {
  World world(hours(1));
  const auto calls = [&](uint32_t peer) { return world.lane(peer).calls(); };
  world.proxy->note({1});
  world.post({world.put(0)});
  REQUIRE(comes([&] { return world.handled() == 1; }));
  CHECK(calls(0).starts_with("note1 cork put "));
  world.proxy->note({2});
  world.proxy->note({3});
  REQUIRE(comes([&] { return calls(1) == "note1 note2 note3 "; }));
  // A lane without room has them when it has room, and nothing else goes before.
  world.lane(0).set_room(0);
  world.proxy->note({4});
  world.post({world.put(1)});
  std::this_thread::sleep_for(milliseconds(5));
  CHECK(world.handled() == 1);
  world.lane(0).set_room(Lane::kAnyRoom);
  REQUIRE(comes([&] { return world.handled() == 2; }));
  CHECK(calls(1).starts_with("note1 note2 note3 note4 cork put "));
  CHECK(world.lane(0).calls().find("note3 note4 ") != std::string::npos);
}

TEST_CASE("a flush waits in its lane: the proxy goes on with other peers") {
  World world(hours(1));
  world.post({world.put(0), World::order(PortWhat::signal, 0), World::order(PortWhat::flush, 0),
              world.put(1)});
  REQUIRE(comes([&] { return world.handled() == 4; }));
  CHECK(world.lane(1).held() == 1);
  CHECK(world.lane(0).waits() == 0);
  CHECK(world.seen(world.flushed[0]) == 0);
  world.lane(0).do_next();
  CHECK(world.seen(world.there[0]) == 77);
  CHECK(world.seen(world.flushed[0]) == 0);
  world.lane(0).do_next();
  CHECK(world.seen(world.arrived[0]) == 1);
  CHECK(world.seen(world.flushed[0]) == 0);
  world.lane(0).do_next();
  CHECK(world.seen(world.flushed[0]) == 3);  // the flush was request 2
  CHECK(world.seen(world.flushed[1]) == 0);
  CHECK(world.seen(world.there[1]) == 0);
}

TEST_CASE("copies are awaited when somebody settles, and not before") {
  World world(hours(1));
  world.post({world.put(0)});
  REQUIRE(comes([&] { return world.handled() == 1; }));
  std::this_thread::sleep_for(milliseconds(20));
  world.post({world.put(1)});
  REQUIRE(comes([&] { return world.lane(1).held() == 1; }));
  CHECK(world.lane(0).waits() == 0);
  std::atomic<bool> settled = false;
  std::thread caller([&] {
    world.proxy->settle();
    settled = true;
  });
  const bool waits = comes([&] { return world.lane(0).waits() == 1; });
  CHECK(!settled);
  world.lane(0).do_next();
  const bool waits_on = comes([&] { return world.lane(1).waits() == 1; });
  CHECK(!settled);
  world.lane(1).do_next();
  caller.join();
  CHECK(waits);
  CHECK(waits_on);
  CHECK(world.there[0] == 77);
  CHECK(world.there[1] == 77);
  world.proxy->settle();  // at once: there is nothing left
  CHECK(world.lane(0).waits() == 1);
}

// Lanes take no order here of a thread that has not taken their device.
TEST_CASE("credits are signalled before anything is asked for, and settled like all else") {
  World world(hours(1), std::make_shared<HeldDevice>(), Proxy::kSoon, 3);
  REQUIRE(comes([&] { return world.lane(0).held() == 1; }));
  std::atomic<bool> settled = false;
  std::thread caller([&] {
    world.proxy->settle();
    settled = true;
  });
  const bool waits = comes([&] { return world.lane(0).waits() == 1; });
  CHECK(!settled);
  world.lane(0).do_next();
  caller.join();
  CHECK(waits);
  CHECK(world.seen(world.arrived[0]) == 3);
  CHECK(world.lane(1).calls() == "");
  world.post({World::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return world.lane(0).held() == 1; }));
  world.lane(0).do_next();
  CHECK(world.seen(world.arrived[0]) == 4);
}

TEST_CASE("the proxy's thread takes its device before its first order") {
  World world(hours(1));
  world.lane(0).let_go();
  world.post({world.put(0), World::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return world.handled() == 2; }));
  world.proxy->settle();
  CHECK(world.there[0] == 77);
  CHECK(!world.failed);
  CHECK(bound == nullptr);  // by that thread alone
}

TEST_CASE("a proxy whose thread cannot take its device says so") {
  const auto device = std::make_shared<HeldDevice>();
  device->can_bind = false;
  World world(hours(1), device);
  REQUIRE(comes([&] { return world.failed.load(); }));
  CHECK(world.failure == "the proxy cannot continue: the device is gone");
}

TEST_CASE("a proxy that ends waits for its copies") {
  World world(hours(1));
  world.lane(1).let_go();
  world.post({world.put(1), World::order(PortWhat::flush, 1)});
  world.proxy.reset();
  CHECK(world.there[1] == 77);
  CHECK(world.flushed[1] == 2);
}

// A block that waits for its flush asks for nothing more: only this can tell it.
TEST_CASE("a copy that fails is found when nobody asks for anything, and never counts as done") {
  World world(milliseconds(1));
  world.lane(0).break_down();
  world.post({world.put(0), World::order(PortWhat::signal, 0), World::order(PortWhat::flush, 0)});
  REQUIRE(comes([&] { return world.failed.load(); }));
  CHECK(world.failure == "the proxy cannot continue: the copy engine has broken down");
  CHECK(world.seen(world.flushed[0]) == 0);
  CHECK(world.seen(world.arrived[0]) == 0);
  world.proxy->settle();  // returns: nothing is done any more
}

TEST_CASE("a put to memory that its peer does not share ends the proxy") {
  World world(hours(1));
  PortRequest wrong = world.put(0);
  wrong.to = reinterpret_cast<uint64_t>(&world.there[1]);  // the other peer's
  world.post({wrong, World::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return world.failed.load(); }));
  CHECK(world.failure ==
        fmt::format("the proxy cannot continue: 8 bytes at {} are not in memory that "
                    "rank 0 shares",
                    fmt::ptr(&world.there[1])));
  CHECK(world.lane(0).held() == 0);
}

TEST_CASE("a copy that fails is found by who settles") {
  World world(hours(1));
  world.lane(1).break_down();
  world.post({world.put(1), World::order(PortWhat::flush, 1)});
  world.proxy->settle();
  CHECK(world.failed);
  CHECK(world.flushed[1] == 0);
}

size_t proxy_threads() { return testing::threads_named("mscclc-proxy"); }

TEST_CASE("proxies of one device have one thread, those of another device another") {
  REQUIRE(comes([] { return proxy_threads() == 0; }));
  {
    World first(hours(1));
    World second(hours(1), first.device), third(hours(1), first.device);
    CHECK(comes([] { return proxy_threads() == 1; }));
    World elsewhere(hours(1));
    CHECK(comes([] { return proxy_threads() == 2; }));
    for (World* world : {&first, &second, &third, &elsewhere}) {
      world->post({world->put(0), World::order(PortWhat::signal, 0)});
      world->lane(0).let_go();
      world->proxy->settle();
      CHECK(world->there[0] == 77);
    }
    third.proxy.reset();
    CHECK(proxy_threads() == 2);
    first.proxy.reset();
    second.post({second.put(1)});
    REQUIRE(comes([&] { return second.lane(1).held() == 1; }));
  }
  CHECK(proxy_threads() == 0);
}

TEST_CASE("a lane without room, a flush that does not end and an end hold up no other proxy") {
  World held(hours(1));
  World other(hours(1), held.device);
  held.lane(0).set_room(0);
  held.post({held.put(0)});
  other.post({other.put(0)});
  REQUIRE(comes([&] { return other.handled() == 1; }));
  CHECK(held.handled() == 0);
  CHECK(held.lane(0).held() == 0);
  held.lane(0).set_room(Lane::kAnyRoom);
  REQUIRE(comes([&] { return held.handled() == 1; }));

  std::thread ends([&] { held.proxy.reset(); });  // waits for the put that is held
  CHECK(comes([&] { return held.lane(0).waits() == 1; }));
  other.post({other.put(1)});
  CHECK(comes([&] { return other.handled() == 2; }));
  held.lane(0).let_go();
  ends.join();
  CHECK(held.there[0] == 77);
  other.post({other.put(1)});
  CHECK(comes([&] { return other.handled() == 3; }));
}

TEST_CASE("a proxy that fails leaves the others of its device alone") {
  World broken(hours(1));
  World other(hours(1), broken.device);
  PortRequest wrong = broken.put(0);
  wrong.to = reinterpret_cast<uint64_t>(&broken.source);
  broken.post({wrong});
  REQUIRE(comes([&] { return broken.failed.load(); }));
  other.post({other.put(0)});
  CHECK(comes([&] { return other.handled() == 1; }));
  CHECK(!other.failed);
  broken.proxy.reset();
  other.post({other.put(1)});
  CHECK(comes([&] { return other.handled() == 2; }));
}

TEST_CASE("a put that a lane takes in parts arrives whole, and others have turns between") {
  World large(hours(1));
  World other(hours(1), large.device);
  large.lane(0).set_room(4);
  large.source = (uint64_t{88} << 32) + 77;
  large.post({large.put(0), World::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return large.handled() == 2; }));
  CHECK(large.lane(0).held() == 3);
  large.lane(0).do_next();
  CHECK(large.there[0] == 77);
  large.lane(0).do_next();
  CHECK(large.there[0] == (uint64_t{88} << 32) + 77);
  large.lane(0).do_next();
  CHECK(large.seen(large.arrived[0]) == 1);

  // A queue that is never empty, and the other's single request.
  large.lane(1).set_room(1);
  for (int i = 0; i < 8; ++i) large.post({large.put(1)});
  other.post({other.put(0)});
  CHECK(comes([&] { return other.handled() == 1; }));
  CHECK(comes([&] { return large.handled() == 10; }));
  CHECK(large.lane(1).held() == 64);
}

TEST_CASE("a request for a put and a signal is both, whatever room the lane has") {
  World world(hours(1));
  PortRequest both = world.put(0);
  both.what = PortWhat::put_and_signal;
  world.post({both, both});
  REQUIRE(comes([&] { return world.handled() == 2; }));
  CHECK(world.lane(0).calls() == "cork put signal put signal uncork ");
  for (int i = 0; i < 4; ++i) world.lane(0).do_next();
  CHECK(world.seen(world.there[0]) == 77);
  CHECK(world.seen(world.arrived[0]) == 2);

  World narrow(hours(1));
  narrow.lane(0).set_room(4);
  narrow.source = (uint64_t{88} << 32) + 77;
  narrow.post({both = narrow.put(0), narrow.put(1)});
  REQUIRE(comes([&] { return narrow.handled() == 2; }));
  both.what = PortWhat::put_and_signal;
  narrow.post({both});
  REQUIRE(comes([&] { return narrow.handled() == 3; }));
  CHECK(narrow.lane(0).held() == 5);  // two parts, twice, and one signal
}

TEST_CASE("what is asked for together goes together, each peer's for itself") {
  World world(hours(1));
  world.post({world.put(0), world.put(1), World::order(PortWhat::signal, 0), world.put(0),
              World::order(PortWhat::signal, 1)});
  const auto all = [&](uint32_t peer) { return world.lane(peer).calls(); };
  CHECK(comes([&] { return all(1).ends_with("uncork "); }));
  CHECK(all(0) == "cork put signal put uncork ");
  CHECK(all(1) == "cork put signal uncork ");
}

// It would wait for an hour for one that does not come.
TEST_CASE("a put waits for its signal where that has come at once so far, and nowhere else") {
  World world(hours(1), std::make_shared<HeldDevice>(), hours(1));
  const auto calls_are = [&](const std::string& calls) {
    return comes([&] { return world.lane(0).calls() == calls; });
  };
  std::string calls = "cork put uncork ";
  world.post({world.put(0)});
  CHECK(calls_are(calls));
  world.post({world.put(0), World::order(PortWhat::signal, 0)});
  CHECK(calls_are(calls += "cork put signal uncork "));
  world.post({world.put(0)});
  CHECK(calls_are(calls += "cork put "));
  CHECK(comes([&] { return world.handled() == 4; }));
  world.post({World::order(PortWhat::signal, 0)});
  CHECK(calls_are(calls += "signal uncork "));
}

TEST_CASE("what a lane cannot send ends the proxy") {
  World world(hours(1));
  world.lane(0).refuse_uncork();
  world.post({world.put(0)});
  REQUIRE(comes([&] { return world.failed.load(); }));
  CHECK(world.failure == "the proxy cannot continue: the cable has been pulled");
}

/// What a thread of this process has used so far.
struct Usage {
  uint64_t wakes = 0;      ///< times that it went to sleep
  uint64_t cpu_nanos = 0;  ///< on a processor
};

/// Of the only thread with this name.
Usage usage_of(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string line;
    std::getline(std::ifstream(task.path() / "comm"), line);
    if (line != name) continue;
    Usage usage;
    std::ifstream(task.path() / "schedstat") >> usage.cpu_nanos;
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      if (word == "voluntary_ctxt_switches:") status >> usage.wakes;
    }
    return usage;
  }
  FAIL("no thread " << name);
  return {};
}

// It may not be told that there is something to do, by blocks that can only write memory: so it
// looks, once in a millisecond at most when it has been idle for long.
TEST_CASE("a proxy of which nothing is asked burns no processor") {
  World world(milliseconds(1));
  world.lane(0).let_go();
  world.post({world.put(0), World::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return world.handled() == 2; }));
  std::this_thread::sleep_for(milliseconds(200));
  const auto begin = std::chrono::steady_clock::now();
  const Usage before = usage_of("mscclc-proxy");
  std::this_thread::sleep_for(milliseconds(500));
  const Usage after = usage_of("mscclc-proxy");
  const auto passed = std::chrono::steady_clock::now() - begin;
  const auto millis = static_cast<uint64_t>(passed / milliseconds(1));
  REQUIRE(before.cpu_nanos > 0);
  CHECK(after.wakes - before.wakes <= millis + 50);
  CHECK(after.cpu_nanos - before.cpu_nanos < 50'000 * millis);  // a twentieth
  world.post({world.put(0)});                                   // it has not fallen asleep for good
  REQUIRE(comes([&] { return world.handled() == 3; }));
}

}  // namespace
}  // namespace mscclc
