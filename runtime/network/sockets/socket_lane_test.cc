// Lanes over sockets between two ends of one process, over loopback: what arrives, which end
// reports what goes wrong, and what strangers at the door get.
#include "runtime/network/sockets/socket_lane.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executor/shared_atomics.h"
#include "runtime/network/order_reader.h"
#include "runtime/network/sockets/dial.h"
#include "runtime/network/sockets/socket_end.h"
#include "runtime/support/address/sockets.h"
#include "runtime/support/deadline.h"
#include "runtime/support/fixed_times.h"
#include "tests/helpers/network/lane_checks.h"
#include "tests/helpers/network/raw_lane.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/relay.h"

namespace mscclc::net {
namespace {

using std::chrono::milliseconds;
using testing::hear;
using testing::kFar;
using testing::kNear;
using testing::LaneMemory;
using testing::Window;

constexpr uint64_t kBytes = testing::kWorldBytes;
constexpr milliseconds kPatience{20'000};

/// Memory of rank 3, and what rank 5 needs for a lane to it.
struct World : LaneMemory {
  /// `alert`: threads that ask for a while before they sleep, and one that only sends.
  explicit World(uint32_t connections = 3, bool alert = false, uint32_t workers = 0)
      : LaneMemory(kPatience) {
    const SocketOptions options{.interface = "=lo",
                                .connections = connections,
                                .awake = milliseconds(alert ? 5 : 0),
                                .sends_apart = alert,
                                .workers = workers};
    far = SocketNet::start(options, diagnostics);
    near = SocketNet::start(options, diagnostics);
    INFO(text());
    REQUIRE((far != nullptr && near != nullptr));
    window = std::make_unique<Window>(id, kBytes);
    end = await_socket_lane(kNear, far, exposed, far_reports.callback(), nullptr, take_notes());
  }
  void open() {
    lane = open_with(end->offer());
    INFO(text());
    REQUIRE(lane != nullptr);
  }
  /// All connections go over a relay.
  void open_over_relay() {
    auto offer = decode_offer(end->offer());
    REQUIRE(offer);
    relay = std::make_unique<mscclc::testing::Relay>(offer->address);
    offer->address = relay->address();
    lane = open_with(encode(*offer));
    INFO(text());
    REQUIRE(lane != nullptr);
  }
  std::unique_ptr<Lane> open_with(const Bytes& offer) {
    return open_socket_lane({.rank = kFar,
                             .offer = offer,
                             .over = [this] { return over.load(); },
                             .failed = near_reports.callback()},
                            near, kPatience, diagnostics);
  }
  std::shared_ptr<SocketNet> far, near;
  std::unique_ptr<LaneEnd> end;
  std::unique_ptr<mscclc::testing::Relay> relay;
  std::unique_ptr<Lane> lane;
};

std::vector<uint8_t> pattern(size_t count, uint64_t seed) {
  std::vector<uint8_t> data(count);
  testing::fill(data.data(), count, seed);
  return data;
}

void check_counts(World& world) {
  std::vector<uint8_t> data(testing::kMaxChecked);
  testing::check_counts(world, *world.lane, [&](uint64_t, uint64_t) { return data.data(); });
}

TEST_CASE("a note is taken before what is ordered after it, on whichever connection") {
  for (const uint32_t workers : {0u, 2u}) {
    for (const uint32_t connections : {1u, 5u}) {
      World world(connections, false, workers);
      world.open();
      std::vector<uint8_t> data(kBytes);
      testing::check_notes(world, *world.lane, data.data());
      world.lane.reset();
      world.end.reset();
    }
  }
}

TEST_CASE("an end of a lane that finds no memory ends it, and both ends say so") {
  for (const bool alert : {false, true}) {
    World world(2, alert);
    world.open();
    testing::check_lack_of_memory(world, *world.lane);
    world.lane.reset();
    world.end.reset();
  }
}

TEST_CASE("a count comes after what was put before it") {
  for (const uint32_t workers : {0u, 2u}) {
    for (const uint32_t connections : {1u, 2u, 5u}) {
      World world(connections, connections == 2, workers);
      world.open();
      check_counts(world);
      world.lane.reset();
      world.end.reset();
      CHECK(world.text() == "");
      CHECK(world.far_reports.text() + world.near_reports.text() == "");
    }
  }
}

void check_cuts(uint32_t workers) {
  World world(3, false, workers);
  world.open_over_relay();
  for (const size_t most : {size_t{4093}, size_t{10'007}, size_t{60'000}}) {
    world.relay->dribble(most);
    std::vector<std::vector<uint8_t>> all;
    for (uint64_t i = 0; i < 4; ++i) {
      all.push_back(pattern((512 << 10) + 100 * i, most + i));
      CHECK(world.lane->put(world.at(4096 + (i << 20)), all.back().data(), all.back().size(),
                            world.diagnostics));
    }
    CHECK(world.lane->signal(world.at(8), most, world.diagnostics));
    uint64_t own = 0;  // until then the bytes are the lane's
    CHECK(world.lane->complete(&own, most, world.diagnostics));
    world.await_count(8, most);
    while (load_acquire<uint64_t>(&own) != most) std::this_thread::yield();
    for (uint64_t i = 0; i < 4; ++i) {
      CHECK(std::equal(all[i].begin(), all[i].end(), world.data() + 4096 + (i << 20)));
    }
  }
}

TEST_CASE("a count comes after what was put before it, however the network splits the bytes") {
  for (const uint32_t workers : {0u, 3u}) check_cuts(workers);
}

void check_order(uint32_t workers) {
  World world(4, false, workers);
  world.open();
  std::vector<std::vector<uint8_t>> all;
  for (uint64_t i = 0; i < 200; ++i) {
    all.push_back(pattern(i % 3 == 0 ? 600'000 : 300'000, i));
    CHECK(world.lane->put(world.at(262'000 - 8 * (i % 5)), all.back().data(), all.back().size(),
                          world.diagnostics));
    CHECK(world.lane->signal(world.at(0), i + 1, world.diagnostics));
    CHECK(world.word(0) <= i + 1);
  }
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(world.word(0) == 200);
  CHECK(std::equal(all.back().begin(), all.back().end(), world.data() + 262'000 - 8 * (199 % 5)));
}

// The later put wins, on whichever connection; and counts never go back.
TEST_CASE("puts to one place, and counts, keep their order") {
  for (const uint32_t workers : {0u, 3u}) check_order(workers);
}

// A count is set when all orders before it have been sent.
TEST_CASE("short orders of a corked lane wait for uncork(), long ones do not") {
  World world(1);
  world.open();
  const std::vector<uint8_t> bytes(64 << 10, 7);
  uint64_t own = 0;
  const auto put = [&](uint64_t count) {
    return world.lane->put(world.at(64), bytes.data(), count, world.diagnostics);
  };
  world.lane->cork();
  CHECK(put(1000));
  CHECK(world.lane->signal(world.at(0), 1, world.diagnostics));
  CHECK(world.lane->complete(&own, 1, world.diagnostics));
  CHECK(own == 0);
  CHECK(world.word(0) == 0);
  CHECK(world.lane->uncork(world.diagnostics));
  CHECK(own == 1);
  world.await_count(0, 1);
  CHECK(world.data()[64 + 999] == 7);
  world.lane->cork();
  CHECK(put(bytes.size()));
  CHECK(world.lane->complete(&own, 2, world.diagnostics));
  while (load_acquire<uint64_t>(&own) != 2) std::this_thread::yield();  // as the socket has room
  for (int i = 0; i < 16; ++i) CHECK(put(8));
  CHECK(world.lane->complete(&own, 3, world.diagnostics));
  while (load_acquire<uint64_t>(&own) != 3) std::this_thread::yield();
  CHECK(world.lane->uncork(world.diagnostics));
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(world.text() == "");
}

// The hand is busy, so what falls to it is not sent.
TEST_CASE("short puts and their counts need no hand, but stay after a long one") {
  World world(1, false, 1);
  world.open();
  const std::vector<uint8_t> bytes(64 << 10, 7);
  std::atomic<bool> busy{true};
  world.near->workers()->give([&] {
    while (busy) std::this_thread::yield();
  });
  uint64_t own = 0;
  const auto send = [&](uint64_t count, uint64_t value) {
    CHECK(world.lane->put(world.at(64), bytes.data(), count, world.diagnostics));
    CHECK(world.lane->signal(world.at(0), value, world.diagnostics));
    CHECK(world.lane->complete(&own, value, world.diagnostics));
  };
  send(1000, 1);
  CHECK(own == 1);
  world.await_count(0, 1);
  send(bytes.size(), 2);
  send(1000, 3);
  CHECK(load_acquire<uint64_t>(&own) == 1);
  CHECK(world.word(0) == 1);
  busy = false;
  world.await_count(0, 3);
  CHECK(world.lane->flush(world.diagnostics));
  CHECK(own == 3);
  CHECK(world.data()[64 + bytes.size() - 1] == 7);
  CHECK(world.text() == "");
}

TEST_CASE("places outside a region, or of no region of lanes, are refused at once") {
  World world;
  world.open();
  testing::check_refused_places(world, *world.lane);
}

TEST_CASE("the far end takes no orders for memory that it has not exposed, and both ends say so") {
  for (const bool signal : {false, true}) {
    World world;
    world.open();
    const Window forged(world.id, 2 * kBytes);
    const uint64_t value = 1;
    CHECK((signal ? world.lane->signal({&forged, kBytes}, 1, world.diagnostics)
                  : world.lane->put({&forged, kBytes}, &value, 8, world.diagnostics)));
    CHECK(!world.lane->flush(world.diagnostics));
    CHECK(world.text() ==
          "error: rank 3 ends its lane: the lane of rank 5 brings 8 bytes at byte 8388608 of "
          "memory 1, which it may not write\n");
    CHECK(world.far_reports.wait() ==
          "the lane of rank 5 brings 8 bytes at byte 8388608 of memory 1, which it may not "
          "write\n");
    CHECK(!world.lane->put(world.at(0), &value, 8, world.diagnostics));
    CHECK(!world.lane->signal(world.at(0), 1, world.diagnostics));
    CHECK(!world.lane->complete(nullptr, 1, world.diagnostics));
  }
}

void check_leave(uint32_t workers) {
  const std::vector<uint8_t> bytes(kBytes);
  World world(3, workers > 0, workers);
  world.open();
  world.end.reset();
  testing::check_needs_no_more(world, *world.lane, bytes.data());
}

TEST_CASE("a far end that goes in good order needs no more, however much is put") {
  for (const uint32_t workers : {0u, 2u}) check_leave(workers);
}

// Its workers are in the middle of a put then.
TEST_CASE("ends of a lane go while much is on its way") {
  for (const bool far_first : {true, false}) {
    const std::vector<uint8_t> bytes(kBytes);
    World world(4, false, 4);
    world.open();
    for (int i = 0; i < 20; ++i) {
      CHECK(world.lane->put(world.at(0), bytes.data(), kBytes, world.diagnostics));
    }
    if (far_first) world.end.reset();
    world.lane.reset();
    if (far_first) CHECK(world.far_reports.text() == "");
    CHECK(world.text() == "");
  }
}

void check_cut(uint64_t after, uint32_t workers) {
  const std::vector<uint8_t> bytes(kBytes);  // the lane's until it has gone
  World world(3, false, workers);
  world.open_over_relay();
  world.relay->cut_after(world.relay->passed() + after);
  while (world.lane->put(world.at(0), bytes.data(), kBytes, world.diagnostics) &&
         world.lane->flush(world.diagnostics)) {
  }
  CHECK_THAT(world.text(), Catch::StartsWith("error: the lane to rank 3 has ended: its "));
  CHECK_THAT(world.far_reports.wait(), Catch::StartsWith("the lane of rank 5 has ended: its "));
}

TEST_CASE("a connection that is cut is reported at both ends") {
  for (const uint64_t after : {0, 1000, 3'000'000}) {
    for (const uint32_t workers : {0u, 2u}) check_cut(after, workers);
  }
}

TEST_CASE("a connection that is cut while nothing is asked for is reported at both ends") {
  World world;
  world.open_over_relay();
  CHECK(world.lane->flush(world.diagnostics));
  world.relay->cut_after(0);
  CHECK_THAT(world.near_reports.wait(), Catch::StartsWith("the lane to rank 3 has ended: its "));
  CHECK_THAT(world.far_reports.wait(), Catch::StartsWith("the lane of rank 5 has ended: its "));
  CHECK(!world.lane->flush(world.diagnostics));
}

// What a stopped process does: it neither reads nor ends. The lane takes what its queue holds, and
// does not wait for the peer at each; then it waits.
void check_over(uint32_t workers) {
  const std::vector<uint8_t> bytes(kBytes);
  World world(2, false, workers);
  world.open_over_relay();
  world.relay->hold_after(0);
  std::atomic<uint64_t> puts = 0;
  std::atomic<bool> ended = false;
  std::thread failure([&] {
    while (puts <= 10 && !ended) std::this_thread::yield();
    world.over = true;
  });
  uint64_t own = 0;
  while (world.lane->put(world.at(0), bytes.data(), kBytes, world.diagnostics)) {
    REQUIRE(++puts < 1000);
    CHECK(world.lane->complete(&own, 1, world.diagnostics));
  }
  ended = true;
  failure.join();
  CHECK(own <= 1);
  CHECK(puts > 10);
  CHECK(world.text() == "error: rank 3 takes no orders, and the communicator has failed\n");
  CHECK(!world.lane->flush(world.diagnostics));
}

TEST_CASE("an order that waits for its peer ends with the communicator") {
  for (const uint32_t workers : {0u, 2u}) check_over(workers);
}

TEST_CASE("a lane that leads nowhere, and one to another process") {
  World world;
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
      (void)await(listener.get(), POLLIN, std::chrono::steady_clock::now() + kPatience);
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
Fd knock(const World& world) { return testing::knock(world.far->address()); }

TEST_CASE("strangers are turned away, and hold nothing up") {
  World world;
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
  check_counts(world);
  CHECK(world.far_reports.text() == "");
}

TEST_CASE("a process that connects all the time does not keep a lane from its work") {
  World world;
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

TEST_CASE("lanes leave no descriptors, however they end") {
  const size_t before = mscclc::testing::open_descriptors();
  for (int way = 0; way < 4; ++way) {
    const std::vector<uint8_t> bytes(kBytes);
    World world;
    world.open();
    CHECK(world.lane->put(world.at(0), bytes.data(), kBytes, world.diagnostics));
    if (way == 0) world.lane.reset();
    if (way == 1) world.end.reset();
    if (way == 2) {
      const Window forged(world.id, 2 * kBytes);
      CHECK(world.lane->signal({&forged, kBytes}, 1, world.diagnostics));
      CHECK(!world.lane->flush(world.diagnostics));
    }
  }
  CHECK(mscclc::testing::open_descriptors() == before);
}

TEST_CASE("an idle lane uses no processor") {
  const bool alert = GENERATE(false, true);
  World world(3, alert);
  world.open();
  check_counts(world);
  std::this_thread::sleep_for(milliseconds(alert ? 200 : 0));  // they fall asleep
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double before = used();
  std::this_thread::sleep_for(milliseconds(500));
  CHECK(used() - before < 0.02);
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

/// With room for one descriptor more, apart from `next`, which is the first that was free.
size_t room_for_one(const Fd& next) { return static_cast<size_t>(next.get()) + 2; }

TEST_CASE("a rank without descriptors for its peers says so at once") {
  World world(1);
  const Fd next(::dup(STDIN_FILENO));
  std::optional<DescriptorLimit> limit(room_for_one(next));  // for the near end
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
  World world(1);
  const auto offer = decode_offer(world.end->offer());
  std::vector<Fd> silent;
  for (int i = 0; i < 3; ++i) {
    silent.push_back(knock(world));
    CHECK(decode_challenge(hear(silent.back(), Challenge::kBytes)));  // it has been let in
  }
  const auto dial_with_one = [&] {
    const Fd next(::dup(STDIN_FILENO));
    const DescriptorLimit limit(room_for_one(next));  // for this end
    return dial(*offer, {.connections = 1});
  };
  const auto sockets = dial_with_one();
  INFO((sockets ? "" : sockets.error().text()));
  CHECK(sockets);
  CHECK(world.far_reports.text() == "");
}

TEST_CASE("strangers have a quarter of a process's descriptors at most") {
  World world;
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
