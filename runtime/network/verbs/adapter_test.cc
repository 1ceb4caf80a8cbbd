// Which of a machine's fake devices is taken, and what is said of those that cannot be.
#include "runtime/network/verbs/adapter.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/helpers/verbs/lane_world.h"

namespace mscclc::verbs {
namespace {

using testing::base_options;
using testing::reset_fake;

/// What an adapter with these options says, in full.
std::string refusal(const VerbsOptions& options) {
  Diagnostics diagnostics;
  const auto net = net::SocketNet::start({.interface = "=lo"}, diagnostics);
  CHECK(Adapter::start(options, net, diagnostics) == nullptr);
  return testing::text(diagnostics);
}

TEST_CASE("devices that cannot be used") {
  fake::FakeVerbs* const fake = reset_fake();
  if (fake == nullptr) return;
  VerbsOptions options = base_options();
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
    options.devices = *parse_hca_list("?fake0,fake1,other");
    const auto lenient = Adapter::start(options, net, diagnostics);
    REQUIRE(lenient != nullptr);
    CHECK(lenient->port().text() == "port 1 of fake1");
    options.devices = *parse_hca_list("?fake0");
    CHECK_THAT(refusal(options), Catch::Contains("port 1 of fake0 is down"));
    options.devices = *parse_hca_list("fake0,fake1");
    CHECK(refusal(options) == none +
                                  "port 1 of fake0 is down: its cable, or the network interface "
                                  "below it (ip link)\n");
  }
  SECTION("a list that leaves none") {
    options.devices = *parse_hca_list("mlx5");
    CHECK(refusal(options) ==
          none + "MSCCLC_IB_HCA leaves none of port 1 of fake0, port 1 of fake1\n");
  }
  SECTION("a list that names a port that there is not, beside others") {
    options.devices = *parse_hca_list("fake0,fake1:2,mlx5_3,fake");
    CHECK(refusal(options) ==
          none + "MSCCLC_IB_HCA names fake1:2, mlx5_3, which this machine does not have\n");
    options.devices = *parse_hca_list("^mlx5_3,fake0");  // not there is what they want
    Diagnostics diagnostics;
    const auto net = net::SocketNet::start({.interface = "=lo"}, diagnostics);
    const auto adapter = Adapter::start(options, net, diagnostics);
    REQUIRE(adapter != nullptr);
    CHECK(adapter->port().text() == "port 1 of fake1");
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

}  // namespace
}  // namespace mscclc::verbs
