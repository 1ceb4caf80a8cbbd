// What ends a proxy, and what becomes of others then.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "runtime/core/proxy/proxy.h"
#include "tests/helpers/proxy/proxy_world.h"

namespace mscclc {
namespace {

using device::PortRequest;
using device::PortWhat;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::comes;
using testing::HeldDevice;
using testing::ProxyWorld;

TEST_CASE("a proxy whose thread cannot take its device says so") {
  const auto device = std::make_shared<HeldDevice>();
  device->can_bind = false;
  ProxyWorld world(hours(1), device);
  REQUIRE(comes([&] { return world.failed.load(); }));
  CHECK(world.failure == "the proxy cannot continue: the device is gone");
}

// A block that waits for its flush asks for nothing more: only this can end its wait.
TEST_CASE("a copy that fails is found when nothing is asked for, and never counts as done") {
  ProxyWorld world(milliseconds(1));
  world.lane(0).break_down();
  world.post({world.put(0), ProxyWorld::order(PortWhat::signal, 0),
              ProxyWorld::order(PortWhat::flush, 0)});
  REQUIRE(comes([&] { return world.failed.load(); }));
  CHECK(world.failure == "the proxy cannot continue: the copy engine has broken down");
  CHECK(world.seen(world.flushed[0]) == 0);
  CHECK(world.seen(world.arrived[0]) == 0);
  world.proxy->settle();  // returns: nothing is done any more
}

TEST_CASE("a put to memory that its peer does not share ends the proxy") {
  ProxyWorld world(hours(1));
  PortRequest wrong = world.put(0);
  wrong.to = reinterpret_cast<uint64_t>(&world.there[1]);  // the other peer's
  world.post({wrong, ProxyWorld::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return world.failed.load(); }));
  CHECK(world.failure ==
        fmt::format("the proxy cannot continue: 8 bytes at {} are not in memory that "
                    "rank 0 shares",
                    fmt::ptr(&world.there[1])));
  CHECK(world.lane(0).held() == 0);
}

TEST_CASE("a copy that fails is found by settling") {
  ProxyWorld world(hours(1));
  world.lane(1).break_down();
  world.post({world.put(1), ProxyWorld::order(PortWhat::flush, 1)});
  world.proxy->settle();
  CHECK(world.failed);
  CHECK(world.flushed[1] == 0);
}

// Only the end of a lane waits for what still reads the caller's memory.
TEST_CASE("settling after a failure ends all lanes") {
  ProxyWorld world(hours(1));
  world.lane(0).break_down();
  world.post({world.put(0), world.put(1)});
  world.proxy->settle();
  CHECK(world.failed);
  CHECK(world.lane(1).held() == 1);
  CHECK(world.lane(0).ended());
  CHECK(world.lane(1).ended());
  world.proxy->settle();  // returns: nothing is done any more
}

TEST_CASE("settling without a failure ends no lane") {
  ProxyWorld world(hours(1));
  for (const auto& lane : world.lanes) lane->let_go();
  world.post({world.put(0), ProxyWorld::order(PortWhat::signal, 0)});
  world.proxy->settle();
  CHECK(!world.failed);
  CHECK(!world.lane(0).ended());
}

TEST_CASE("a proxy that fails leaves the others of its device alone") {
  ProxyWorld broken(hours(1));
  ProxyWorld other(hours(1), broken.device);
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

TEST_CASE("what a lane cannot send ends the proxy") {
  ProxyWorld world(hours(1));
  world.lane(0).refuse_uncork();
  world.post({world.put(0)});
  REQUIRE(comes([&] { return world.failed.load(); }));
  CHECK(world.failure == "the proxy cannot continue: the cable has been pulled");
}

TEST_CASE("a proxy without memory ends the job, however long it takes to say so") {
  ProxyWorld world(hours(1));
  ProxyWorld other(hours(1), world.device);
  world.lacks_memory_to_fail = 3;
  world.lane(0).run_out_of_memory();
  world.post({world.put(0), ProxyWorld::order(PortWhat::signal, 0)});
  REQUIRE(comes([&] { return world.failed.load(); }));
  CHECK(world.failure == "the proxy cannot continue: there is not enough memory");
  CHECK(world.handled() == 0);
  world.proxy->settle();  // returns: nothing is done any more
  other.post({other.put(0)});
  CHECK(comes([&] { return other.handled() == 1; }));
  CHECK(!other.failed);
}

}  // namespace
}  // namespace mscclc
