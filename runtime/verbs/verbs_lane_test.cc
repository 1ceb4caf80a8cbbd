// Lanes over verbs between two ends of one process: what arrives, and who is told what goes wrong.
// The devices are fake ones, or those that MSCCLC_IBV_SO's library finds if it is set.
#include "runtime/verbs/verbs_lane.h"

#include <dlfcn.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/words.h"
#include "runtime/net/dial.h"
#include "runtime/testing/descriptors.h"
#include "runtime/testing/told.h"
#include "runtime/verbs/control.h"
#include "runtime/verbs/fake/fake_verbs.h"
#include "runtime/verbs/verbs_end.h"

namespace mscclc::verbs {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kBytes = 8 << 20;
constexpr uint32_t kFar = 3, kNear = 5;  // ranks
constexpr milliseconds kPatience{60'000};

/// The library with fake devices; "": there are real ones, whose library the user names.
std::string fake_library() {
  if (std::getenv("MSCCLC_IBV_SO") != nullptr) return "";
  return std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") +
         "/runtime/verbs/fake/libfake_verbs.so";
}

/// The fake devices are as they come; nullptr: they are real.
fake::FakeVerbs* reset_fake() {
  const std::string file = fake_library();
  if (file.empty()) return nullptr;
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto* const state =
      reinterpret_cast<decltype(&mscclc_fake_verbs)>(::dlsym(library, "mscclc_fake_verbs"))();
  const fake::FakeVerbs fresh;
  state->devices = fresh.devices;
  state->down = fresh.down;
  state->infiniband = fresh.infiniband;
  state->lid = fresh.lid;
  state->atomics = fresh.atomics;
  state->gids = fresh.gids;
  state->failing_call = fresh.failing_call;
  state->most_registered = fresh.most_registered;
  state->failing_order = 0;
  return state;
}

/// Memory of rank 3 as rank 5 knows it: nobody may access it there.
class Window final : public NamedMemory {
 public:
  Window(ExposedId id, const DeviceKey& key, uint64_t bytes) : NamedMemory(id, key) {
    bytes_ = bytes;
  }
};

VerbsOptions base_options() {
  VerbsOptions options;
  Diagnostics diagnostics;
  if (const auto read = read_verbs_options(diagnostics)) options = *read;
  if (const std::string file = fake_library(); !file.empty()) options.library = file;
  return options;
}

std::string text(const Diagnostics& diagnostics) {
  return render_text(diagnostics, Sources(), 1000);
}

/// Memory of rank 3, and what rank 5 needs for a lane to it. The ends are at two devices.
struct World {
  World() : World(base_options()) {}
  explicit World(const VerbsOptions& options) {
    const net::SocketOptions sockets{.interface = "=lo"};
    VerbsOptions second = options;
    second.prefer = 1;
    far = Adapter::start(options, net::SocketNet::start(sockets, diagnostics), diagnostics);
    near = Adapter::start(second, net::SocketNet::start(sockets, diagnostics), diagnostics);
    INFO(text());
    REQUIRE((far != nullptr && near != nullptr));
    id = exposed->add(memory, data(), kBytes);
    region = far->expose(data(), kBytes, diagnostics);
    source = near->read_from(sources.data(), sources.size(), why);
    REQUIRE((region != nullptr && source != nullptr));
    window = std::make_unique<Window>(id, key(), kBytes);
    end = await_verbs_lane(kNear, far, exposed, far_told.callback());
  }
  DeviceKey key() const { return {reinterpret_cast<uint64_t>(data()), region->remote_key()}; }
  void open() {
    lane = open_with(end->offer());
    INFO(text());
    REQUIRE(lane != nullptr);
  }
  std::unique_ptr<Lane> open_with(const std::vector<uint8_t>& offer) {
    const auto find_source = [this](const void* from, uint64_t bytes) -> Source {
      const auto* at = static_cast<const uint8_t*>(from);
      const bool ours = at >= sources.data() && at + bytes <= sources.data() + sources.size();
      return ours ? Source{.key = source->local_key()} : Source{};
    };
    return open_verbs_lane({.rank = kFar,
                            .offer = offer,
                            .over = [this] { return over.load(); },
                            .failed = near_told.callback()},
                           near, find_source, kPatience, diagnostics);
  }
  RemotePlace at(uint64_t offset) const { return {window.get(), offset}; }
  uint8_t* data() const { return reinterpret_cast<uint8_t*>(memory->data()); }
  uint64_t word(uint64_t offset) const { return load_acquire<uint64_t>(data() + offset); }
  std::string text() const { return mscclc::verbs::text(diagnostics); }

  Diagnostics diagnostics;
  std::string why;
  std::shared_ptr<std::vector<uint64_t>> memory =
      std::make_shared<std::vector<uint64_t>>(kBytes / 8);
  std::vector<uint8_t> sources = std::vector<uint8_t>(kBytes);  ///< registered
  std::shared_ptr<ExposedMemory> exposed = std::make_shared<ExposedMemory>();
  ExposedId id = 0;
  std::unique_ptr<Window> window;
  std::atomic<bool> over{false};
  Told far_told{kPatience}, near_told{kPatience};
  std::shared_ptr<Adapter> far, near;
  std::shared_ptr<const MemoryRegion> region, source;
  std::unique_ptr<LaneEnd> end;
  std::unique_ptr<Lane> lane;
};

void fill(uint8_t* data, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<uint8_t>((i + seed) * 2654435761u >> 16);
}

/// Waits for a count as a block does.
void await_count(const World& world, uint64_t offset, uint64_t value) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (world.word(offset) < value) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::yield();
  }
}

