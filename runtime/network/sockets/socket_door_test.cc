// Who may open a lane over sockets: a rank, however late; and what strangers get.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/network/lane_wire.h"
#include "runtime/network/sockets/dial.h"
#include "runtime/support/address/sockets.h"
#include "runtime/support/deadline.h"
#include "runtime/support/fixed_times.h"
#include "tests/helpers/network/raw_lane.h"
#include "tests/helpers/network/socket_world.h"
#include "tests/helpers/runtime/descriptors.h"

namespace mscclc::net {
namespace {

using std::chrono::milliseconds;
using testing::hear;
using testing::SocketWorld;

TEST_CASE("a lane that leads nowhere, and one to another process") {
  SocketWorld world;
  CHECK(world.open_with({}) == nullptr);
  CHECK(
      world.text() ==
      "error: no lane to rank 3: its offer is not a lane over sockets: MSCCLC_LANE differs between "
      "ranks\n");
  auto offer = decode_offer(world.end->offer());
  REQUIRE(offer);
  const auto said = [&](const LaneOffer& to) {
    world.diagnostics = Diagnostics();
    CHECK(world.open_with(encode(to)) == nullptr);
    return world.text();
  };
  LaneOffer wrong = *offer;
  wrong.key[0] ^= 1;
  CHECK_THAT(said(wrong), Catch::Contains("has closed the connection"));
  wrong = *offer;
  ++wrong.lane;
  CHECK_THAT(said(wrong), Catch::Contains("has closed the connection"));
  wrong = *offer;
  {
    const Fd listener = listen_on(Address::loopback(0));
    wrong.address = Address::loopback(local_port(listener));
    world.over = true;  // what listens there says nothing
    CHECK_THAT(said(wrong), Catch::Contains("the communicator has failed"));
    world.over = false;
  }
  CHECK_THAT(said(wrong),
             Catch::Contains("Connection refused (111); if that rank is on another machine, its "
                             "MSCCLC_SOCKET_IFNAME must name an interface that others reach"));
  world.open();  // the far end is unharmed
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(world.far_reports.text() == "");
}

TEST_CASE("a rank that was too slow for the far end tries again") {
  const Fd listener = listen_on(Address::loopback(0));
  LaneOffer offer{Address::loopback(local_port(listener)), 1, {}};
  std::thread far([&] {
    const auto accept_one = [&] {
      (void)await(listener.get(), POLLIN,
                  std::chrono::steady_clock::now() + testing::kLanePatience);
      return Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    };
    Fd first = accept_one();
    std::this_thread::sleep_for(kMayHaveBeenSlow + milliseconds(50));  // so long it was stopped
    first.reset();
    const Fd second = accept_one();
    const Challenge challenge{};
    (void)testing::say(second, encode(challenge));
    const auto hello = decode_hello(hear(second, Hello::kBytes));
    if (!hello) return;
    (void)testing::say(second, encode(Welcome{receiver_proof(offer.key, challenge, *hello)}));
  });
  CHECK(dial(offer, {.connections = 1}));
  far.join();
}

/// A connection to the far end's door.
Fd knock(const SocketWorld& world) { return testing::knock(world.far->address()); }

TEST_CASE("strangers are turned away, and hold nothing up") {
  SocketWorld world;
  const auto offer = decode_offer(world.end->offer());
  std::vector<Fd> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(knock(world));  // more than are kept
  for (const size_t count : {size_t{1}, Hello::kBytes - 1, Hello::kBytes, Hello::kBytes + 100}) {
    const Fd socket = knock(world);
    CHECK(decode_challenge(hear(socket, Challenge::kBytes)));
    const Bytes noise(count, 0xff);
    CHECK(::send(socket.get(), noise.data(), count, MSG_NOSIGNAL) == static_cast<ssize_t>(count));
    if (count >= Hello::kBytes) CHECK(hear(socket, 1).empty());
  }
  {  // the proof for another challenge
    const Fd socket = knock(world);
    const auto challenge = decode_challenge(hear(socket, Challenge::kBytes));
    REQUIRE(challenge);
    Hello hello{.lane = offer->lane, .connection = 0, .connections = 1};
    hello.proof = sender_proof(offer->key, {}, hello);
    const Bytes said = encode(hello);
    CHECK(::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL) > 0);
    CHECK(hear(socket, 1).empty());
  }
  world.open();
  // A process that knows the key has a rank's rights, but no connection comes twice.
  CHECK(!dial(*offer, {.connections = 3}));
  const auto twice = dial(*offer, {.connections = 2});
  REQUIRE(!twice);
  CHECK_THAT(twice.error().text(), Catch::Contains("has closed the connection"));
  testing::check_counts(world);
  CHECK(world.far_reports.text() == "");
}

TEST_CASE("a process that connects all the time does not keep a lane from its work") {
  SocketWorld world;
  world.open();
  std::atomic<bool> enough{false};
  std::thread flood([&] {
    while (!enough) const Fd socket = begin_connect(world.far->address());
  });
  for (uint64_t count = 1; count <= 20; ++count) {
    CHECK(world.lane->signal(world.at(0), count, world.diagnostics));
    CHECK(world.lane->flush(world.diagnostics));
    CHECK(world.word(0) == count);
  }
  enough = true;
  flood.join();
}

TEST_CASE("strangers may come while all that waits for sockets ends") {
  for (int i = 0; i < 50; ++i) {
    Diagnostics diagnostics;
    auto net = SocketNet::start({.interface = "=lo"}, diagnostics);
    REQUIRE(net != nullptr);
    const Address address = net->address();
    std::atomic<uint32_t> came{0};
    std::atomic<bool> enough{false};
    std::thread strangers([&] {
      while (!enough) {
        const Fd socket = begin_connect(address);
        ++came;
      }
    });
    while (came < 20) std::this_thread::yield();
    net.reset();
    enough = true;
    strangers.join();
  }
}

/// This process has so many descriptors at most, while it lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(size_t descriptors) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{descriptors, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// With room for so many descriptors more, apart from `next`, which is the first that was free.
size_t room_for(size_t descriptors, const Fd& next) {
  return static_cast<size_t>(next.get()) + 1 + descriptors;
}

TEST_CASE("a rank without descriptors for its peers says so at once") {
  SocketWorld world(1);
  const Fd next(::dup(STDIN_FILENO));
  std::optional<DescriptorLimit> limit(room_for(1, next));  // for the near end
  std::unique_ptr<Lane> lane;
  std::thread opens([&] { lane = world.open_with(world.end->offer()); });
  const std::string said = world.far_reports.wait();
  world.over = true;
  opens.join();
  limit.reset();
  CHECK(lane == nullptr);
  CHECK_THAT(said, Catch::StartsWith("the connections of rank 5's lane cannot be taken: "));
}

TEST_CASE("strangers give their descriptors to a rank that comes") {
  SocketWorld world(1);
  const auto offer = decode_offer(world.end->offer());
  const auto dial_among_strangers = [&] {
    const Fd next(::dup(STDIN_FILENO));
    const DescriptorLimit limit(room_for(7, next));  // both ends of theirs, and this end
    std::vector<Fd> silent;
    for (int i = 0; i < 3; ++i) {
      silent.push_back(knock(world));
      CHECK(decode_challenge(hear(silent.back(), Challenge::kBytes)));  // it has been let in
    }
    return dial(*offer, {.connections = 1});
  };
  const auto sockets = dial_among_strangers();
  INFO((sockets ? "" : sockets.error().text()));
  CHECK(sockets);
  CHECK(world.far_reports.text() == "");
}

TEST_CASE("strangers have a quarter of a process's descriptors at most") {
  SocketWorld world;
  const DescriptorLimit limit(200);
  const size_t before = mscclc::testing::open_descriptors();
  std::vector<Fd> silent;
  for (int i = 0; i < 60; ++i) {
    silent.push_back(knock(world));
    CHECK(decode_challenge(hear(silent.back(), Challenge::kBytes)));
  }
  CHECK(mscclc::testing::open_descriptors() <= before + silent.size() + 200 / 4);
  world.open();
}

TEST_CASE("a stranger keeps its place for its least time, however many others come") {
  SocketWorld world;
  const DescriptorLimit limit(200);
  const auto begun = std::chrono::steady_clock::now();
  const Fd first = knock(world);
  CHECK(decode_challenge(hear(first, Challenge::kBytes)));
  std::vector<Fd> others;
  for (int i = 0; i < 55; ++i) others.push_back(knock(world));  // more than are kept
  CHECK(hear(first, 1).empty());                                // it has gone
  CHECK(std::chrono::steady_clock::now() - begun >= kLeastTimeToProve);
  world.open();
  CHECK(world.far_reports.text() == "");
}

TEST_CASE("a thread of lanes that cannot begin") {
  Diagnostics diagnostics;
  const auto refuse = [](Diagnostics& problems) {
    problems.error("cuda", {}, "there is no such GPU");
    return false;
  };
  CHECK(SocketNet::start({.interface = "=lo", .begin_thread = refuse}, diagnostics) == nullptr);
  CHECK(render_text(diagnostics, Sources(), 100) == "error: there is no such GPU\n");
}

TEST_CASE("an interface that there is not") {
  Diagnostics diagnostics;
  CHECK(SocketNet::start({.interface = "=nowhere7"}, diagnostics) == nullptr);
  CHECK_THAT(render_text(diagnostics, Sources(), 100), Catch::Contains("nowhere7"));
}

}  // namespace
}  // namespace mscclc::net
