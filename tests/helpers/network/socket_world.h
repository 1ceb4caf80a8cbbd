// A lane over sockets between two ends of one process, over loopback, for tests.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "runtime/network/sockets/socket_end.h"
#include "runtime/network/sockets/socket_lane.h"
#include "runtime/network/sockets/socket_net.h"
#include "tests/helpers/network/lane_checks.h"
#include "tests/helpers/runtime/relay.h"

namespace mscclc::net::testing {

constexpr std::chrono::milliseconds kLanePatience{120'000};

/// Memory of rank 3, and what rank 5 needs for a lane to it.
struct SocketWorld : LaneMemory {
  /// `alert`: threads that ask for a while before they sleep, and one that only sends.
  explicit SocketWorld(uint32_t connections = 3, bool alert = false, uint32_t workers = 0)
      : LaneMemory(kLanePatience) {
    const SocketOptions options{.interface = "=lo",
                                .connections = connections,
                                .awake = std::chrono::milliseconds(alert ? 5 : 0),
                                .sends_apart = alert,
                                .workers = workers};
    far = SocketNet::start(options, diagnostics);
    near = SocketNet::start(options, diagnostics);
    INFO(text());
    REQUIRE((far != nullptr && near != nullptr));
    window = std::make_unique<Window>(id, kWorldBytes);
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
                            near, kLanePatience, diagnostics);
  }
  std::shared_ptr<SocketNet> far, near;
  std::unique_ptr<LaneEnd> end;
  std::unique_ptr<mscclc::testing::Relay> relay;
  std::unique_ptr<Lane> lane;
};

inline void check_counts(SocketWorld& world) {
  std::vector<uint8_t> data(kMaxChecked);
  check_counts(world, *world.lane, [&](uint64_t, uint64_t) { return data.data(); });
}

}  // namespace mscclc::net::testing