/// Puts of all sizes, from memory that the device reads and from other, each with a count behind
/// it: what a count says is there.
void check_counts(World& world) {
  uint64_t count = 0;
  std::vector<uint8_t> other(5 << 20);
  for (const size_t bytes : {1, 8, 64, 65, 4096, 262144, 262145, 1 << 20, (4 << 20) + 13}) {
    for (const uint64_t offset : {64, 100, 262144 - 8, 300'000}) {
      uint8_t* const data = count % 2 == 0 ? other.data() : world.sources.data() + offset;
      fill(data, bytes, count);
      CHECK(world.lane->put(world.at(offset), data, bytes, world.diagnostics));
      CHECK(world.lane->signal(world.at(0), ++count, world.diagnostics));
      uint64_t own = 0;
      CHECK(world.lane->complete(&own, count, world.diagnostics));
      await_count(world, 0, count);
      CHECK(world.word(0) == count);
      CHECK(std::equal(data, data + bytes, world.data() + offset));
      while (load_acquire<uint64_t>(&own) != count) std::this_thread::yield();
    }
  }
  CHECK(world.lane->flush(world.diagnostics));
}

constexpr SignalMode kModes[] = {SignalMode::host, SignalMode::host_no_atomic};

TEST_CASE("a count comes after what was put before it") {
  const fake::FakeVerbs* const fake = reset_fake();
  for (const SignalMode mode : kModes) {
    for (const uint32_t queues : {1u, 3u}) {
      INFO(name(mode) << ", " << queues);
      VerbsOptions options = base_options();
      options.mode = mode;
      options.queues = queues;
      {
        World world(options);
        world.open();
        check_counts(world);
        world.lane.reset();
        world.end.reset();
        CHECK(world.text() == "");
        CHECK(world.far_told.text() + world.near_told.text() == "");
      }
      if (fake != nullptr) CHECK(fake->objects == 0);
    }
  }
}

// The later put wins, on whichever queue pair; counts never go back; and there are more signals
// than records.
TEST_CASE("puts to one place, and counts, keep their order") {
  reset_fake();
  for (const SignalMode mode : kModes) {
    VerbsOptions options = base_options();
    options.mode = mode;
    options.queues = 4;
    World world(options);
    world.open();
    const uint64_t last = 3 * kRecords;
    for (uint64_t i = 0; i < last; ++i) {
      const uint64_t bytes = i % 3 == 0 ? 60'000 : 30'000;
      uint8_t* const from = world.sources.data() + i % 64 * 65536;
      if (i >= 64) CHECK(world.lane->flush(world.diagnostics));
      fill(from, bytes, i);
      CHECK(world.lane->put(world.at(262'000 - 8 * (i % 5)), from, bytes, world.diagnostics));
      CHECK(world.lane->signal(world.at(i % 2 * 8), i + 1, world.diagnostics));
      CHECK(world.word(0) <= i + 1);
    }
    for (uint64_t i = 0; i < last; ++i) {
      CHECK(world.lane->signal(world.at(16), i + 1, world.diagnostics));
    }
    CHECK(world.lane->flush(world.diagnostics));
    CHECK(world.word(0) == last - 1);
    CHECK(world.word(8) == last);
    CHECK(world.word(16) == last);
    const uint8_t* const from = world.sources.data() + (last - 1) % 64 * 65536;
    CHECK(std::equal(from, from + 30'000, world.data() + 262'000 - 8 * ((last - 1) % 5)));
    CHECK(world.text() == "");
  }
}

TEST_CASE("places outside a region, or of no region of lanes, are refused at once") {
  reset_fake();
  World world;
  world.open();
  class Other final : public Memory {
  } other;
  const uint64_t value = 1;
  CHECK(!world.lane->put(world.at(kBytes - 7), &value, 8, world.diagnostics));
  CHECK(!world.lane->signal(world.at(kBytes + 8), 1, world.diagnostics));
  CHECK(!world.lane->put({&other, 0}, &value, 8, world.diagnostics));
  CHECK(world.text() ==
        "error: 8 bytes at byte 8388601 of a region of rank 3 are not for its lane\n"
        "error: 8 bytes at byte 8388616 of a region of rank 3 are not for its lane\n"
        "error: 8 bytes at byte 0 of a region of rank 3 are not for its lane\n");
  CHECK(world.lane->flush(world.diagnostics));
}

TEST_CASE("memory that was not registered is out of reach, and both ends say so") {
  reset_fake();
  for (const bool signal : {false, true}) {
    VerbsOptions options = base_options();
    options.mode = SignalMode::host;
    World world(options);
    world.open();
    const Window forged(world.id, world.key(), 2 * kBytes);
    const std::vector<uint8_t> bytes(65536);
    const bool given =
        signal ? world.lane->signal({&forged, kBytes}, 1, world.diagnostics)
               : world.lane->put({&forged, kBytes}, bytes.data(), 65536, world.diagnostics);
    if (given) CHECK(!world.lane->flush(world.diagnostics));
    const std::string said =
        std::string("the lane to rank 3 has ended: ") +
        (signal ? "atomic add of a signal" : "RDMA write of 65536 bytes") +
        ": remote access error: the peer has not shared that memory, or has freed it; a buffer "
        "must stay until all ranks have ended the calls that use it (status 10, vendor's ";
    CHECK_THAT(world.text(), Catch::StartsWith("error: " + said));
    CHECK_THAT(world.far_told.wait(), Catch::StartsWith("rank 5 ends its lane: " + said));
    CHECK_THAT(world.near_told.wait(), Catch::StartsWith(said));
    CHECK(!world.lane->put(world.at(0), bytes.data(), 8, world.diagnostics));
    CHECK(!world.lane->signal(world.at(0), 1, world.diagnostics));
    CHECK(!world.lane->complete(nullptr, 1, world.diagnostics));
  }
}

TEST_CASE("a message for memory that was not exposed ends the lane, and both ends say so") {
  reset_fake();
  VerbsOptions options = base_options();
  options.mode = SignalMode::host_no_atomic;
  World world(options);
  world.open();
  const Window forged(world.id, world.key(), 2 * kBytes);
  CHECK(world.lane->signal({&forged, kBytes}, 1, world.diagnostics));
  CHECK(!world.lane->flush(world.diagnostics));
  const std::string said =
      "the lane of rank 5 brings 8 bytes at byte 8388608 of memory 1, which it may not write\n";
  CHECK(world.text() == "error: rank 3 ends its lane: " + said);
  CHECK(world.far_told.wait() == said);
}

TEST_CASE("a far end that goes in good order needs no more, however much is put") {
  reset_fake();
  for (const SignalMode mode : kModes) {
    VerbsOptions options = base_options();
    options.mode = mode;
    World world(options);
    world.open();
    world.end.reset();
    uint64_t own = 0;
    for (int i = 0; i < 10; ++i) {
      CHECK(world.lane->put(world.at(0), world.sources.data(), kBytes, world.diagnostics));
      CHECK(world.lane->signal(world.at(0), 1, world.diagnostics));
    }
    CHECK(world.lane->complete(&own, 2, world.diagnostics));
    CHECK(world.lane->flush(world.diagnostics));
    CHECK(own == 2);
    CHECK(world.text() == "");
    CHECK(world.near_told.text() + world.far_told.text() == "");
    CHECK(world.word(0) == 0);
  }
}

TEST_CASE("a lane that is given up with work in it is noticed by the far end") {
  reset_fake();
  World world;
  world.open();
  world.near.reset();
  CHECK(world.lane->put(world.at(0), world.sources.data(), kBytes, world.diagnostics));
  CHECK(world.lane->put(world.at(0), world.sources.data(), kBytes, world.diagnostics));
  world.lane.reset();  // the device has hardly begun
  CHECK(world.far_told.wait() ==
        "the lane of rank 5 has ended: its process has ended, or has closed the connection\n");
}

TEST_CASE("strangers get no lane") {
  reset_fake();
  World world;
  const auto offer = decode_verbs_offer(world.end->offer());
  REQUIRE(offer);
  auto wrong = *offer;
  wrong.socket.key[0] ^= 1;
  CHECK(world.open_with(encode(wrong)) == nullptr);
  CHECK(world.open_with(net::encode(offer->socket)) == nullptr);
  CHECK_THAT(world.text(),
             Catch::Contains("no lane to rank 3: at 127.0.0.1") &&
                 Catch::Contains("error: no lane to rank 3: its offer is no lane over verbs: "
                                 "MSCCLC_LANE differs between ranks\n"));
  // Whoever knows the key, but says what is no message.
  std::string why;
  const auto sockets = net::dial(offer->socket, {.connections = 1}, why);
  REQUIRE(sockets.size() == 1);
  const uint8_t noise[] = {0x77, 0xff, 0xff, 1, 2, 3};
  CHECK(::send(sockets.front().get(), noise, sizeof noise, MSG_NOSIGNAL) == sizeof noise);
  CHECK(world.far_told.wait() ==
        "the lane of rank 5 has ended: its connection broke: Bad message (74)\n");
}

TEST_CASE("lanes leave nothing, however they end") {
  const fake::FakeVerbs* const fake = reset_fake();
  const size_t before = testing::open_descriptors();
  for (int way = 0; way < 4; ++way) {
    World world;
    if (way < 3) world.open();
    if (way == 3) continue;  // never opened
    CHECK(world.lane->put(world.at(0), world.sources.data(), kBytes, world.diagnostics));
    if (way == 0) world.lane.reset();
    if (way == 1) world.end.reset();
  }
  CHECK(testing::open_descriptors() == before);
  if (fake != nullptr) CHECK(fake->objects == 0);
}

/// What an adapter with these options says, in full.
std::string refusal(const VerbsOptions& options) {
  Diagnostics diagnostics;
  const auto net = net::SocketNet::start({.interface = "=lo"}, diagnostics);
  CHECK(Adapter::start(options, net, diagnostics) == nullptr);
  return text(diagnostics);
}

TEST_CASE("devices that cannot be used") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  VerbsOptions options = base_options();
  std::string why;
  const std::string none = "error: no lanes over verbs: ";

  SECTION("no library") {
    options.library = "libno_such_library.so";
    CHECK(refusal(options) ==
          none +
              "libno_such_library.so: cannot open shared object file: No such file or directory; "
              "install libibverbs (Debian: libibverbs1, ibverbs-providers), name it by "
              "MSCCLC_IBV_SO, or take MSCCLC_LANE=sockets\n");
  }
  SECTION("another library") {
    options.library = "libc.so.6";
    CHECK_THAT(refusal(options),
               Catch::StartsWith(none + "it has no ibv_get_device_list: it is too old, or another "
                                        "library; install libibverbs"));
  }
  SECTION("no device") {
    fake->devices = 0;
    CHECK(refusal(options) ==
          none + "this machine has no InfiniBand or RoCE device (ibv_devices lists them)\n");
  }
  SECTION("a port that is down is passed over, unless it was named") {
    fake->down = 0;
    Diagnostics diagnostics;
    const auto net = net::SocketNet::start({.interface = "=lo"}, diagnostics);
    const auto adapter = Adapter::start(options, net, diagnostics);
    REQUIRE(adapter != nullptr);
    CHECK(adapter->port().text() == "port 1 of fake1");
    options.devices = *parse_hca_list("fake0,fake1", why);
    CHECK(refusal(options) == none +
                                  "port 1 of fake0 is down: its cable, or the network interface "
                                  "below it (ip link)\n");
  }
  SECTION("a list that leaves none") {
    options.devices = *parse_hca_list("mlx5", why);
    CHECK(refusal(options) ==
          none + "MSCCLC_IB_HCA leaves none of port 1 of fake0, port 1 of fake1\n");
  }
  SECTION("no address of RoCE v2") {
    fake->gids = 1;
    fake->devices = 1;
    CHECK(refusal(options) ==
          none +
              "port 1 of fake0 has no address of RoCE v2 (its table has 0 fe80::1 (RoCE v1)): "
              "give its network interface an address, or set MSCCLC_IB_GID_INDEX\n");
  }
  SECTION("a GID that there is not") {
    fake->devices = 1;
    options.gid_index = 7;
    CHECK(refusal(options) ==
          none +
              "port 1 of fake0 has no GID 7: its table has 0 fe80::1 (RoCE v1), 1 fe80::1 "
              "(RoCE v2), 2 ::ffff:10.99.0.1 (RoCE v1), 3 ::ffff:10.99.0.1 (RoCE v2)\n");
  }
  SECTION("InfiniBand without a subnet manager") {
    fake->devices = 1;
    fake->infiniband = true;
    fake->lid = false;
    CHECK(refusal(options) ==
          none + "port 1 of fake0 has no LID: no subnet manager has given it one\n");
  }
  SECTION("calls that fail") {
    fake->devices = 1;
    fake->failing_call = "open_device";
    CHECK(refusal(options) == none + "fake0 cannot be opened: Cannot allocate memory (12)\n");
    fake->failing_call = "alloc_pd";
    CHECK(refusal(options) ==
          none + "no protection domain of fake0: Cannot allocate memory (12)\n");
  }
  CHECK(fake->objects == 0);
}

TEST_CASE("the address is found: RoCE v2, IPv4 before IPv6") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  Diagnostics diagnostics;
  const auto net = net::SocketNet::start({.interface = "=lo"}, diagnostics);
  const auto index = [&] {
    const auto adapter = Adapter::start(base_options(), net, diagnostics);
    REQUIRE(adapter != nullptr);
    return adapter->port().gid.gid_index;
  };
  CHECK(index() == 3);
  fake->gids = 3;
  CHECK(index() == 1);
}

TEST_CASE("InfiniBand") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  fake->infiniband = true;
  World world;
  world.open();
  check_counts(world);
  CHECK(world.text() == "");
}

TEST_CASE("memory that cannot be registered") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  World world;
  fake->most_registered = 4096;
  CHECK(world.far->expose(world.data(), kBytes, world.diagnostics) == nullptr);
  CHECK(world.text() ==
        "error: fake0 cannot register 8388608 bytes: Cannot allocate memory (12); memory that "
        "devices use is locked: raise the limit (ulimit -l)\n");
}

