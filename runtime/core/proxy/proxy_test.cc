// The proxy on lanes whose orders are held until the test lets them go: for what it waits, and for
// what not.
#include "runtime/core/proxy/proxy.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/helpers/proxy/proxy_world.h"
#include "tests/helpers/runtime/named_threads.h"

namespace mscclc {
namespace {

using device::PortRequest;
using device::PortWhat;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::comes;
using testing::HeldDevice;
using testing::ProxyWorld;

TEST_CASE("notes go over all lanes before what is asked for after them") {
  ProxyWorld world(hours(1));
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
  ProxyWorld world(hours(1));
  world.post({world.put(0), ProxyWorld::order(PortWhat::signal, 0),
              ProxyWorld::order(PortWhat::flush, 0), world.put(1)});
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

TEST_CASE("copies are awaited by settling, and not before") {
  ProxyWorld world(hours(1));
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
  ProxyWorld world(hours(1), std::make_shared<HeldDevice>(), Proxy::kSoon, 3);
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
  world.post({ProxyWorld::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return world.lane(0).held() == 1; }));
  world.lane(0).do_next();
  CHECK(world.seen(world.arrived[0]) == 4);
}

TEST_CASE("the proxy's thread takes its device before its first order") {
  ProxyWorld world(hours(1));
  world.lane(0).let_go();
  world.post({world.put(0), ProxyWorld::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return world.handled() == 2; }));
  world.proxy->settle();
  CHECK(world.there[0] == 77);
  CHECK(!world.failed);
  CHECK(testing::bound == nullptr);  // only by that thread
}

TEST_CASE("a proxy that ends waits for its copies") {
  ProxyWorld world(hours(1));
  world.lane(1).let_go();
  world.post({world.put(1), ProxyWorld::order(PortWhat::flush, 1)});
  world.proxy.reset();
  CHECK(world.there[1] == 77);
  CHECK(world.flushed[1] == 2);
}

size_t proxy_threads() { return testing::threads_named("mscclc-proxy"); }

TEST_CASE("proxies of one device have one thread, those of another device another") {
  REQUIRE(comes([] { return proxy_threads() == 0; }));
  {
    ProxyWorld first(hours(1));
    ProxyWorld second(hours(1), first.device), third(hours(1), first.device);
    CHECK(comes([] { return proxy_threads() == 1; }));
    ProxyWorld elsewhere(hours(1));
    CHECK(comes([] { return proxy_threads() == 2; }));
    for (ProxyWorld* world : {&first, &second, &third, &elsewhere}) {
      world->post({world->put(0), ProxyWorld::order(PortWhat::signal, 0)});
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
  CHECK(comes([] { return proxy_threads() == 0; }));
}

TEST_CASE("a lane without room, a flush that does not end and an end hold up no other proxy") {
  ProxyWorld held(hours(1));
  ProxyWorld other(hours(1), held.device);
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

TEST_CASE("a put that a lane takes in parts arrives whole, and others have turns between") {
  ProxyWorld large(hours(1));
  ProxyWorld other(hours(1), large.device);
  large.lane(0).set_room(4);
  large.source = (uint64_t{88} << 32) + 77;
  large.post({large.put(0), ProxyWorld::order(PortWhat::signal, 0)});
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
  ProxyWorld world(hours(1));
  PortRequest both = world.put(0);
  both.what = PortWhat::put_and_signal;
  world.post({both, both});
  CHECK(comes([&] { return world.lane(0).calls() == "cork put signal put signal uncork "; }));
  CHECK(world.handled() == 2);
  for (int i = 0; i < 4; ++i) world.lane(0).do_next();
  CHECK(world.seen(world.there[0]) == 77);
  CHECK(world.seen(world.arrived[0]) == 2);

  ProxyWorld narrow(hours(1));
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
  ProxyWorld world(hours(1));
  world.post({world.put(0), world.put(1), ProxyWorld::order(PortWhat::signal, 0), world.put(0),
              ProxyWorld::order(PortWhat::signal, 1)});
  const auto all = [&](uint32_t peer) { return world.lane(peer).calls(); };
  CHECK(comes([&] { return all(1).ends_with("uncork "); }));
  CHECK(all(0) == "cork put signal put uncork ");
  CHECK(all(1) == "cork put signal uncork ");
}

// It would wait for an hour for one that does not come.
TEST_CASE("a put waits for its signal where that has come at once so far, and nowhere else") {
  ProxyWorld world(hours(1), std::make_shared<HeldDevice>(), hours(1));
  const auto calls_are = [&](const std::string& calls) {
    return comes([&] { return world.lane(0).calls() == calls; });
  };
  std::string calls = "cork put uncork ";
  world.post({world.put(0)});
  CHECK(calls_are(calls));
  world.post({world.put(0), ProxyWorld::order(PortWhat::signal, 0)});
  CHECK(calls_are(calls += "cork put signal uncork "));
  world.post({world.put(0)});
  CHECK(calls_are(calls += "cork put "));
  CHECK(comes([&] { return world.handled() == 4; }));
  world.post({ProxyWorld::order(PortWhat::signal, 0)});
  CHECK(calls_are(calls += "signal uncork "));
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

// Blocks can only write memory, and cannot wake it when there is something to do: so it looks, at
// most once in a millisecond when it has been idle for long.
TEST_CASE("a proxy of which nothing is asked burns no processor") {
  ProxyWorld world(milliseconds(1));
  world.lane(0).let_go();
  world.post({world.put(0), ProxyWorld::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return world.handled() == 2; }));
  // A proxy that polls is awake in every window; on a busy machine it falls asleep late.
  bool rests = false;
  for (int window = 0; window < 40 && !rests; ++window) {
    const auto begin = std::chrono::steady_clock::now();
    const Usage before = usage_of("mscclc-proxy");
    std::this_thread::sleep_for(milliseconds(500));
    const Usage after = usage_of("mscclc-proxy");
    const auto passed = std::chrono::steady_clock::now() - begin;
    const auto millis = static_cast<uint64_t>(passed / milliseconds(1));
    REQUIRE(before.cpu_nanos > 0);
    rests = after.wakes - before.wakes <= millis + 50 &&
            after.cpu_nanos - before.cpu_nanos < 50'000 * millis;  // a twentieth
  }
  CHECK(rests);
  world.post({world.put(0)});  // it has not fallen asleep for good
  REQUIRE(comes([&] { return world.handled() == 3; }));
}

}  // namespace
}  // namespace mscclc