TEST_CASE("devices without atomics get messages, or say so") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  fake->atomics = false;
  {
    World world;
    world.open();
    check_counts(world);
    CHECK(world.text() == "");
  }
  VerbsOptions options = base_options();
  options.mode = SignalMode::host;
  World world(options);
  CHECK(world.open_with(world.end->offer()) == nullptr);
  const std::string said =
      "the lane of rank 5 cannot be made: fake0 has no atomics, which MSCCLC_IBV_MODE=host needs; "
      "host-no-atomic does without them\n";
  CHECK_THAT(world.text(), Catch::EndsWith(": it says: " + said));
  CHECK(world.far_told.wait() == said);
}

TEST_CASE("ends that do not fit") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  VerbsOptions options = base_options();
  World world(options);
  options.gid_index = 2;
  options.prefer = 1;
  world.near = Adapter::start(options, world.near->net(), world.diagnostics);
  CHECK(world.open_with(world.end->offer()) == nullptr);
  CHECK_THAT(world.far_told.wait(),
             Catch::Contains("the lane of rank 5 cannot be made: its GID and the GID here are of "
                             "different versions of RoCE: set MSCCLC_IB_GID_INDEX"));
}

TEST_CASE("queue pairs that cannot be made") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  for (const char* call : {"create_comp_channel", "create_cq", "create_qp", "modify_qp"}) {
    INFO(call);
    World world;
    fake->failing_call = call;
    CHECK(world.open_with(world.end->offer()) == nullptr);
    CHECK_THAT(world.text(), Catch::StartsWith("error: no lane to rank 3: at ") &&
                                 Catch::EndsWith(" of fake1: Cannot allocate memory (12)\n"));
    CHECK_THAT(world.far_told.wait(), Catch::StartsWith("rank 5 ends its lane: "));
    fake->failing_call = "";
  }
  CHECK(fake->objects == 0);
}

TEST_CASE("what completions that fail say") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  const std::pair<ibv_wc_status, const char*> meanings[] = {
      {IBV_WC_LOC_PROT_ERR, "local protection error: memory of this rank was freed"},
      {IBV_WC_RETRY_EXC_ERR, "transport retries exceeded: the peer's device does not answer"},
      {IBV_WC_RNR_RETRY_EXC_ERR, "receiver not ready: the peer takes no messages"},
      {IBV_WC_GENERAL_ERR, "an error of the device or its driver"},
  };
  for (const auto& [status, meaning] : meanings) {
    World world;
    world.open();
    fake->status = status;
    fake->failing_order = 3;
    bool good = true;
    for (int i = 0; i < 10 && good; ++i) {
      good = world.lane->put(world.at(0), world.sources.data(), 4096, world.diagnostics) &&
             world.lane->signal(world.at(0), static_cast<uint64_t>(i) + 1, world.diagnostics);
    }
    if (good) CHECK(!world.lane->flush(world.diagnostics));
    CHECK_THAT(world.text(), Catch::StartsWith("error: the lane to rank 3 has ended: RDMA write of "
                                               "4096 bytes: " +
                                               std::string(meaning)));
    CHECK_THAT(world.far_told.wait(), Catch::Contains(meaning));
  }
}

TEST_CASE("an order that fails names the port, if that is down") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  World world;
  world.open();
  fake->status = IBV_WC_RETRY_EXC_ERR;
  fake->failing_order = 1;
  fake->down = 1;
  (void)world.lane->put(world.at(0), world.sources.data(), 4096, world.diagnostics);
  CHECK(!world.lane->flush(world.diagnostics));
  CHECK_THAT(world.text(), Catch::Contains("; port 1 of fake1 is down: its cable, or the network "
                                           "interface below it (ip link)"));
}

}  // namespace
}  // namespace mscclc::verbs
